"""The queue of the embedded server: a thread does the jobs in this process."""

import logging
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Self

from typing_extensions import override

from repertory.coordination.ports import Coordination
from repertory.errors import StoreError
from repertory.indexing import maintenance
from repertory.indexing.attempts import attempt
from repertory.indexing.job import Job, JobQueue, QueueName
from repertory.indexing.pace import Pace, text_count
from repertory.indexing.save_trace import processing
from repertory.indexing.writer import Writer
from repertory.system.memory import trim
from repertory.telemetry import spans

WORKER = "worker:server"  # its name on the status board
LATER_S = 10.0  # the wait before retrying a rebuild that could not begin
RETRY_INTERVAL_S = 1.0  # the wait after an error of the store
# The idle time after which memory is released. During frequent saves it would be needed again.
RELEASE_AFTER_S = 1.0

_log = logging.getLogger(__name__)


class InProcessQueue(JobQueue):
    """A queue and its worker. As a context manager it starts and ends a thread.

    A server enters the context, so that a thread does the jobs. A one-shot command calls ``work``
    instead and does them on its own thread.

    Pending jobs are lost with the process, and the coordinator sends them again. Deltas are lost,
    too. So a collection's keyword snapshot is dropped before a write, because another process could
    not update it. The collection is held open meanwhile, so that no process stores a new snapshot.

    Args:
        writer: Does the jobs.
        coordination: The writer's coordination.
        before_write: Called with the name of a collection before each write to it.
    """

    def __init__(
        self,
        writer: Writer,
        coordination: Coordination,
        before_write: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._writer = writer
        self._coordination = coordination
        self._before_write = before_write
        self._queues: dict[QueueName, deque[Job]] = {name: deque() for name in QueueName}
        self._maintenance: deque[Callable[[], None]] = deque()
        self._parents: dict[str, str] = {}  # the parent spans of jobs, by job id
        self._taken = 0
        self._pace = Pace()
        self._delayed: list[tuple[float, Job, QueueName]] = []
        self._later: dict[tuple[str, int], float] = {}  # rebuilds to retry, and when
        self._changed = threading.Condition()
        self._is_memory_released = True  # since the last job
        self._stopped = False
        self._error = ""
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._writer.end()
        self._thread.join()

    @override
    def submit(self, job: Job, queue_name: QueueName, delay: float = 0.0) -> None:
        with self._changed:
            if parent := spans.current():
                self._parents[job.id] = parent
            if delay:
                self._delayed.append((time.monotonic() + delay, job, queue_name))
            else:
                self._queues[queue_name].append(job)
            self._changed.notify()

    @override
    def begin(self, configuration: str, generation: int | None = None) -> None:
        with self._changed:
            self._maintenance.append(partial(self._begin, configuration, generation))
            self._changed.notify()

    @override
    def keep_keywords(self, collection: str) -> None:
        """Do nothing, because this process's search stores its keyword index when it ends."""

    @override
    def waiting(self) -> dict[str, int]:
        with self._changed:
            delayed = Counter(name for _, _, name in self._delayed)
            return {name.value: len(jobs) + delayed[name] for name, jobs in self._queues.items()}

    @override
    def taken(self) -> int:
        return self._taken

    def is_idle(self) -> bool:
        """Whether no job waits or is being done."""
        return not (self._taken or any(self.waiting().values()))

    def work(self) -> bool:
        """Do the next due work on the caller's thread.

        Returns:
            Whether any work was due.

        Raises:
            StoreError: A store is unavailable. The work is lost; the coordinator sends it again.
        """
        with self._changed:
            work = self._due()
        if work is not None:
            work()
        return work is not None

    def _run(self) -> None:
        while (work := self._next()) is not None:
            try:
                work()
                self._report("")
            except StoreError as error:  # the coordinator sends lost jobs again
                if self._stopped:
                    return
                _log.warning("worker_waits", extra={"error": str(error)})
                self._report(str(error))
                time.sleep(RETRY_INTERVAL_S)
            # No exception may end the thread.
            except Exception:
                _log.exception("worker_failed")

    def _report(self, error: str) -> None:
        """Report an error as a team's worker does, or its end; nothing if there never was one."""
        if error or self._error:
            with suppress(StoreError):
                self._coordination.status.report(WORKER, {"error": error})
        self._error = error

    def _next(self) -> Callable[[], None] | None:
        """Wait for due work; None once stopped."""
        release_at = math.inf if self._is_memory_released else time.monotonic() + RELEASE_AFTER_S
        with self._changed:
            while not self._stopped:
                work = self._due()
                now = time.monotonic()
                if work or now >= release_at:
                    self._is_memory_released = not work
                    return work or self._release_memory
                times = (*(at for at, _, _ in self._delayed), *self._later.values(), release_at)
                due = min(*times, now + 60)
                self._changed.wait(max(due - now, 0.01))
            return None

    def _release_memory(self) -> None:
        """Release the memory used by the last jobs."""
        self._writer.free_memory()
        trim()

    def _due(self) -> Callable[[], None] | None:
        """The next due work, in the order of ``JobQueue``; None if nothing is due."""
        now = time.monotonic()
        for one in [one for one in self._delayed if one[0] <= now]:
            self._delayed.remove(one)
            self._queues[one[2]].append(one[1])
        for asked in [asked for asked, at in self._later.items() if at <= now]:
            del self._later[asked]
            self._maintenance.append(partial(self._begin, *asked))
        if self._queues[QueueName.SAVES]:
            return self._batch(QueueName.SAVES)
        if self._maintenance:
            return self._maintenance.popleft()
        if self._queues[QueueName.BUILDS]:
            return self._batch(QueueName.BUILDS)
        return None

    def _batch(self, queue_name: QueueName) -> Callable[[], None]:
        jobs, together, texts = self._queues[queue_name], [], 0
        most = self._pace.texts(queue_name, self._writer.loaded)
        while jobs and texts < most:
            together.append(jobs.popleft())
            texts += text_count(together[-1])
        self._taken = len(together)  # set here, so that a job always counts as waiting or taken
        return lambda: self._do(together, queue_name, texts)

    def _do(self, jobs: Sequence[Job], queue_name: QueueName, texts: int) -> None:
        began = time.monotonic()
        try:
            parents = [self._parents.pop(job.id, "") for job in jobs]
            collections = {job.collection for job in jobs}
            failures = self._coordination.failures
            with self._writer.holding(collections), processing(jobs, parents):
                for collection in collections:
                    self._before_write(collection)
                    self._coordination.snapshots.drop(collection)
                try:
                    attempt(jobs, queue_name, writer=self._writer, failures=failures, queue=self)
                finally:  # a search opened in the meantime may have stored a snapshot
                    for collection in collections:
                        self._coordination.snapshots.drop(collection)
            self._pace.took(queue_name, texts, time.monotonic() - began)
        finally:
            self._taken = 0

    def _begin(self, configuration: str, generation: int | None) -> None:
        failures = self._coordination.failures
        try:
            maintenance.begin(configuration, generation, writer=self._writer, failures=failures)
        except StoreError:
            if generation is not None:  # a user's rebuild, which nothing else requests again
                with self._changed:
                    self._later[configuration, generation] = time.monotonic() + LATER_S
            raise
