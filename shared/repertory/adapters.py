"""Which adapter stands behind each port: the embedded ones, or a team's servers.

With a Redis there is a team: processes that tell each other through it. Without one, everything is
in this process, and what it tells itself is kept in memory.
"""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from repertory.coordination.claims import Claims, MemoryClaims, RedisClaims
from repertory.coordination.deltas import Deltas, MemoryDeltas, RedisDeltas
from repertory.coordination.failures import Failures, MemoryFailures, RedisFailures
from repertory.coordination.status import MemoryStatus, RedisStatus, StatusBoard
from repertory.coordination.tombstones import MemoryTombstones, RedisTombstones, Tombstones
from repertory.index.edge import EdgeStore
from repertory.index.keywords.snapshot import FileSnapshots, SnapshotStore
from repertory.index.vectors import VectorStore
from repertory.settings import Settings

if TYPE_CHECKING:
    from repertory.coordination.redis_server import RedisServer
    from repertory.embedding.models import Model
    from repertory.index.cache import VectorCache


class Adapters:
    """The adapters that some settings ask for, each made when it is first needed.

    Args:
        settings: What is in force.
        folder: Where the embedded ones keep what they keep.
    """

    def __init__(self, settings: Settings, folder: Path | None = None) -> None:
        self._values = settings.values
        self._folder = folder or settings.data_dir

    def store(self, patience: float = 5.0) -> VectorStore:
        """The vector store.

        Args:
            patience: Seconds that the embedded one waits for another process.
        """
        values = self._values
        if values.qdrant_url and not values.no_cache:
            from repertory.index.qdrant import QdrantStore  # noqa: PLC0415 - a second to import

            return QdrantStore(values.qdrant_url, values.qdrant_api_key)
        return EdgeStore(self._folder, patience)

    def cache(self, model: "Model") -> "VectorCache":
        """The vectors of a model that were ever made; a team's workers share them."""
        values = self._values
        if values.qdrant_url and values.redis_url and not values.no_cache:
            from repertory.index.qdrant_cache import QdrantVectorCache  # noqa: PLC0415 - likewise

            return QdrantVectorCache(values.qdrant_url, values.qdrant_api_key, model)
        from repertory.index.cache import SqliteVectorCache  # noqa: PLC0415 - a search needs none

        return SqliteVectorCache(self._folder / "vectors.sqlite", model.dimension)

    @cached_property
    def snapshots(self) -> SnapshotStore:
        """The keyword snapshots."""
        if self._redis:
            from repertory.index.keywords.redis_snapshots import (  # noqa: PLC0415 - likewise
                RedisSnapshots,
            )

            return RedisSnapshots(self._redis)
        return FileSnapshots(self._folder / "keywords")

    @cached_property
    def tombstones(self) -> Tombstones:
        """What was deleted."""
        if self._redis:
            return RedisTombstones(self._redis)
        return MemoryTombstones()

    @cached_property
    def claims(self) -> Claims:
        """Who does what."""
        if self._redis:
            return RedisClaims(self._redis)
        return MemoryClaims()

    @cached_property
    def deltas(self) -> Deltas:
        """What was just written."""
        if self._redis:
            return RedisDeltas(self._redis)
        return MemoryDeltas()

    @cached_property
    def failures(self) -> Failures:
        """The jobs that were given up."""
        if self._redis:
            return RedisFailures(self._redis)
        return MemoryFailures()

    @cached_property
    def status(self) -> StatusBoard:
        """What processes say of themselves."""
        if self._redis:
            return RedisStatus(self._redis)
        return MemoryStatus()

    @cached_property
    def _redis(self) -> "RedisServer | None":
        if not self._values.redis_url or self._values.no_cache:
            return None
        from repertory.coordination.redis_server import RedisServer  # noqa: PLC0415

        return RedisServer(self._values.redis_url)
