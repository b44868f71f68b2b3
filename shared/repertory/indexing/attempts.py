"""Retries: a failing job is isolated from its neighbours, retried, then listed as failed.

A job fails if its worker is killed, its items cannot be embedded, or the store refuses them. An
unavailable store fails no job.
"""

import contextlib
import logging
import time
from collections.abc import Sequence

from repertory.coordination.deltas import REMOVED
from repertory.coordination.failures import Failure, Failures
from repertory.errors import StoreError, StoreRefusedError
from repertory.indexing.job import Job, JobQueue, QueueName
from repertory.indexing.writer import Writer

MAX_ATTEMPTS = 3

_log = logging.getLogger(__name__)


def attempt(
    jobs: Sequence[Job],
    queue_name: QueueName,
    *,
    writer: Writer,
    failures: Failures,
    queue: JobQueue,
) -> None:
    """Do jobs together; if that fails, do each job alone, then each item of a failing job alone.

    An item that fails alone is retried with back-off, and fails for good after ``MAX_ATTEMPTS``.
    If jobs kill their worker, they are first retried together ``MAX_ATTEMPTS`` times, because the
    cause is unknown. Then each of their items is done alone. An item that kills its worker
    ``MAX_ATTEMPTS`` times fails for good, too.

    Raises:
        StoreError: A store is unavailable, which is no job's fault. Do the same jobs later.
    """
    _Attempt(queue_name, writer, failures, queue).run(jobs)


class _Attempt:
    """One attempt at jobs, which are split where they fail."""

    def __init__(
        self, queue_name: QueueName, writer: Writer, failures: Failures, queue: JobQueue
    ) -> None:
        self._queue_name = queue_name
        self._writer = writer
        self._failures = failures
        self._queue = queue

    def run(self, jobs: Sequence[Job]) -> None:
        """Do the jobs that did not kill their worker too often, then the items of the others."""
        tried = {job.id: self._failures.attempt(job.id) for job in jobs}
        harmless = [job for job in jobs if tried[job.id] <= MAX_ATTEMPTS]
        if harmless:
            self._start(harmless)
        for job in jobs:
            if tried[job.id] > MAX_ATTEMPTS:
                for piece in job.split():  # most items are harmless
                    self._run_alone(piece)

    def _run_alone(self, piece: Job) -> None:
        """Do a job of one item, unless it killed its worker too often."""
        tried = self._failures.attempt(piece.id)
        if tried <= MAX_ATTEMPTS:
            self._start([piece])
        else:
            self._fail(piece, tried - 1, "Its worker was killed each time.")

    def _start(self, jobs: Sequence[Job]) -> None:
        try:
            self._do(jobs)
        except StoreError:
            self._forget(jobs)  # this attempt does not count
            raise

    def _do(self, jobs: Sequence[Job]) -> None:
        try:
            self._writer.write(jobs)
            self._forget(jobs)
        except StoreRefusedError as error:
            self._writer.count(refused=1)
            self._take_apart(jobs, error)
        except StoreError:
            raise
        # Whatever exception one item causes, the other items are done.
        except Exception as error:
            self._take_apart(jobs, error)

    def _take_apart(self, jobs: Sequence[Job], error: Exception) -> None:
        pieces = jobs if len(jobs) > 1 else jobs[0].split()
        if len(pieces) > 1:
            for piece in pieces:
                self._do([piece])
        else:
            self._retry_or_fail(jobs[0], str(error))

    def _retry_or_fail(self, job: Job, error: str) -> None:
        """Retry a job of one item later, or fail it."""
        # Counted separately: the other counter is for jobs that kill their worker.
        tried = self._failures.attempt(f"{job.id}:failed")
        if tried < MAX_ATTEMPTS:
            self._forget([job])
            extra = {"job": job.id, "items": _ids(job), "attempt": tried, "error": error}
            _log.warning("job_retried", extra=extra)
            self._queue.submit(job, self._queue_name, delay=2.0**tried)
            self._writer.count(retried=1)
        else:
            self._fail(job, tried, error)

    def _forget(self, jobs: Sequence[Job]) -> None:
        """Reset the attempts of jobs. Errors are ignored, because the job itself is done."""
        with contextlib.suppress(StoreError):
            self._failures.forget([job.id for job in jobs])

    def _fail(self, job: Job, tried: int, error: str) -> None:
        """Add a job of one item to the list of failures."""
        self._writer.count(failed=1)
        extra = {"job": job.id, "items": _ids(job), "attempt": tried, "error": error}
        _log.error("job_failed", extra=extra)
        self._failures.add(
            Failure(
                id=job.id,
                collection=job.collection,
                items={item.id: item.metadata_hash() for item in job.items}
                | dict.fromkeys(job.removed, REMOVED),
                error=error,
                at=time.time(),
                attempts=tried,
            )
        )


def _ids(job: Job) -> list[str]:
    return [item.id for item in job.items] or list(job.removed)
