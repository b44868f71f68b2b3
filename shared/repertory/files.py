"""Small operations on files: making folders, writing atomically, and noticing changes."""

import contextlib
import errno
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from repertory.errors import StoreError

PRIVATE = 0o600  # only the owner may read or write

FULL = frozenset((errno.ENOSPC, errno.EDQUOT))  # no room on the disk, or for this user

LOCK_TIMEOUT_S = 10.0  # while another process changes a file

UNFINISHED = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")  # the names that ``half_of`` gives

private = partial(os.open, mode=PRIVATE)  # an opener of new files

Signature = tuple[int, int, int, int]  # mtime and ctime in nanoseconds, size, inode

FOLDER: Signature = (0, 0, 0, 0)  # of any folder

T = TypeVar("T")


@contextlib.contextmanager
def changing(path: Path) -> Iterator[None]:
    """Hold the lock of a private file, which one process can hold at a time, while it is changed.

    Raises:
        StoreError: Another process holds it, or the file cannot be written.
    """
    from filelock import FileLock, Timeout  # noqa: PLC0415 - only for a change

    try:
        make_private(path.parent)
        with FileLock(f"{path}.lock", timeout=LOCK_TIMEOUT_S, mode=PRIVATE):
            yield
    except Timeout as error:
        raise StoreError(
            f"Another process is changing {path}; try again when it has finished."
        ) from error
    except OSError as error:
        remedy = "make room" if error.errno in FULL else "make it and its folder writable"
        raise StoreError(f"{path} cannot be written: {error.strerror}; {remedy}.") from error


def unwritable(path: Path, error: OSError) -> StoreError:
    """The error that a path in the data directory cannot be written."""
    reason = error.strerror or error
    return StoreError(f"{path} cannot be written: {reason}; choose another --data-dir.")


def json_bytes(value: object, indent: int | None = None) -> bytes:
    """A value as JSON with escapes: the name of a file need not be valid Unicode."""
    return json.dumps(msgspec.to_builtins(value), indent=indent).encode("ascii")


def read_json(path: Path, kind: type[T]) -> T | None:
    """Read a value that ``write_json`` stored; None if it is missing or invalid."""
    try:
        return msgspec.convert(json.loads(path.read_bytes()), kind)
    except (OSError, ValueError):
        return None


def write_json(path: Path, value: object) -> None:
    """Store a value as JSON with escapes: the name of a directory need not be valid Unicode.

    Raises:
        StoreError: The file cannot be written.
    """
    try:
        write_atomically(path, json_bytes(value))
    except OSError as error:
        raise unwritable(path, error) from error


def make_directory(path: Path) -> None:
    """Create the data directory for its owner alone; an existing one is narrowed to that.

    A directory that is shared, another user's, a home, or above the working directory stays as it
    is: only what is written into it is private.

    Raises:
        StoreError: It cannot be created.
    """
    try:
        make_private(path)
        if _is_wide(path):
            narrow(path)
    except OSError as error:
        raise StoreError(
            f"The data directory {path} cannot be made: {error.strerror}; choose another with "
            "--data-dir or REPERTORY_DATA_DIR."
        ) from error


def make_private(folder: Path) -> None:
    """Make a folder, and those above it, for their owner alone; existing ones are not changed.

    Raises:
        OSError: It cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def narrow(folder: Path) -> None:
    """Take the permissions of everyone but the owner from a folder and all that is in it.

    Links are not followed. What belongs to another user, or is just removed, is left out.
    """
    if os.name == "nt":  # permissions are inherited there
        return
    for place, _, files in os.walk(folder):
        for path in (Path(place), *(Path(place, name) for name in files)):
            with contextlib.suppress(OSError):
                mode = path.lstat().st_mode
                if mode & 0o077 and not stat.S_ISLNK(mode):
                    path.chmod(stat.S_IMODE(mode) & 0o700)


def size_on_disk(path: Path) -> int:
    """The disk space of a file or a folder in bytes; the files of vectors are sparse."""
    total = 0
    for one in (path, *path.rglob("*")):
        try:
            status = one.lstat()
        except OSError:  # another process has just removed it
            continue
        blocks = getattr(status, "st_blocks", None)  # of 512 bytes; missing on Windows
        total += status.st_size if blocks is None else 512 * blocks
    return total


def _is_wide(path: Path) -> bool:
    """Whether others may enter a directory that only Repertory uses."""
    if os.name == "nt":
        return False
    status, real = path.stat(), path.resolve()
    is_ours = status.st_uid == os.getuid() and not status.st_mode & stat.S_ISVTX
    is_above = any(used.is_relative_to(real) for used in (Path.home().resolve(), Path.cwd()))
    return bool(status.st_mode & 0o077) and is_ours and not is_above


def write_atomically(
    path: Path, data: bytes, *, mode: int = PRIVATE, is_durable: bool = False
) -> None:
    """Replace a file at once, and make its directory for its owner alone if it is missing.

    Args:
        path: The file.
        data: Its new content.
        mode: Its permissions, less the umask.
        is_durable: Whether the content is on the disk before the file is replaced.

    Raises:
        OSError: The file cannot be written; the old one stays.
    """
    make_private(path.parent)
    with replacing(path, mode=mode) as file:
        file.write(data)
        if is_durable:
            flush_to_disk(file)


@contextlib.contextmanager
def replacing(path: Path, *, mode: int = PRIVATE) -> Iterator[BinaryIO]:
    """Write a new file that replaces another at once, unless writing fails.

    Args:
        path: The file that is replaced.
        mode: The permissions of the new file, less the umask.

    Raises:
        OSError: The file cannot be written; the old one stays.
    """
    half = half_of(path)
    try:
        with open(half, "xb", opener=partial(os.open, mode=mode)) as file:
            yield file
        half.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            half.unlink(missing_ok=True)
        raise


def half_of(path: Path) -> Path:
    """Where the next content of a path is written until it is whole; ``UNFINISHED`` matches it.

    The random name must be new: nothing that lies there is followed or overwritten.
    """
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")


def flush_to_disk(file: BinaryIO) -> None:
    """Wait until what was written is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def is_gone(path: Path) -> bool:
    """Whether nothing is at a path; False if it cannot be reached now."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        pass
    return False


def identity(path: str) -> tuple[int, int] | None:
    """The device and the number of a file or folder, whatever its spelling; None if it is gone."""
    try:
        status = os.stat(path)  # noqa: PTH116 - speed
    except OSError:
        return None
    return status.st_dev, status.st_ino


def signature(path: str) -> Signature | None:
    """Return a value that changes when a file's content does; None if the path does not exist.

    All folders have the signature ``FOLDER``.
    """
    try:
        status = os.stat(path)  # noqa: PTH116 - speed
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(status.st_mode):
        return FOLDER
    return signature_of(status)


def signature_of(status: os.stat_result) -> Signature:
    """The signature of a file with a status."""
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def is_for_all(folder: Path) -> bool:
    """Whether every account may put files into a folder, such as ``/tmp``.

    One of the user's own without the sticky bit is so only where permissions mean nothing.
    """
    if os.name == "nt":  # permissions are inherited there
        return False
    try:
        status = folder.stat()
    except OSError:
        return False
    is_shared = status.st_uid != os.getuid() or status.st_mode & stat.S_ISVTX
    return bool(is_shared and status.st_mode & stat.S_IWOTH)


def is_project(folder: Path, home: Path) -> bool:
    """Whether a folder may be a project: neither a home nor a parent of homes.

    Links may lead to these, as on a system whose homes lie elsewhere.
    """
    homes = (home, Path("/home"), Path("/Users"))
    real = (Path(os.path.realpath(one)) for one in homes)
    return folder not in {Path(folder.anchor), *homes, *real}
