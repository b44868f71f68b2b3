"""The composition root: chooses the adapter of each port and connects the parts.

With Redis, the parts are processes of a team's server. Without it, they all run in this process:
in the embedded server or a one-shot command.
"""

from collections.abc import Callable
from concurrent.futures import Executor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from repertory.coordination.ports import Coordination, on_redis
from repertory.data_directory import MODELS, REVIEWS, STATUS, USAGE, VECTORS
from repertory.embedding.batching import BatchingEngine
from repertory.embedding.device import cores
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.lazy import LazyEngine
from repertory.embedding.load import load_engine
from repertory.embedding.models import Model
from repertory.embedding.words import WordsEngine
from repertory.errors import WeightsUnavailableError
from repertory.index.keywords.document import Entry
from repertory.index.vectors import VectorStore
from repertory.live_search.live import LiveSearch
from repertory.project.workspace import Workspace
from repertory.search.calibration import calibrate
from repertory.settings import Settings
from repertory.shared_objects import SharedObjects
from repertory.system.progress import Download, Progress
from repertory.watch_status import watch_status

if TYPE_CHECKING:  # a search imports none of these
    from repertory.index.cache import VectorCache
    from repertory.index.qdrant_connection import Replication
    from repertory.indexing.celery_queue import CeleryQueue
    from repertory.indexing.coordinator import Affordable, Coordinator
    from repertory.indexing.job import JobQueue
    from repertory.indexing.writer import Writer
    from repertory.review.store import ReviewStore
    from repertory.usage.recorder import UsageRecorder
    from repertory.usage.store import UsageStore


class Parts:
    """The parts that the settings call for, each created at its first use.

    Args:
        settings: The active settings.
        directory: The directory of the catalogue.
        folder: Where the embedded adapters store their data; by default the data directory.
        lock_timeout: Seconds that the embedded store waits for another process.
        download: Called with the progress of a model's download.
        progress: Called with the progress of a model's calibration.
        shared: Objects shared with other projects of this process; None if it has one project.

    Attributes:
        notices: What the user should know about the model and the index, one sentence each.
    """

    def __init__(
        self,
        settings: Settings,
        directory: Path,
        *,
        folder: Path | None = None,
        lock_timeout: float = 5.0,
        download: Download | None = None,
        progress: Progress | None = None,
        shared: SharedObjects | None = None,
    ) -> None:
        self.settings = settings
        self.workspace = Workspace(settings, directory)
        self.notices: list[str] = []
        self._folder = folder or settings.data_dir
        self._lock_timeout = lock_timeout
        self._download = download
        self._progress = progress
        self._shared = shared or SharedObjects()

    @property
    def is_team(self) -> bool:
        """Whether the parts are processes of a team's server."""
        return self.settings.is_of_team

    @property
    def active(self) -> str:
        """The alias of the searched collection: one per team, or per workspace if embedded."""
        namespace = self.settings.values.namespace
        return namespace if self.is_team else f"{namespace}_{self.workspace.key}"

    @cached_property
    def store(self) -> VectorStore:
        """The vector store, the same object for all parts of this process."""
        values = self.settings.values
        if values.qdrant_url and not values.no_cache:
            from repertory.index.qdrant import QdrantStore  # noqa: PLC0415 - not needed if embedded

            return QdrantStore(values.qdrant_url, values.qdrant_api_key, self._replication())
        return self._shared.store(self._folder, self._lock_timeout)

    @cached_property
    def coordination(self) -> Coordination:
        """How the parts coordinate."""
        url = self.settings.values.redis_url
        if self.is_team and url:
            from repertory.coordination.redis_server import RedisServer  # noqa: PLC0415 - slow

            return on_redis(RedisServer(url, self.settings.values.namespace))
        status_file = self._folder / STATUS / f"{self.workspace.key}.json"
        return self._shared.coordination(self._folder, status_file)

    @cached_property
    def queries(self) -> LazyEngine:
        """The calibrated engine for queries; concurrent queries are embedded together."""

        def load() -> EmbeddingEngine:
            engine = self._load(queries_only=True)
            self.calibrate(engine)
            return BatchingEngine(engine, cores())

        return self._shared.one(self._model_key("queries"), lambda: LazyEngine(load))

    def live_search(
        self, reader: Executor, is_gone: Callable[[Entry], bool] | None = None
    ) -> LiveSearch:
        """The search.

        Args:
            reader: Runs the keyword search.
            is_gone: As for ``SearchEngine``.
        """
        return LiveSearch(
            store=self.store,
            coordination=self.coordination,
            active=self.active,
            embedding=self.queries.get,
            reader=reader,
            is_shared=self.is_team,
            folder=self._folder,
            is_gone=is_gone,
        )

    def text_engine(self, *, words_suffice: bool = True) -> EmbeddingEngine:
        """The engine that embeds items.

        Args:
            words_suffice: If no model is available, fall back to an engine without vectors.

        Raises:
            ModelError: There is no model, or it cannot be used.
        """
        try:
            return self._shared.one(
                self._model_key("texts"), lambda: self._load(queries_only=False)
            )
        except WeightsUnavailableError as error:
            if not words_suffice:
                raise
            return WordsEngine(str(error))

    def calibrate(self, engine: EmbeddingEngine) -> None:
        """Calibrate the model of an engine, unless that was done before.

        Raises:
            ModelError: The engine failed.
        """
        calibrate(engine, self._folder / MODELS, self._progress)

    def cache(self, model: Model) -> "VectorCache":
        """The vector cache of a model; a team's workers share it."""
        values = self.settings.values
        if values.qdrant_url and self.is_team:
            from repertory.index.qdrant_cache import QdrantVectorCache  # noqa: PLC0415 - as above

            return QdrantVectorCache(
                values.qdrant_url,
                values.qdrant_api_key,
                model,
                self._replication(),
                namespace=values.namespace,
            )
        from repertory.index.cache import SqliteVectorCache  # noqa: PLC0415 - not for a search

        return SqliteVectorCache(self._folder / VECTORS, model.dimension)

    def _replication(self) -> "Replication":
        """How a Qdrant cluster replicates and shards new collections."""
        from repertory.index.qdrant_connection import Replication  # noqa: PLC0415 - as above

        values = self.settings.values
        return Replication(
            replication_factor=values.qdrant_replication_factor or None,
            shard_number=values.qdrant_shard_number or None,
            write_consistency_factor=values.qdrant_write_consistency or None,
        )

    def writer(self, engine: Callable[[], EmbeddingEngine] | None = None) -> "Writer":
        """The writer, which a worker uses to change the index.

        Args:
            engine: Returns the engine for texts; None for ``text_engine``.
        """
        from repertory.indexing.writer import Writer  # noqa: PLC0415 - not for a search

        return Writer(
            store=self.store,
            engine=engine or self.text_engine,
            cache=self.cache,
            coordination=self.coordination,
            active=self.active,
            notify=self.notices.append,
        )

    def queue(self) -> "CeleryQueue":
        """The queue of a team's server.

        Raises:
            ConfigurationError: The settings name no team's server.
        """
        redis_url = self.settings.team_redis()
        from repertory.indexing.celery_queue import CeleryQueue  # noqa: PLC0415 - Celery is slow

        return CeleryQueue(redis_url, self.settings.values.namespace)

    def coordinator(
        self, queue: "JobQueue", affordable: "Affordable" = lambda items: items
    ) -> "Coordinator":
        """The coordinator; it continues from the last report on the status board."""
        from repertory.indexing.coordinator import Coordinator  # noqa: PLC0415 - not for a search
        from repertory.review.gate import Gate  # noqa: PLC0415 - as above

        return Coordinator(
            store=self.store,
            queue=queue,
            coordination=self.coordination,
            active=self.active,
            last=watch_status(self.coordination.status),
            affordable=affordable,
            gate=Gate(self.reviews, records=not self.settings.values.no_cache),
            keep_unused_s=self.settings.values.keep_unused * 86_400,
        )

    @property
    def reviews(self) -> "ReviewStore":
        """The approvals of the catalogue. A team's processes share them in the data folder.

        They are not a cache: pending items are withheld even if caches are off.
        """
        from repertory.review.store import ReviewStore  # noqa: PLC0415 - not for a search

        name = self.settings.values.namespace if self.is_team else self.workspace.catalogue_key
        return ReviewStore(self.settings.data_dir / REVIEWS / f"{name}.sqlite")

    @property
    def usage(self) -> "UsageStore":
        """The recorded searches and uses. A team's processes share them in the data folder."""
        from repertory.usage.store import UsageStore  # noqa: PLC0415 - not for a search

        values = self.settings.values
        name = values.namespace if self.is_team else self.workspace.directory_key
        return UsageStore(
            self._folder / USAGE / f"{name}.sqlite",
            values.insights_max_age,
            values.insights_max_events,
        )

    def usage_recorder(self) -> "UsageRecorder":
        """The recorder of usage, which records only what the settings allow."""
        from repertory.usage.recorder import UsageRecorder  # noqa: PLC0415 - not for a search

        record = self.settings.values.insights_record
        store = None if record == "off" else self.usage
        return UsageRecorder(store, has_queries=record == "plain")

    def _model_key(self, use: str) -> tuple[str, ...]:
        values = self.settings.values
        return (use, values.model or "", values.device, str(self.settings.data_dir))

    def _load(self, *, queries_only: bool) -> EmbeddingEngine:
        values = self.settings.values
        return load_engine(
            values.model,
            values.device,
            self.settings.data_dir,
            cache=self._folder / MODELS,
            queries_only=queries_only,
            progress=self._download,
            warn=None if queries_only else self.notices.append,
        )
