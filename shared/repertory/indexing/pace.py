"""How many texts are done at once, so that saves come between those of a build."""

from repertory.embedding.engine import EmbeddingEngine
from repertory.indexing.job import Job, QueueName

MAX_TEXTS = 256  # that a CPU embeds together
MIN_TEXTS = 32
BATCH_S = 0.5  # that a batch of a build should take: meanwhile its process takes no newer save


class Pace:
    """The texts of a batch, by the time that the last ones took.

    Texts that were embedded before are only written, which is many times faster.
    """

    def __init__(self) -> None:
        self._of_builds = MIN_TEXTS

    def texts(self, queue_name: QueueName, engine: EmbeddingEngine | None) -> int:
        """How many to take from a queue; for a GPU it is always a whole batch.

        Args:
            queue_name: The queue.
            engine: What embeds them, if it is loaded.
        """
        if engine and engine.device != "cpu":
            return engine.batch
        return self._of_builds if queue_name is QueueName.BUILDS else MAX_TEXTS

    def took(self, queue_name: QueueName, texts: int, seconds: float) -> None:
        """Note how long a batch took; the next one is twice as large at most."""
        if queue_name is QueueName.BUILDS and texts:
            fitting = int(texts * BATCH_S / max(seconds, 1e-3))
            self._of_builds = max(MIN_TEXTS, min(fitting, 2 * self._of_builds, MAX_TEXTS))


def text_count(job: Job) -> int:
    """The most texts that a job may embed; at least one, so that a batch ends."""
    return max(1, sum(len(item.views()) for item in job.items))
