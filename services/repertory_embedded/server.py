"""The embedded server of a directory: watch service, worker and query service in one process."""

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

from repertory.compose import Parts
from repertory.indexing.in_process_queue import InProcessQueue
from repertory.indexing.job import JobQueue
from repertory.system.files import is_gone
from repertory_embedded.graphs import building_graphs
from repertory_query.backend.service import Service
from repertory_query.server.run import READERS
from repertory_watch.service import WatchService

RETRY_INTERVAL_S = 5.0  # before a failed watch is restarted

_log = logging.getLogger(__name__)


@contextmanager
def running(parts: Parts, claim: Path) -> Iterator[Service]:
    """Watch and index a directory, and answer from its index, until the block ends.

    Args:
        parts: The components of the server.
        claim: The lock file that makes this process the only server of the directory. If it is
            gone at the end, so is the index, and another process may have made a new one.
    """
    parts.workspace.forget()
    with ThreadPoolExecutor(READERS, "keywords") as reader, parts.live_search(reader) as live:
        with (
            closing(parts.writer()) as writer,
            # A command that began before this server may write a new record after this ``forget``.
            InProcessQueue(writer, parts.coordination, lambda _: parts.workspace.forget()) as queue,
            _watching(parts, queue),
            building_graphs(parts.store, parts.active, queue.is_idle),
            closing(Service(parts, live, queue)) as service,
        ):
            yield service
        live.stop()
        if not is_gone(claim):
            # There are no more writes, so the snapshot will equal the collection.
            live.refresh()
            live.save()


@contextmanager
def _watching(parts: Parts, queue: JobQueue) -> Iterator[None]:
    """Watch on a thread."""
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            try:
                WatchService(
                    parts.settings,
                    parts.workspace,
                    parts.coordinator(queue),
                    parts.coordination.status,
                ).run(stop)
            # A boundary: after any failure, searches go on, and watching starts again.
            except Exception:
                _log.exception("watch_failed")
                stop.wait(RETRY_INTERVAL_S)

    thread = threading.Thread(target=watch, name="watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
