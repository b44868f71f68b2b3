"""The embedded server: watch service, worker and query service, all in this process."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

from repertory.compose import make_directory
from repertory.errors import UsageError
from repertory.indexing.job import JobQueue
from repertory.running import announce, the_only_server
from repertory.serving import Parts
from repertory.settings import Settings
from repertory_query.app import create_app
from repertory_query.run import READERS, listening, serve
from repertory_query.service import Service
from repertory_watch.service import WatchService

PAUSE = 5.0  # seconds after which a watch that failed is begun again

_log = logging.getLogger(__name__)


def run(
    settings: Settings,
    directory: Path,
    told: Sequence[int],
    ready: Callable[[str, Service], None],
) -> None:
    """Watch, index and answer until the process is told to end.

    Args:
        settings: What is in force.
        directory: Whose catalogue is served.
        told: The signals that tell it; see ``told_to_end``.
        ready: Told the URL, and what is asked in this process, once requests are taken.

    Raises:
        UsageError: The settings ask for something else, or the address cannot be served on.
        StoreError: The directory has another server, or the data directory cannot be written.
    """
    values = settings.values
    if values.redis_url:
        raise UsageError(
            "`repertory serve` is all in one process, without a Redis; unset REPERTORY_REDIS_URL, "
            "or run `repertory watch`, `repertory worker` and `repertory api`."
        )
    if values.no_cache:
        raise UsageError(
            "`repertory serve` keeps what it indexes; unset REPERTORY_SEARCH_NO_CACHE."
        )
    make_directory(settings.data_dir)
    parts = Parts(settings, directory)
    with the_only_server(settings, directory), listening(settings) as listener:
        # Whoever asks from now on waits for the first answer, and does not index beside us.
        url = announce(settings, directory, *listener.getsockname()[:2])
        with (
            parts.in_process_queue() as queue,
            _watching(parts, queue),
            ThreadPoolExecutor(READERS, "keywords") as reader,
            parts.live_search(reader) as live,
            closing(Service(parts, live, queue)) as service,
        ):
            ready(url, service)
            serve(create_app(service, settings), listener, told)


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
                    parts.adapters.status,
                ).run(stop)
            # A boundary: whatever happens, searches go on, and so does watching after a while.
            except Exception:
                _log.exception("watch_failed")
                stop.wait(PAUSE)

    thread = threading.Thread(target=watch, name="watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
