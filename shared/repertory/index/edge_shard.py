"""Creates, opens and closes shards of Qdrant's engine, and translates its errors.

This hides some problems of the engine from callers. It holds the GIL while it works, so writes are
small. On a full disk it crashes with a bus error, so free space is checked before it opens or
writes. It panics on some damaged files.
"""

import contextlib
import errno
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import qdrant_edge as engine

from repertory.errors import RepertoryError, StoreBusyError, StoreCorruptError, StoreError
from repertory.files import narrow
from repertory.index import layout
from repertory.index.lock import StoreLock

# One payload field for all filters, with values such as ``kind:tool`` or ``tags:git``. A single
# index is used because each one adds 7 ms to opening a collection, for which every search from a
# shell waits.
FACETS = "facets"

# Bytes that must be free on the disk, because the engine grows its files by 32 MB at a time.
ROOM = 128 * 2**20

# The engine drops its files from the system's cache when it closes, and reads vectors page by page,
# so opening and the first hundreds of searches would wait for the disk. So vectors are read ahead,
# up to this many bytes.
READ_AHEAD = 64 * 2**20
_STEP = 128 * 2**10  # all systems read at least this much per request, and may ignore the rest

STARTING_S = 10.0  # how long a process may take to start
_LOCKED = "WouldBlock"  # the engine's error if its log is locked

# The maximum share of deleted points in a graph. With more, a search may not find its way through
# the graph and return nothing. In graphs of at least ``DROPPED_FROM`` points, the engine drops
# deleted points once they are a fifth.
MAX_GONE = 0.3
DROPPED_FROM = 1_100  # the engine's limit is 1,000; our sizes are multiples of 64
# A shard is rebuilt after this many written points, if they are as many as its points, because most
# points in its files may be obsolete by then.
WRITTEN_FROM = 10_000

MAX_SINCE = 200  # writes during a rebuild, which are kept to repeat them on the copy

_REPLACED = "replaced"  # the prefix of a shard's old files while it is replaced

_OS_ERROR = re.compile(r"(?:\(os error|Os \{ code:) (\d+)")  # the second form is from its log
_ENVIRONMENT = {  # errors of the machine, not of the store
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
}


class OpenShard:
    """An open shard of this process. Threads may share it; the engine serves one at a time.

    Attributes:
        path: Its directory.
        users: Its users; the last one closes it.
        sparse: The size of the largest graph with too many deleted points; 0 if there is no such
            graph.
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
        self._since: list[engine.UpdateOperation] | None = None  # writes since a copy was made
        with translated(path):
            require_room(path)
            self._engine: engine.EdgeShard | None = _loaded(path)
            if lock.was_left:  # a killed holder may have left writes in the log only
                self._engine.flush()
            self.sparse = _sparse(path)
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
            Whether the copy is used. It is not if there were too many writes in the meantime.
        """
        copy = _beside(self.path, "copy")
        with self._rebuilding, translated(self.path):
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
                with self._writing:
                    self._since = None
                shutil.rmtree(copy, ignore_errors=True)

    def flush(self) -> None:
        """Make everything written so far safe against power loss."""
        with self.using() as shard:
            if self.is_flushed:  # avoid a wait for the disk, which would block all threads
                return
            shard.flush()
            self.sparse = _sparse(self.path)
            narrow(self.path)
            self.is_flushed = True

    def close(self) -> None:
        """Flush, close and release the lock."""
        try:
            with self.using() as shard:
                shard.close()
                narrow(self.path)  # the engine creates files that other users may read
        finally:
            self._lock.release()

    def _switch_to(self, copy: Path) -> bool:
        with self._writing:
            since = self._since or []
            if len(since) > MAX_SINCE:
                return False
            newer = engine.EdgeShard.load(str(copy))
            for operation in since:
                newer.update(operation)
            newer.close()
            with self.using() as before:
                before.close()
                self._engine, self.is_flushed = None, False
                _replace(self.path, copy)
                self._engine = _loaded(self.path)
                self.sparse = _sparse(self.path)
                self.written = 0
            narrow(self.path)
        return True


def graphs(shard: Path) -> list[tuple[int, int]]:
    """The number of points in each graph of a flushed shard, and how many of them are gone.

    Gone points were deleted or rewritten after the graph was built. The engine still counts them as
    indexed. The file has one bit per point, padded to a multiple of 64.
    """
    files = shard.glob("segments/*/id_tracker.deleted")
    has_graph = (file for file in files if (file.parent / "vector_index" / "graph.bin").exists())
    bits = [file.read_bytes() for file in has_graph]
    return [(8 * len(one), int.from_bytes(one, "big").bit_count()) for one in bits]


def _sparse(shard: Path) -> int:
    return max((size for size, gone in graphs(shard) if gone > MAX_GONE * size), default=0)


def exists(path: Path) -> bool:
    """Whether there is a shard at a path, even if a process was killed while replacing it."""
    return path.is_dir() or _beside(path, _REPLACED).is_dir()


def replaced(directory: Path) -> set[str]:
    """The names of the shards in a directory whose replacement is running or was interrupted."""
    return {path.name.partition("-")[2] for path in directory.glob(f".{_REPLACED}-*")}


def recover(path: Path) -> None:
    """Finish or undo the interrupted replacement of a shard. The caller holds its lock."""
    before = _beside(path, _REPLACED)
    if path.is_dir():
        shutil.rmtree(before, ignore_errors=True)
    elif before.is_dir():
        before.replace(path)


def _replace(path: Path, copy: Path) -> None:
    before = _beside(path, _REPLACED)
    path.replace(before)
    try:
        copy.replace(path)
    except OSError:
        before.replace(path)
        raise
    sync(path.parent)
    shutil.rmtree(before, ignore_errors=True)


def sync(path: Path) -> None:
    """Make a file, or the names in a directory, safe against power loss."""
    if os.name == "nt":  # Windows can sync neither directories nor files opened for reading
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _loaded(path: Path) -> engine.EdgeShard:
    """Open a shard and read its vectors ahead; first the quantized ones, which opening needs."""
    _read_ahead(path, "quantized.data")
    shard = _engine_of(path)
    _read_ahead(path, "matrix.dat")
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
            if _LOCKED not in str(exc) or time.monotonic() > until:
                raise
        time.sleep(0.01)


def _read_ahead(path: Path, name: str) -> None:
    """Ask the system to read the vector files in the background."""
    if sys.platform in {"darwin", "win32"}:  # ``posix_fadvise`` is missing there
        return
    left = READ_AHEAD
    with contextlib.suppress(OSError):  # reading ahead is optional
        for file in sorted(path.glob(f"segments/*/vector_storage/{name}")):
            with file.open("rb") as vectors:
                size = min(left, file.stat().st_size)
                for start in range(0, size, _STEP):
                    os.posix_fadvise(vectors.fileno(), start, _STEP, os.POSIX_FADV_WILLNEED)
            left -= size


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f".{what}-{path.name}")


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


def require_room(directory: Path, room: int = ROOM) -> None:
    """Raise StoreError if the disk is almost full."""
    if shutil.disk_usage(directory).free < room:
        raise StoreError(
            f"The disk of {directory} has less than {room >> 20} MB free: "
            "make room, or choose another data directory."
        )


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Translate the engine's exceptions.

    The engine raises plain ``Exception`` with a text. The class of its panics derives from
    ``BaseException`` and cannot be imported, so everything is caught here and filtered by type.
    """
    try:
        yield
    except RepertoryError:
        raise
    except OSError as exc:
        reason = exc.strerror or str(exc)[:300]  # ``shutil.Error`` lists several files
        raise StoreError(f"{path} cannot be used: {reason}.") from exc
    except BaseException as exc:
        if not (type(exc) is Exception or type(exc).__name__ == "PanicException"):
            raise
        raise _store_error(exc, path) from exc


def _store_error(exc: BaseException, path: Path) -> StoreError:
    text = str(exc)
    if "Shard is not initialized" in text:
        return StoreError(f"The collection {path.name} has been closed: open it again.")
    if "Vector dimension error" in text:
        return StoreError(f"{path} holds vectors of another length ({text}): rebuild the index.")
    if _LOCKED in text:
        return StoreBusyError(f"{path} is in use by a process that hangs at its start: end it.")
    known = [int(number) for number in _OS_ERROR.findall(text)]
    if known and known[-1] in _ENVIRONMENT:
        return StoreError(f"{path} cannot be used: {os.strerror(known[-1])}.")
    return StoreCorruptError(f"{path} cannot be read ({text[:300]}): rebuild the index.")
