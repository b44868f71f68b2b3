"""The parts of a running server, put together from settings; a team runs each as a process."""

from concurrent.futures import Executor
from functools import cached_property
from pathlib import Path

from repertory.adapters import Adapters
from repertory.embedding.batching import BatchingEngine
from repertory.embedding.device import cores
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.lazy import LazyEngine
from repertory.embedding.load import load_engine
from repertory.errors import ConfigurationError, WeightsUnavailableError
from repertory.index.vectors import VectorStore
from repertory.indexing.collections import IN_FORCE
from repertory.indexing.coordinator import Coordinator
from repertory.indexing.in_process_queue import InProcessQueue
from repertory.indexing.job import JobQueue
from repertory.indexing.writer import Writer
from repertory.search.live import LiveSearch
from repertory.settings import Settings
from repertory.workspace import Workspace


class Parts:
    """What the processes of a server are made of.

    Args:
        settings: What is in force. With a Redis the parts are a team's, else all are in one
            process.
        directory: Where the catalogue is looked for.
    """

    def __init__(self, settings: Settings, directory: Path) -> None:
        self.settings = settings
        self.workspace = Workspace(settings, directory)
        self.adapters = Adapters(settings)

    @property
    def is_team(self) -> bool:
        """Whether the parts are processes of their own."""
        return bool(self.settings.values.redis_url)

    @property
    def in_force(self) -> str:
        """The alias of what is searched: a team has one; embedded, each directory has its own."""
        return IN_FORCE if self.is_team else f"{IN_FORCE}_{self.workspace.key}"

    @cached_property
    def store(self) -> VectorStore:
        """The vector store, the same object for all parts of this process."""
        return self.adapters.store()

    @cached_property
    def queries(self) -> LazyEngine:
        """The embedding engine for queries, those that wait at the same time together."""
        return LazyEngine(lambda: BatchingEngine(self._load(queries_only=True), cores()))

    def live_search(self, reader: Executor) -> LiveSearch:
        """The search; the keyword arm runs on a reader's threads."""
        adapters = self.adapters
        return LiveSearch(
            store=self.store,
            snapshots=adapters.snapshots,
            deltas=adapters.deltas,
            claims=adapters.claims,
            status=adapters.status,
            in_force=self.in_force,
            embedding=self.queries.get,
            reader=reader,
        )

    def writer(self) -> Writer:
        """The worker's side."""
        adapters = self.adapters
        return Writer(
            store=self.store,
            engine=self._engine,
            cache=adapters.cache,
            snapshots=adapters.snapshots,
            tombstones=adapters.tombstones,
            claims=adapters.claims,
            deltas=adapters.deltas,
            status=adapters.status,
        )

    def queue(self) -> JobQueue:
        """A team's queue.

        Raises:
            ConfigurationError: There is none.
        """
        values = self.settings.values
        if not values.redis_url or not values.qdrant_url:
            raise ConfigurationError(
                "A team's server needs REPERTORY_REDIS_URL and REPERTORY_QDRANT_URL; "
                "`repertory serve` needs neither."
            )
        from repertory.indexing.celery_queue import CeleryQueue  # noqa: PLC0415 - Celery is slow

        return CeleryQueue(values.redis_url)

    def in_process_queue(self) -> InProcessQueue:
        """The queue and the worker of a server that is one process."""
        return InProcessQueue(self.writer(), self.adapters.failures, self.adapters.snapshots)

    def coordinator(self, queue: JobQueue) -> Coordinator:
        """The watch service's side."""
        adapters = self.adapters
        return Coordinator(
            store=self.store,
            queue=queue,
            deltas=adapters.deltas,
            snapshots=adapters.snapshots,
            failures=adapters.failures,
            tombstones=adapters.tombstones,
            in_force=self.in_force,
        )

    def _engine(self) -> EmbeddingEngine:
        """The engine for texts; where no model can be had, one that stores words alone."""
        try:
            return self._load(queries_only=False)
        except WeightsUnavailableError as error:
            from repertory.embedding.words import WordsEngine  # noqa: PLC0415 - rarely needed

            return WordsEngine(str(error))

    def _load(self, *, queries_only: bool) -> EmbeddingEngine:
        values = self.settings.values
        return load_engine(
            values.model, values.device, self.settings.data_dir, queries_only=queries_only
        )
