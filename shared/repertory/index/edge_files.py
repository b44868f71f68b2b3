"""The files of a shard of Qdrant's engine: their room, their graphs, and how they are replaced."""

import contextlib
import os
import shutil
import sys
from pathlib import Path

from repertory.errors import StoreError

# Bytes that must be free on the disk, because the engine grows its files by 32 MB at a time.
ROOM = 128 * 2**20

# The engine drops its files from the system's cache when it closes, and reads vectors page by page,
# so opening and the first hundreds of searches would wait for the disk. So vectors are read ahead,
# up to this many bytes.
READ_AHEAD = 64 * 2**20
_STEP = 128 * 2**10  # all systems read at least this much per request, and may ignore the rest

# The maximum share of deleted points in a graph. With more, a search may not find its way through
# the graph and return nothing.
MAX_GONE = 0.3

_REPLACED = "replaced"  # the prefix of a shard's old files while it is replaced


def require_room(directory: Path, room: int = ROOM) -> None:
    """Raise StoreError if the disk is almost full."""
    if shutil.disk_usage(directory).free < room:
        raise StoreError(
            f"The disk of {directory} has less than {room >> 20} MB free: "
            "make room, or choose another data directory."
        )


def graphs(shard: Path) -> list[tuple[int, int]]:
    """The number of points in each graph of a flushed shard, and how many of them are gone.

    Gone points were deleted or rewritten after the graph was built. The engine still counts them as
    indexed. The file has one bit per point, padded to a multiple of 64.
    """
    files = shard.glob("segments/*/id_tracker.deleted")
    has_graph = (file for file in files if (file.parent / "vector_index" / "graph.bin").exists())
    bits = [file.read_bytes() for file in has_graph]
    return [(8 * len(one), int.from_bytes(one, "big").bit_count()) for one in bits]


def largest_sparse(shard: Path) -> int:
    """The size of the largest graph with too many deleted points; 0 if there is no such graph."""
    return max((size for size, gone in graphs(shard) if gone > MAX_GONE * size), default=0)


def exists(path: Path) -> bool:
    """Whether there is a shard at a path, even if a process was killed while replacing it."""
    return path.is_dir() or beside(path, _REPLACED).is_dir()


def replaced(directory: Path) -> set[str]:
    """The names of the shards in a directory whose replacement is running or was interrupted."""
    return {path.name.partition("-")[2] for path in directory.glob(f".{_REPLACED}-*")}


def recover(path: Path) -> None:
    """Finish or undo the interrupted replacement of a shard. The caller holds its lock."""
    before = beside(path, _REPLACED)
    if path.is_dir():
        shutil.rmtree(before, ignore_errors=True)
    elif before.is_dir():
        before.replace(path)


def replace_with(path: Path, copy: Path) -> None:
    """Replace the files of a closed shard."""
    before = beside(path, _REPLACED)
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


def read_ahead(path: Path, name: str) -> None:
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


def beside(path: Path, what: str) -> Path:
    """A hidden path beside a shard: for its copy, or for its old files."""
    return path.with_name(f".{what}-{path.name}")
