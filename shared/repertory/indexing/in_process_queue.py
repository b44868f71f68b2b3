"""The queue of the embedded server: a thread does the jobs in this process."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Self

from repertory.coordination.failures import Failures
from repertory.errors import StoreError
from repertory.index.keywords.snapshot import SnapshotStore
from repertory.indexing.attempts import attempt
from repertory.indexing.job import Job, Lane
from repertory.indexing.writer import Writer

TOGETHER = 8  # jobs that are done in one batch
PAUSE = 1.0  # seconds after a store was away

_log = logging.getLogger(__name__)


class InProcessQueue:
    """A queue and its worker. A context manager: leaving it ends the thread after its job.

    What waits is lost with the process; the coordinator sends it again. So are the deltas: before
    a collection is written to, its keyword snapshot is dropped, for nobody else could follow it.
    """

    def __init__(self, writer: Writer, failures: Failures, snapshots: SnapshotStore) -> None:
        self._writer = writer
        self._failures = failures
        self._snapshots = snapshots
        self._lanes: dict[Lane, deque[Job]] = {lane: deque() for lane in Lane}
        self._upkeep: deque[Callable[[], None]] = deque()
        self._delayed: list[tuple[float, Job, Lane]] = []
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._thread.join()

    def submit(self, job: Job, lane: Lane, delay: float = 0.0) -> None:
        """Hand over a job."""
        with self._changed:
            if delay:
                self._delayed.append((time.monotonic() + delay, job, lane))
            else:
                self._lanes[lane].append(job)
            self._changed.notify()

    def begin(self, configuration: str, generation: int | None = None) -> None:
        """Ask for the collection that a configuration's items are to be written to."""
        self._ask(lambda: self._writer.begin(configuration, generation))

    def keep_keywords(self, collection: str) -> None:
        """Ask for a fresh keyword snapshot of a collection."""
        self._ask(lambda: self._writer.keep_keywords(collection))

    def waiting(self) -> dict[str, int]:
        """How many jobs wait in each lane."""
        with self._changed:
            return {lane.value: len(jobs) for lane, jobs in self._lanes.items()}

    def _ask(self, upkeep: Callable[[], None]) -> None:
        with self._changed:
            self._upkeep.append(upkeep)
            self._changed.notify()

    def _run(self) -> None:
        while (work := self._next()) is not None:
            try:
                work()
            except StoreError as error:  # what was lost here is sent again
                _log.warning("worker_waits", extra={"error": str(error)})
                time.sleep(PAUSE)
            # A boundary: the thread outlives every job.
            except Exception:
                _log.exception("worker_failed")

    def _next(self) -> Callable[[], None] | None:
        """What to do next, waiting for it: saves before upkeep before builds; None at the end."""
        with self._changed:
            while not self._stopped:
                now = time.monotonic()
                for one in [one for one in self._delayed if one[0] <= now]:
                    self._delayed.remove(one)
                    self._lanes[one[2]].append(one[1])
                if self._lanes[Lane.SAVES]:
                    return self._batch(Lane.SAVES)
                if self._upkeep:
                    return self._upkeep.popleft()
                if self._lanes[Lane.BUILDS]:
                    return self._batch(Lane.BUILDS)
                due = min((at for at, _, _ in self._delayed), default=now + 60)
                self._changed.wait(max(due - now, 0.01))
            return None

    def _batch(self, lane: Lane) -> Callable[[], None]:
        jobs = self._lanes[lane]
        together = [jobs.popleft() for _ in range(min(TOGETHER, len(jobs)))]
        return lambda: self._do(together, lane)

    def _do(self, jobs: Sequence[Job], lane: Lane) -> None:
        for collection in {job.collection for job in jobs}:
            self._snapshots.drop(collection)
        attempt(jobs, lane, writer=self._writer, failures=self._failures, queue=self)
