"""Creates, opens, rebuilds and closes shards of Qdrant's engine.

This hides some problems of the engine from callers. It holds the GIL while it works, so writes are
small. On a full disk it crashes with a bus error, so free space is checked before it opens or
writes. It panics on some damaged files.
"""

import contextlib
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import qdrant_edge as engine

from repertory.index import layout
from repertory.index.edge_errors import LOCKED, translated
from repertory.index.edge_files import (
    beside,
    largest_sparse,
    read_ahead,
    replace_with,
    require_room,
    sync,
)
from repertory.index.lock import StoreLock
from repertory.system.files import narrow

# One payload field for all filters, with values such as ``kind:tool`` or ``tags:git``. A single
# index is used because each one adds 7 ms to opening a collection, for which every search from a
# shell waits.
FACETS = "facets"

STARTING_S = 10.0  # how long a process may take to start

# In graphs of at least this many points, the engine drops deleted points once they are a fifth.
DROPPED_FROM = 1_100  # the engine's limit is 1,000; our sizes are multiples of 64
# A shard is rebuilt after this many written points, if they are as many as its points, because most
# points in its files may be obsolete by then.
WRITTEN_FROM = 10_000

MAX_SINCE = 200  # writes during a rebuild, which are kept to repeat them on the copy


class OpenShard:
    """An open shard of this process. Threads may share it; the engine serves one at a time.

    Attributes:
        path: Its directory.
        users: Its users; the last one closes it.
        sparse: See ``largest_sparse``.
        is_flushed: Whether nothing was written since the last ``flush``.
        written: The number of points written since it was opened or rebuilt. The engine does not
            free the space of replaced and deleted points.
    """

    def __init__(self, path: Path, lock: StoreLock) -> None:
        """Open the shard at a path whose lock is held; closing releases the lock."""
        self.path = path
        self.users: set[object] = set()
        self._lock = lock
        self._writing = threading.Lock()  # orders writes; always taken before ``_using``
        self._using = threading.Lock()  # guards the engine, which is replaced after a rebuild
        self._rebuilding = threading.Lock()
        # Writes since a copy was made; None if no rebuild is running.
        self._since: list[engine.UpdateOperation] | None = None
        self._is_closed = False
        with translated(path):
            require_room(path)
            self._engine: engine.EdgeShard | None = _loaded(path)
            if lock.was_left:  # a killed holder may have left writes in the log only
                self._engine.flush()
            self.sparse = largest_sparse(path)
        self.is_flushed = False  # the log may have writes of an earlier process
        self.written = 0

    @contextlib.contextmanager
    def using(self) -> Iterator[engine.EdgeShard]:
        """The engine, with its errors translated. Do not keep it after the block."""
        with translated(self.path), self._using:
            if self._engine is None:  # it could not be opened after a rebuild
                self._engine = _loaded(self.path)
            yield self._engine

    def update(self, operation: engine.UpdateOperation, points: int = 0) -> None:
        """Run an operation that writes this many points, or deletes some."""
        with self._writing:
            with self.using() as shard:
                require_room(self.path)
                self.is_flushed = False
                shard.update(operation)
            self.written += points
            # One more than ``MAX_SINCE`` marks an overflow; further writes are not kept.
            if self._since is not None and len(self._since) <= MAX_SINCE:
                self._since.append(operation)

    def rebuild(self, rebuilt: Callable[[Path], bool]) -> bool:
        """Rebuild a copy of the files and switch to it. Reads and writes continue meanwhile.

        Args:
            rebuilt: Called with the closed copy; returns whether to use it.

        Returns:
            Whether the copy is used. It is not if there were too many writes in the meantime, or if
            the shard was closed; its lock is then released at the end.
        """
        copy = beside(self.path, "copy")
        with self._rebuilding, translated(self.path):
            with self._writing:
                if self._is_closed:
                    return False
                self._since = []
            try:
                with self._writing:
                    self.flush()
                    shutil.rmtree(copy, ignore_errors=True)
                    shutil.copytree(self.path, copy)
                    self._since = []
                if not rebuilt(copy):
                    return False
                for path in (copy, *copy.rglob("*")):
                    sync(path)
                return self._switch_to(copy)
            finally:
                shutil.rmtree(copy, ignore_errors=True)
                with self._writing:
                    self._since = None
                    if self._is_closed:
                        self._lock.release()

    def flush(self) -> None:
        """Make everything written so far safe against power loss."""
        with self.using() as shard:
            if self.is_flushed:  # avoid a wait for the disk, which would block all threads
                return
            shard.flush()
            self.sparse = largest_sparse(self.path)
            narrow(self.path)
            self.is_flushed = True

    def close(self) -> None:
        """Flush and close; release the lock, or leave that to a running rebuild."""
        with self._writing:
            self._is_closed = True
            try:
                with self.using() as shard:
                    shard.close()
                    narrow(self.path)  # the engine creates files that other users may read
            finally:
                if self._since is None:
                    self._lock.release()

    def _switch_to(self, copy: Path) -> bool:
        with self._writing:
            since = self._since or []
            if self._is_closed or len(since) > MAX_SINCE:
                return False
            newer = engine.EdgeShard.load(str(copy))
            for operation in since:
                newer.update(operation)
            newer.close()
            with self.using() as before:
                before.close()
                self._engine, self.is_flushed = None, False
                replace_with(self.path, copy)
                self._engine = _loaded(self.path)
                self.sparse = largest_sparse(self.path)
                self.written = 0
            narrow(self.path)
        return True


def _loaded(path: Path) -> engine.EdgeShard:
    """Open a shard and read its vectors ahead; first the quantized ones, which opening needs."""
    read_ahead(path, "quantized.data")
    shard = _engine_of(path)
    read_ahead(path, "matrix.dat")
    return shard


def _engine_of(path: Path) -> engine.EdgeShard:
    """Open the files of a shard, which may have just been closed.

    The engine locks its log, and the lock lasts until every process has closed the file. A child
    process inherits all open files of this process until its program starts, so this retries.
    """
    until = time.monotonic() + STARTING_S
    while True:
        try:
            return engine.EdgeShard.load(str(path))
        except Exception as exc:  # the engine has no class of its own; see ``translated``
            if LOCKED not in str(exc) or time.monotonic() > until:
                raise
        time.sleep(0.01)


def make_shard(path: Path, dimension: int) -> None:
    """Create an empty shard in an empty directory."""
    shard = engine.EdgeShard.create(
        str(path),
        engine.EdgeConfig(
            # Cold means that pages are read when a search needs them. Otherwise the engine keeps
            # 32 MB in memory for every collection, even a small one.
            vectors=engine.EdgeVectorParams(
                size=dimension,
                distance=engine.Distance.Cosine,
                memory=engine.Memory.Cold,
                quantization_config=engine.ScalarQuantizationConfig(
                    type=engine.ScalarType.Int8,
                    quantile=layout.QUANTILE,
                    memory=engine.Memory.Cached,
                ),
            ),
            hnsw_config=engine.HnswIndexConfig(
                m=layout.GRAPH_M,
                ef_construct=layout.GRAPH_EF_CONSTRUCT,
                full_scan_threshold=layout.GRAPH_FROM,
            ),
            optimizers=engine.EdgeOptimizersConfig(indexing_threshold=layout.GRAPH_FROM),
            # More threads (eight by default) use a third more CPU time and make no search
            # faster.
            max_search_threads=1,
            wal_enabled=True,
        ),
    )
    shard.update(
        engine.UpdateOperation.create_field_index(FACETS, engine.PayloadSchemaType.Keyword)
    )
    shard.close()
    narrow(path)
