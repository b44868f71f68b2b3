"""A queue that a test drives by hand: jobs wait until they are delivered, twice, late, or never."""

from repertory.indexing.job import Job, QueueName, job_of
from repertory.indexing.writer import Writer


class LossyQueue:
    """Jobs in a list. What workers do otherwise is done when a test says so."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.jobs: list[tuple[Job, QueueName]] = []

    def submit(self, job: Job, queue_name: QueueName, delay: float = 0.0) -> None:  # noqa: ARG002 - no clock
        """Keep a job, as the wire would carry it."""
        self.jobs.append((job_of(job.plain()), queue_name))

    def begin(self, configuration: str, generation: int | None = None) -> None:
        """Do it at once."""
        self.writer.begin(configuration, generation)

    def keep_keywords(self, collection: str) -> None:
        """Do it at once."""
        self.writer.keep_keywords(collection)

    def waiting(self) -> dict[str, int]:
        """How many jobs wait in each queue."""
        return {name.value: sum(own is name for _, own in self.jobs) for name in QueueName}

    def deliver(self, place: int, *, keep: bool = False) -> None:
        """Do the job at some place; ``keep`` it to be delivered once more."""
        job, _ = (
            self.jobs[place % len(self.jobs)] if keep else self.jobs.pop(place % len(self.jobs))
        )
        self.writer.write([job])
