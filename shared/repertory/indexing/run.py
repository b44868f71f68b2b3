"""Runs the lifecycle in this process until the index equals the sources."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from repertory.errors import SourceError, StoreError
from repertory.indexing.coordinator import Coordinator
from repertory.indexing.in_process_queue import InProcessQueue
from repertory.indexing.scan import CONCURRENCY, ScanResult, scan_source
from repertory.sources.source import Source
from repertory.system.progress import Progress

IDLE_S = 0.02  # seconds to wait when nothing is due

SCANNING = "Reading sources"
INDEXING = "Indexing items"


def run(
    sources: Sequence[Source],
    coordinator: Coordinator,
    queue: InProcessQueue,
    progress: Progress,
    *,
    refreshes: Callable[[Source], bool] = lambda _: False,
    is_late: Callable[[], bool] = lambda: False,
    on_wait: Callable[[], None] = lambda: None,
) -> None:
    """Scan sources, and do the resulting jobs, until no work is left.

    Sources are scanned concurrently, and items of one source are indexed while others are still
    being scanned. The run can be interrupted at any time. Its scans then end soon, and the next run
    continues.

    Args:
        sources: The sources to scan. The coordinator has the catalogue, and scans of the others.
        coordinator: Decides what to write.
        queue: The coordinator's queue, without a thread of its own.
        progress: Called after every step.
        refreshes: Whether to fetch a source's content from elsewhere before scanning it.
        is_late: Whether the time budget is used up. The run then ends once all sources are scanned
            and any item was written.
        on_wait: Called each time everything read so far is indexed while a scan still runs.

    Raises:
        StoreError: A store is unavailable.
    """
    ended = threading.Event()

    pool = ThreadPoolExecutor(CONCURRENCY, thread_name_prefix="scan")
    try:
        scanning: set[Future[ScanResult]] = {
            pool.submit(_scan, source, coordinator, ended, refresh=refreshes(source))
            for source in sources
        }
        worked = has_news = True
        sent = 0
        while scanning or worked or not coordinator.is_finished:
            if not worked:
                time.sleep(IDLE_S)
            finished, scanning = wait(scanning, 0, FIRST_COMPLETED)
            for done_scan in finished:
                coordinator.observe(done_scan.result())
                has_news = True
            progress(SCANNING, len(sources) - len(scanning), len(sources))
            coordinator.tick()
            if ledger := coordinator.ledger:
                done, total = ledger.progress()
                progress(INDEXING, done, total)
                # Jobs that were just sent were not tried yet, so whether they wait is not known.
                waits = not worked and ledger.counts.total() == sent > 0
                sent = ledger.counts.total()
                if not scanning and is_late() and (done or waits):
                    return
            worked = queue.work()
            if coordinator.error and not (worked or scanning or coordinator.is_finished):
                raise coordinator.failure or StoreError(coordinator.error)
            if has_news and scanning and coordinator.is_finished and not worked:
                has_news = False
                on_wait()
    finally:
        ended.set()
        pool.shutdown(wait=False, cancel_futures=True)  # first, so that no cancelled scan starts
        for source in sources:
            source.cancel()


def _scan(
    source: Source, coordinator: Coordinator, ended: threading.Event, *, refresh: bool
) -> ScanResult:
    """Scan a source and examine its items, while others are embedded; stop when the run ends."""

    def pause() -> None:
        if ended.is_set():
            raise SourceError("The run has ended.")

    source.on_pause = pause
    result = scan_source(source, refresh=refresh)
    coordinator.examine(result, ended.is_set)
    return result
