"""Creates, opens and closes shards of Qdrant's own engine, and translates its errors.

Traps of the engine that callers must not meet: it holds Python's lock while it works, so writes are
small; on a full disk it dies of a bus error, so free space is checked before it opens or writes; it
panics on some broken files.
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

# All that points are filtered by, in one field, as ``kind:tool`` or ``tags:git``: each index adds
# 7 ms to opening a collection, which every search from a shell waits for.
FACETS = "facets"

# Bytes that must be free on the disk: the engine grows its files by 32 MB at a time.
ROOM = 128 * 2**20

# The engine drops its files from the system's cache when it closes, and reads the vectors page by
# page: opening would wait for the disk, and so would hundreds of searches. So they are read ahead,
# up to so many bytes.
READ_AHEAD = 64 * 2**20
_STEP = 128 * 2**10  # what systems read for one request at least; they leave out the rest

STARTING_S = 10.0  # that a process may take to start
_LOCKED = "WouldBlock"  # of the log

# The share of a graph's points that may be gone. With more, a search may find no way through it and
# then nothing. Of a graph of ``DROPPED_FROM`` points the engine drops them, from a fifth on.
MAX_GONE = 0.3
DROPPED_FROM = 1_100  # the engine says 1,000; ours are multiples of 64
# So many written points, and as many as there are, have a shard rebuilt: most others may be gone.
WRITTEN_FROM = 10_000

MAX_SINCE = 200  # writes while a copy is rebuilt, which are repeated on it and kept until then

_REPLACED = "replaced"  # files of this name were those of a shard until a moment ago

_OS_ERROR = re.compile(r"(?:\(os error|Os \{ code:) (\d+)")  # the second one is of its log
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
        sparse: How many points the largest graph has of which too many are gone; 0 for none.
        is_flushed: Whether nothing was written since the last ``flush``.
        written: How many points were written since it was opened or rebuilt. The engine keeps the
            space of those that they replace and of those that were deleted.
    """

    def __init__(self, path: Path, lock: StoreLock) -> None:
        """Open the shard at a path whose lock is held; closing releases the lock."""
        self.path = path
        self.users: set[object] = set()
        self._lock = lock
        self._writing = threading.Lock()  # the order of writes; taken before the other
        self._using = threading.Lock()  # the engine, which is replaced after a rebuild
        self._rebuilding = threading.Lock()
        self._since: list[engine.UpdateOperation] | None = None  # written since a copy was made
        with translated(path):
            require_room(path)
            self._engine: engine.EdgeShard | None = _loaded(path)
            if lock.was_left:  # the log has what it wrote, and the files of graphs may lack that
                self._engine.flush()
            self.sparse = _sparse(path)
        self.is_flushed = False  # the log may have what the process before this one wrote
        self.written = 0

    @contextlib.contextmanager
    def using(self) -> Iterator[engine.EdgeShard]:
        """The engine, with its errors translated; not to be kept."""
        with translated(self.path), self._using:
            if self._engine is None:  # it could not be opened after a rebuild
                self._engine = _loaded(self.path)
            yield self._engine

    def update(self, operation: engine.UpdateOperation) -> None:
        """Write something."""
        with self._writing:
            with self.using() as shard:
                require_room(self.path)
                self.is_flushed = False
                shard.update(operation)
            # One more than is repeated says that it was too much; the others are not kept.
            if self._since is not None and len(self._since) <= MAX_SINCE:
                self._since.append(operation)

    def rebuild(self, rebuilt: Callable[[Path], bool]) -> bool:
        """Rebuild a copy of the files, and use it instead; others read and write meanwhile.

        Args:
            rebuilt: Gets the closed copy, and returns whether it is to be used.

        Returns:
            Whether it is used: not if too much was written meanwhile.
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
                return self._become(copy)
            finally:
                with self._writing:
                    self._since = None
                shutil.rmtree(copy, ignore_errors=True)

    def flush(self) -> None:
        """Make everything written so far safe against power loss."""
        with self.using() as shard:
            if self.is_flushed:  # the engine would wait for the disk, and all threads with it
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
                narrow(self.path)  # the engine makes files that others may read
        finally:
            self._lock.release()

    def _become(self, copy: Path) -> bool:
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
    """How many points each graph of a flushed shard has, and how many of them are gone.

    They are deleted, or written again since it was built; the engine counts them as indexed. A bit
    stands for each point, and the number of bits is a multiple of 64.
    """
    files = shard.glob("segments/*/id_tracker.deleted")
    has_graph = (file for file in files if (file.parent / "vector_index" / "graph.bin").exists())
    bits = [file.read_bytes() for file in has_graph]
    return [(8 * len(one), int.from_bytes(one, "big").bit_count()) for one in bits]


def _sparse(shard: Path) -> int:
    return max((size for size, gone in graphs(shard) if gone > MAX_GONE * size), default=0)


def exists(path: Path) -> bool:
    """Whether there is a shard at a path, also after the end of a process that replaced it."""
    return path.is_dir() or _beside(path, _REPLACED).is_dir()


def replaced(directory: Path) -> set[str]:
    """The names of the shards in a directory that are being replaced, or were when it ended."""
    return {path.name.partition("-")[2] for path in directory.glob(f".{_REPLACED}-*")}


def recover(path: Path) -> None:
    """Finish what a process began that ended while it replaced a shard; its lock is held."""
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
    if os.name == "nt":  # neither a directory nor a file that is only read can be synced there
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _loaded(path: Path) -> engine.EdgeShard:
    """Open a shard, and let the system read its vectors: first the small ones, which that needs."""
    _read_ahead(path, "quantized.data")
    shard = _engine_of(path)
    _read_ahead(path, "matrix.dat")
    return shard


def _engine_of(path: Path) -> engine.EdgeShard:
    """Open the files of a shard, which may have been closed a moment ago.

    The engine also locks its log, until every process has closed it: one that is just being
    started has all files of this process open until its program begins.
    """
    until = time.monotonic() + STARTING_S
    while True:
        try:
            return engine.EdgeShard.load(str(path))
        except Exception as exc:  # the engine has no other class; see ``translated``
            if _LOCKED not in str(exc) or time.monotonic() > until:
                raise
        time.sleep(0.01)


def _read_ahead(path: Path, name: str) -> None:
    """Let the system read the vectors that are searched by a graph, while others go on."""
    if sys.platform in {"darwin", "win32"}:  # they have no such request
        return
    left = READ_AHEAD
    with contextlib.suppress(OSError):  # it takes longer
        for file in sorted(path.glob(f"segments/*/vector_storage/{name}")):
            with file.open("rb") as vectors:
                size = min(left, file.stat().st_size)
                for start in range(0, size, _STEP):
                    os.posix_fadvise(vectors.fileno(), start, _STEP, os.POSIX_FADV_WILLNEED)
            left -= size


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f".{what}-{path.name}")


def make_shard(path: Path, dimension: int) -> None:
    """Make an empty shard in an empty directory."""
    shard = engine.EdgeShard.create(
        str(path),
        engine.EdgeConfig(
            # Cold: a page is read when a search needs it. Otherwise the engine keeps 32 MB for
            # every collection, however small.
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
            # More (by default eight) use a third more of the processors and make no
            # search faster.
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
    """Refuse to write on a disk that is almost full."""
    if shutil.disk_usage(directory).free < room:
        raise StoreError(
            f"The disk of {directory} has less than {room >> 20} MB free: "
            "make room, or choose another data directory."
        )


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Translate the engine's exceptions.

    The engine raises plain ``Exception`` with a text. Its panics are of a class that derives from
    ``BaseException`` and cannot be imported: hence the wide net and the exceptions from it.
    """
    try:
        yield
    except RepertoryError:
        raise
    except OSError as exc:
        reason = exc.strerror or str(exc)[:300]  # of several files, if it has no own one
        raise StoreError(f"{path} cannot be used: {reason}.") from exc
    except BaseException as exc:
        if not (type(exc) is Exception or type(exc).__name__ == "PanicException"):
            raise
        raise _ours(exc, path) from exc


def _ours(exc: BaseException, path: Path) -> StoreError:
    text = str(exc)
    if "Shard is not initialized" in text:
        return StoreError(f"The collection {path.name} has been closed: open it again.")
    if "Vector dimension error" in text:
        return StoreError(f"{path} holds vectors of another length ({text}): rebuild the index.")
    if _LOCKED in text:
        return StoreBusyError(f"{path} is in use by a process that does not start: end it.")
    known = [int(number) for number in _OS_ERROR.findall(text)]
    if known and known[-1] in _ENVIRONMENT:
        return StoreError(f"{path} cannot be used: {os.strerror(known[-1])}.")
    return StoreCorruptError(f"{path} cannot be read ({text[:300]}): rebuild the index.")
