"""The batch size of jobs, chosen so that saves need not wait long for a build."""

from repertory.embedding.engine import EmbeddingEngine
from repertory.indexing.job import Job, QueueName

MAX_TEXTS = 256  # that a CPU embeds together
MIN_TEXTS = 32
BATCH_S = 0.5  # the target duration of a build's batch, during which newer saves wait


class Pace:
    """The number of texts per batch, adapted to the duration of the last batches.

    Texts that were embedded before are only written, which is many times faster.
    """

    def __init__(self) -> None:
        self._of_builds = MIN_TEXTS

    def texts(self, queue_name: QueueName, engine: EmbeddingEngine | None) -> int:
        """The number of texts to take from a queue; for a GPU always a whole batch.

        Args:
            queue_name: The queue.
            engine: The embedding engine, if it is loaded.
        """
        if engine and engine.device != "cpu":
            return engine.batch
        return self._of_builds if queue_name is QueueName.BUILDS else MAX_TEXTS

    def took(self, queue_name: QueueName, texts: int, seconds: float) -> None:
        """Record the duration of a batch. The next one is at most twice as large."""
        if queue_name is QueueName.BUILDS and texts:
            fitting = int(texts * BATCH_S / max(seconds, 1e-3))
            self._of_builds = max(MIN_TEXTS, min(fitting, 2 * self._of_builds, MAX_TEXTS))


def text_count(job: Job) -> int:
    """The maximum number of texts that a job embeds; at least one, so that a batch ends."""
    return max(1, sum(len(item.views()) for item in job.items))
