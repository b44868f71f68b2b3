"""One run of the lifecycle in this process, until the index equals the sources."""

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from repertory.errors import StoreError
from repertory.indexing.coordinator import Coordinator
from repertory.indexing.in_process_queue import InProcessQueue
from repertory.indexing.scan import CONCURRENCY, ScanResult, scan_source
from repertory.sources.configured import Catalogue

IDLE = 0.02  # seconds to wait when nothing is due

SCANNING = "Reading sources"
INDEXING = "Indexing items"

# Called with the stage, how much of it is done, and how much there is in all.
Progress = Callable[[str, int, int], None]


def run(
    catalogue: Catalogue, coordinator: Coordinator, queue: InProcessQueue, progress: Progress
) -> None:
    """Scan every source, and do the jobs that follow, until nothing is left to do.

    Sources are scanned concurrently; what one offers is indexed while others are still scanned.
    The run can be interrupted at any moment: the next one continues.

    Args:
        catalogue: The sources.
        coordinator: Decides what to write.
        queue: Its queue, without a thread of its own.
        progress: Called after every step.

    Raises:
        StoreError: A store is unavailable.
    """
    sources = catalogue.sources
    coordinator.adopt(catalogue)
    pool = ThreadPoolExecutor(CONCURRENCY, thread_name_prefix="scan")
    try:
        scanning: set[Future[ScanResult]] = {pool.submit(scan_source, source) for source in sources}
        worked = True
        while scanning or worked or not coordinator.is_finished:
            if not worked:
                time.sleep(IDLE)
            finished, scanning = wait(scanning, 0, FIRST_COMPLETED)
            for scan in finished:
                coordinator.observe(scan.result())
            progress(SCANNING, len(sources) - len(scanning), len(sources))
            coordinator.tick()
            worked = queue.work()
            if coordinator.error and not (worked or scanning or coordinator.is_finished):
                raise StoreError(coordinator.error)
            if ledger := coordinator.ledger:
                building = ledger.progress()
                progress(INDEXING, building.done, building.total)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
