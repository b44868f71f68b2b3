"""Retries: what fails is isolated, repeated, and listed in the end; other items go on."""

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
    """A writer and a queue: each write or submission is noted, and some items are refused.

    Args:
        errors: The error that the items of these ids raise.
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
        """Note a job that is tried again."""
        self.submitted.append((job.id, queue, delay))


def ids_of(job: Job) -> list[str]:
    """What a job writes or removes."""
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
    """The last item of a job cannot be embedded."""
    return {ids_of(job)[-1]: ModelError("It is too odd.")}


def test_jobs_that_succeed_are_written_together() -> None:
    """And how often they were tried is forgotten."""
    failures, fake = MemoryFailures(), Fake({})
    first, second = job_of(1, "a", "b"), job_of(2, "c")
    do([first, second], fake, failures)
    assert fake.written == [[*ids_of(first), *ids_of(second)]]
    assert failures.attempt(first.id) == failures.attempt(second.id) == 1
    assert not fake.counts


def test_one_bad_item_is_tried_again_alone() -> None:
    """Its neighbours are written; it waits twice as long each time, in the same queue."""
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


def test_each_item_has_attempts_of_its_own() -> None:
    """Several that fail together are all tried again equally soon, and as often."""
    failures, job = MemoryFailures(), job_of(1, "a", "b")
    fake = Fake(dict.fromkeys(ids_of(job), ModelError("No.")))
    do([job], fake, failures)
    assert [delay for *_, delay in fake.submitted] == [2.0, 2.0]
    for piece in job.split() * (MAX_ATTEMPTS - 1):
        do([piece], fake, failures)
    assert {failure.attempts for failure in failures.list()} == {MAX_ATTEMPTS}
    assert fake.counts == {"retried": 2 * (MAX_ATTEMPTS - 1), "failed": 2}


def test_the_log_names_the_items_that_fail(caplog: pytest.LogCaptureFixture) -> None:
    """What is written, or else what is removed."""
    written, removed = job_of(1, "a"), job_of(2, removed=("gone",))
    fake = Fake({one: ModelError("No.") for one in (*ids_of(written), "gone")})
    failures = MemoryFailures()
    for _ in range(MAX_ATTEMPTS):
        do([written, removed], fake, failures)
    named = [(record.message, record.__dict__["items"]) for record in caplog.records]
    both = [ids_of(written), ["gone"]]
    retried = [("job_retried", one) for _ in range(MAX_ATTEMPTS - 1) for one in both]
    assert named == [*retried, *(("job_failed", one) for one in both)]


def test_saves_are_tried_again_among_saves() -> None:
    """The queue is that of the job."""
    job = job_of(1, "bad")
    fake = Fake(bad_of(job))
    do([job], fake, MemoryFailures(), QueueName.SAVES)
    assert fake.submitted == [("job-1", QueueName.SAVES, 2.0)]


def test_a_removal_that_fails_is_listed_as_one() -> None:
    """By the mark that a removed item has instead of a hash."""
    failures, job = MemoryFailures(), job_of(1, removed=("gone",))
    fake = Fake({"gone": ModelError("No.")})
    for _ in range(MAX_ATTEMPTS):
        do([job], fake, failures)
    assert failures.list()[0].items == {"gone": REMOVED}


def test_what_the_store_refuses_is_counted() -> None:
    """Each refusal once: that of the whole job, and that of its piece."""
    failures, job = MemoryFailures(), job_of(1, "a", "bad")
    fake = Fake({ids_of(job)[1]: StoreRefusedError("Too large.")})
    do([job], fake, failures)
    assert fake.counts == {"refused": 2, "retried": 1}
    assert fake.written == [ids_of(job)[:1]]
    for _ in range(MAX_ATTEMPTS - 1):
        do([job.split()[1]], fake, failures)
    assert failures.list()[0].error == "Too large."


def test_an_outage_is_no_attempt() -> None:
    """The jobs are done later, as if they had not been tried."""
    failures, job = MemoryFailures(), job_of(1, "a")
    fake = Fake({ids_of(job)[0]: StoreError("Away.")})
    for _ in range(2 * MAX_ATTEMPTS):
        with pytest.raises(StoreError, match="Away"):
            do([job], fake, failures)
    assert failures.attempt(job.id) == 1
    assert not fake.submitted
    assert failures.count() == 0


def test_counts_that_are_unavailable_undo_no_write() -> None:
    """They are for retries alone."""

    class Forgetful(MemoryFailures):
        @override
        def forget(self, jobs: Sequence[str]) -> None:
            raise StoreError("Away.")

    fake = Fake({})
    do([job_of(1, "a")], fake, Forgetful())
    assert len(fake.written) == 1
    assert not fake.submitted


def test_a_job_that_ends_its_worker_is_taken_apart() -> None:
    """First it is retried whole, then item by item; the jobs beside it are done."""
    failures, fake = MemoryFailures(), Fake({})
    job, last, other = job_of(1, "a", "b"), job_of(2, "c"), job_of(3, "d")
    for _ in range(MAX_ATTEMPTS):  # a worker ended in each of these
        for tried in (job, last, *last.split()):
            failures.attempt(tried.id)
    do([other, job, last], fake, failures)
    assert fake.written == [ids_of(other), ids_of(job)[:1], ids_of(job)[1:]]
    [failure] = failures.list()
    assert (failure.id, failure.attempts) == (f"{last.id}.0", MAX_ATTEMPTS)
    assert failure.error == "Its worker was killed each time."


def test_a_job_may_be_tried_as_often_as_allowed() -> None:
    """The last attempt is one, too."""
    failures, fake, job = MemoryFailures(), Fake({}), job_of(1, "a")
    for _ in range(MAX_ATTEMPTS - 1):
        failures.attempt(job.id)
    do([job], fake, failures)
    assert fake.written == [ids_of(job)]
    assert failures.count() == 0


def test_a_piece_of_a_deadly_job_is_tried_again_in_its_queue() -> None:
    """As any other item."""
    failures, job = MemoryFailures(), job_of(1, "a", "bad")
    fake = Fake(bad_of(job))
    for _ in range(MAX_ATTEMPTS):
        failures.attempt(job.id)
    do([job], fake, failures)
    assert fake.written == [ids_of(job)[:1]]
    assert fake.submitted == [("job-1.1", QueueName.BUILDS, 2.0)]


def test_a_worker_that_once_ended_is_no_reason_of_later_failures() -> None:
    """A restarted worker takes none of the attempts, and the list says what was wrong."""
    failures, job = MemoryFailures(), job_of(1, "bad")
    failures.attempt(job.id)  # its worker ended, and the job came back
    fake = Fake(bad_of(job))
    for _ in range(MAX_ATTEMPTS):
        do([job], fake, failures)
    [listed] = failures.list()
    assert (listed.error, listed.attempts) == ("It is too odd.", MAX_ATTEMPTS)
    assert len(fake.submitted) == MAX_ATTEMPTS - 1
