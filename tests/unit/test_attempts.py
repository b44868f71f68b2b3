"""Retries: failing items are isolated, retried and finally listed; other items are written."""

import time
from collections import Counter
from collections.abc import Sequence
from typing import cast

import pytest
from typing_extensions import override

from repertory.coordination.deltas import REMOVED
from repertory.coordination.failures import Failures, MemoryFailures
from repertory.errors import ModelError, StoreError, StoreRefusedError
from repertory.indexing.attempts import MAX_ATTEMPTS, attempt
from repertory.indexing.job import Job, JobQueue, QueueName
from repertory.indexing.writer import Writer
from tests.support.builders import skill


class Fake:
    """A writer and a queue that record writes and submissions, and refuse some items.

    Args:
        errors: The error to raise for each item id.
    """

    def __init__(self, errors: dict[str, Exception]) -> None:
        self.errors = errors
        self.written: list[list[str]] = []
        self.submitted: list[tuple[str, QueueName, float]] = []
        self.counts: Counter[str] = Counter()

    def write(self, jobs: Sequence[Job]) -> None:
        """Write jobs, or raise the error of the first item that has one."""
        ids = [one for job in jobs for one in ids_of(job)]
        for one in ids:
            if one in self.errors:
                raise self.errors[one]
        self.written.append(ids)

    def count(self, **counts: int) -> None:
        """Count events."""
        self.counts.update(counts)

    def submit(self, job: Job, queue: QueueName, delay: float = 0.0) -> None:
        """Record a job that is retried."""
        self.submitted.append((job.id, queue, delay))


def ids_of(job: Job) -> list[str]:
    """The ids of the items that a job writes or removes."""
    return [item.id for item in job.items] or [*job.removed]


def job_of(number: int, *names: str, removed: tuple[str, ...] = ()) -> Job:
    """A job that writes the skills of these names."""
    items = tuple(skill(name, f"Does {name}") for name in names)
    return Job(id=f"job-{number}", collection="c", revision=1, items=items, removed=removed)


def do(
    jobs: Sequence[Job],
    fake: Fake,
    failures: Failures,
    queue: QueueName = QueueName.BUILDS,
) -> None:
    """Attempt some jobs."""
    attempt(
        jobs, queue, writer=cast("Writer", fake), failures=failures, queue=cast("JobQueue", fake)
    )


def bad_of(job: Job) -> dict[str, Exception]:
    """An error for the last item of a job."""
    return {ids_of(job)[-1]: ModelError("It is too odd.")}


def test_jobs_that_succeed_are_written_together() -> None:
    """Their numbers of attempts are reset."""
    failures, fake = MemoryFailures(), Fake({})
    first, second = job_of(1, "a", "b"), job_of(2, "c")
    do([first, second], fake, failures)
    assert fake.written == [[*ids_of(first), *ids_of(second)]]
    assert failures.attempt(first.id) == failures.attempt(second.id) == 1
    assert not fake.counts


def test_one_bad_item_is_retried_alone() -> None:
    """Its neighbours are written. It stays in its queue, and its delay doubles each time."""
    failures, job = MemoryFailures(), job_of(1, "a", "b", "bad")
    fake = Fake(bad_of(job))
    do([job_of(2, "c"), job], fake, failures)
    assert sorted(one for part in fake.written for one in part) == sorted(
        [*ids_of(job_of(2, "c")), *ids_of(job)[:2]]
    )
    assert fake.submitted == [("job-1.2", QueueName.BUILDS, 2.0)]
    assert fake.counts == {"retried": 1}

    piece = job.split()[2]
    do([piece], fake, failures)
    assert fake.submitted[1:] == [("job-1.2", QueueName.BUILDS, 4.0)]
    assert failures.count() == 0

    before = time.time()
    do([piece], fake, failures)
    assert len(fake.submitted) == 2
    [failure] = failures.list()
    assert (failure.id, failure.collection) == ("job-1.2", "c")
    assert failure.items == {piece.items[0].id: piece.items[0].metadata_hash()}
    assert (failure.error, failure.attempts) == ("It is too odd.", MAX_ATTEMPTS)
    assert before <= failure.at <= time.time()
    assert fake.counts == {"retried": 2, "failed": 1}


def test_each_item_has_its_own_attempts() -> None:
    """Items that fail together have the same delays and the same number of retries."""
    failures, job = MemoryFailures(), job_of(1, "a", "b")
    fake = Fake(dict.fromkeys(ids_of(job), ModelError("No.")))
    do([job], fake, failures)
    assert [delay for *_, delay in fake.submitted] == [2.0, 2.0]
    for piece in job.split() * (MAX_ATTEMPTS - 1):
        do([piece], fake, failures)
    assert {failure.attempts for failure in failures.list()} == {MAX_ATTEMPTS}
    assert fake.counts == {"retried": 2 * (MAX_ATTEMPTS - 1), "failed": 2}


def test_the_log_names_the_items_that_fail(caplog: pytest.LogCaptureFixture) -> None:
    """The log names the written items of a job, or else its removed items."""
    written, removed = job_of(1, "a"), job_of(2, removed=("gone",))
    fake = Fake({one: ModelError("No.") for one in (*ids_of(written), "gone")})
    failures = MemoryFailures()
    for _ in range(MAX_ATTEMPTS):
        do([written, removed], fake, failures)
    named = [(record.message, record.__dict__["items"]) for record in caplog.records]
    both = [ids_of(written), ["gone"]]
    retried = [("job_retried", one) for _ in range(MAX_ATTEMPTS - 1) for one in both]
    assert named == [*retried, *(("job_failed", one) for one in both)]


def test_a_save_is_retried_in_the_queue_of_saves() -> None:
    """A retry stays in the queue of its job."""
    job = job_of(1, "bad")
    fake = Fake(bad_of(job))
    do([job], fake, MemoryFailures(), QueueName.SAVES)
    assert fake.submitted == [("job-1", QueueName.SAVES, 2.0)]


def test_a_failed_removal_is_listed_as_a_removal() -> None:
    """A removed item is listed with the removal mark instead of a hash."""
    failures, job = MemoryFailures(), job_of(1, removed=("gone",))
    fake = Fake({"gone": ModelError("No.")})
    for _ in range(MAX_ATTEMPTS):
        do([job], fake, failures)
    assert failures.list()[0].items == {"gone": REMOVED}


def test_refusals_of_the_store_are_counted() -> None:
    """Each refusal counts once: for the whole job, and for its piece."""
    failures, job = MemoryFailures(), job_of(1, "a", "bad")
    fake = Fake({ids_of(job)[1]: StoreRefusedError("Too large.")})
    do([job], fake, failures)
    assert fake.counts == {"refused": 2, "retried": 1}
    assert fake.written == [ids_of(job)[:1]]
    for _ in range(MAX_ATTEMPTS - 1):
        do([job.split()[1]], fake, failures)
    assert failures.list()[0].error == "Too large."


def test_an_outage_is_no_attempt() -> None:
    """No attempt is counted, because the jobs will be done after the outage."""
    failures, job = MemoryFailures(), job_of(1, "a")
    fake = Fake({ids_of(job)[0]: StoreError("Away.")})
    for _ in range(2 * MAX_ATTEMPTS):
        with pytest.raises(StoreError, match="Away"):
            do([job], fake, failures)
    assert failures.attempt(job.id) == 1
    assert not fake.submitted
    assert failures.count() == 0


def test_a_write_succeeds_even_if_its_attempts_cannot_be_reset() -> None:
    """The number of attempts matters only for retries."""

    class Forgetful(MemoryFailures):
        @override
        def forget(self, jobs: Sequence[str]) -> None:
            raise StoreError("Away.")

    fake = Fake({})
    do([job_of(1, "a")], fake, Forgetful())
    assert len(fake.written) == 1
    assert not fake.submitted


def test_a_job_that_kills_its_worker_is_split_into_items() -> None:
    """Its items are then tried one by one, and a deadly item is listed; other jobs are done."""
    failures, fake = MemoryFailures(), Fake({})
    job, last, other = job_of(1, "a", "b"), job_of(2, "c"), job_of(3, "d")
    for _ in range(MAX_ATTEMPTS):  # each of these attempts killed its worker
        for tried in (job, last, *last.split()):
            failures.attempt(tried.id)
    do([other, job, last], fake, failures)
    assert fake.written == [ids_of(other), ids_of(job)[:1], ids_of(job)[1:]]
    [failure] = failures.list()
    assert (failure.id, failure.attempts) == (f"{last.id}.0", MAX_ATTEMPTS)
    assert failure.error == "Its worker was killed each time."


def test_the_last_allowed_attempt_is_made() -> None:
    """A job with one attempt left is tried as a whole."""
    failures, fake, job = MemoryFailures(), Fake({}), job_of(1, "a")
    for _ in range(MAX_ATTEMPTS - 1):
        failures.attempt(job.id)
    do([job], fake, failures)
    assert fake.written == [ids_of(job)]
    assert failures.count() == 0


def test_a_piece_of_a_deadly_job_is_retried_in_its_queue() -> None:
    """A failing piece is retried like any other item."""
    failures, job = MemoryFailures(), job_of(1, "a", "bad")
    fake = Fake(bad_of(job))
    for _ in range(MAX_ATTEMPTS):
        failures.attempt(job.id)
    do([job], fake, failures)
    assert fake.written == [ids_of(job)[:1]]
    assert fake.submitted == [("job-1.1", QueueName.BUILDS, 2.0)]


def test_a_killed_worker_does_not_count_as_an_attempt() -> None:
    """The item has all its attempts, and is listed with its own error."""
    failures, job = MemoryFailures(), job_of(1, "bad")
    failures.attempt(job.id)  # its worker was killed, and the job was delivered again
    fake = Fake(bad_of(job))
    for _ in range(MAX_ATTEMPTS):
        do([job], fake, failures)
    [listed] = failures.list()
    assert (listed.error, listed.attempts) == ("It is too odd.", MAX_ATTEMPTS)
    assert len(fake.submitted) == MAX_ATTEMPTS - 1
