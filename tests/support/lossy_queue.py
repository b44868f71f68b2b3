"""A queue that a test drives by hand: jobs wait until they are delivered, twice, late, or never."""

from typing_extensions import override

from repertory.indexing.job import Job, JobQueue, QueueName, job_of
from repertory.indexing.writer import Writer


class LossyQueue(JobQueue):
    """Jobs in a list, done when a test delivers them; what is asked beside jobs is done at once."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.jobs: list[tuple[Job, QueueName]] = []

    @override
    def submit(self, job: Job, queue_name: QueueName, delay: float = 0.0) -> None:
        """Keep a job, as the wire would carry it."""
        self.jobs.append((job_of(job.plain()), queue_name))

    @override
    def begin(self, configuration: str, generation: int | None = None) -> None:
        self.writer.begin(configuration, generation)

    @override
    def keep_keywords(self, collection: str) -> None:
        self.writer.keep_keywords(collection)

    @override
    def waiting(self) -> dict[str, int]:
        return {name.value: sum(own is name for _, own in self.jobs) for name in QueueName}

    def deliver(self, place: int, *, keep: bool = False) -> None:
        """Do the job at some place; ``keep`` it to be delivered once more."""
        job, _ = (
            self.jobs[place % len(self.jobs)] if keep else self.jobs.pop(place % len(self.jobs))
        )
        self.writer.write([job])
