"""Builds the search graphs of an embedded server, in the background and while no write is pending.

Without a graph, a search compares the query with every vector.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from repertory.errors import StoreError
from repertory.index.vectors import VectorStore
from repertory.system.memory import trim

INTERVAL_S = 10.0  # between two checks
MAX_INTERVAL_S = 3_600.0  # between two failed attempts

_log = logging.getLogger(__name__)


@contextmanager
def building_graphs(store: VectorStore, active: str, is_idle: Callable[[], bool]) -> Iterator[None]:
    """Build the graph of the active collection whenever it lacks one, until the block ends.

    Args:
        store: The embedded store.
        active: The alias of the collection that is searched.
        is_idle: Whether no write is pending. Writes during a build are made twice.
    """
    stopping = threading.Event()

    def run() -> None:
        pause = INTERVAL_S
        while not stopping.wait(pause):
            # Each attempt copies the index, so failed ones are repeated less and less often.
            later = min(2 * pause, MAX_INTERVAL_S)
            try:
                if is_idle():
                    _build(store, active, stopping)
                    pause = INTERVAL_S
            except StoreError as error:  # such as a full disk: searches go on without a graph
                pause = later
                _log.warning("graph_not_built", extra={"error": str(error)})
            # A boundary: a failed attempt must not end the thread.
            except Exception:
                pause = later
                _log.exception("graph_failed")

    thread = threading.Thread(target=run, name="graphs", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def _build(store: VectorStore, active: str, stopping: threading.Event) -> None:
    if name := store.alias(active):
        with store.open(name) as collection:
            if collection.build_graph(stopping):
                trim()
                _log.info("graph_built", extra={"collection": name})
