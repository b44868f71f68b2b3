"""A queue whose jobs wait until the test delivers them: late, repeatedly, or never."""

from typing_extensions import override

from repertory.indexing.job import Job, JobQueue, QueueName, job_of
from repertory.indexing.keyword_feed import KeywordFeed
from repertory.indexing.writer import Writer


class LossyQueue(JobQueue):
    """A list of jobs that run when the test delivers them; other requests run at once."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.jobs: list[tuple[Job, QueueName]] = []

    @override
    def submit(self, job: Job, queue_name: QueueName, delay: float = 0.0) -> None:
        """Store a job in its encoded form."""
        self.jobs.append((job_of(job.plain()), queue_name))

    @override
    def begin(self, configuration: str, generation: int | None = None) -> None:
        self.writer.begin(configuration, generation)

    @override
    def keep_keywords(self, collection: str) -> None:
        store, coordination = self.writer._store, self.writer._coordination
        if collection in store.collections():
            with store.open(collection) as opened:
                KeywordFeed(opened, coordination).keep()

    @override
    def waiting(self) -> dict[str, int]:
        return {name.value: sum(own is name for _, own in self.jobs) for name in QueueName}

    @override
    def taken(self) -> int:
        return 0

    def deliver(self, place: int, *, keep: bool = False) -> None:
        """Run the job at a position (modulo the length); ``keep`` leaves it in the queue."""
        job, _ = (
            self.jobs[place % len(self.jobs)] if keep else self.jobs.pop(place % len(self.jobs))
        )
        self.writer.write([job])
