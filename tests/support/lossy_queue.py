"""A queue that a test drives by hand: jobs wait until they are delivered, twice, late, or never."""

from typing_extensions import override

from repertory.indexing.job import Job, JobQueue, QueueName, job_of
from repertory.indexing.keyword_feed import KeywordFeed
from repertory.indexing.writer import Writer


class LossyQueue(JobQueue):
    """A list of jobs, done when a test delivers them; other requests are done at once."""

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
        """Do the job at some place; with ``keep``, it stays to be delivered again."""
        job, _ = (
            self.jobs[place % len(self.jobs)] if keep else self.jobs.pop(place % len(self.jobs))
        )
        self.writer.write([job])
