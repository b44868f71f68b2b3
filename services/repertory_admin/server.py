"""The embedded server: watch service, worker and query service in one process."""

import logging
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

from repertory import memory
from repertory.compose import Parts
from repertory.indexing.job import JobQueue
from repertory.settings import Settings
from repertory_query.app import create_app
from repertory_query.run import READERS, serve
from repertory_query.service import Service
from repertory_watch.service import WatchService

RETRY_INTERVAL_S = 5.0  # after which a failed watch is started again

_log = logging.getLogger(__name__)


def run(
    settings: Settings,
    directory: Path,
    listener: socket.socket,
    stopping: Sequence[int],
    ready: Callable[[Service], None],
) -> None:
    """Watch, index and answer until the process is asked to end.

    Args:
        settings: The active settings.
        directory: The directory whose catalogue is served.
        listener: The socket of requests.
        stopping: Ends it as soon as it is not empty; see ``termination_signals``.
        ready: Called with the service once requests are answered.
    """
    memory.keep_little()
    parts = Parts(settings, directory)
    parts.workspace.forget()
    with ThreadPoolExecutor(READERS, "keywords") as reader, parts.live_search(reader) as live:
        with (
            parts.in_process_queue() as queue,
            _watching(parts, queue),
            closing(Service(parts, live, queue)) as service,
        ):
            ready(service)
            serve(create_app(service, settings), listener, stopping)
        # Nothing is written any more, so the snapshot will equal the collection.
        live.stop()
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
            # A boundary: whatever happens, searches go on, and watching starts again.
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
