"""Small file operations: making folders, writing atomically, and detecting changes."""

import contextlib
import errno
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from repertory.errors import StoreError

PRIVATE = 0o600  # only the owner may read or write

FULL = frozenset((errno.ENOSPC, errno.EDQUOT))  # the disk is full, or the quota of the user

LOCK_TIMEOUT_S = 10.0  # for another process that changes a file

UNFINISHED = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")  # the names that ``half_of`` gives

private = partial(os.open, mode=PRIVATE)  # an opener for ``open``, to create private files

Signature = tuple[int, int, int, int]  # mtime and ctime in nanoseconds, size, inode

FOLDER: Signature = (0, 0, 0, 0)  # of any folder

T = TypeVar("T")


@contextlib.contextmanager
def changing(path: Path) -> Iterator[None]:
    """Hold the exclusive lock of a private file while it is changed.

    Raises:
        StoreError: Another process holds the lock, or the file cannot be written.
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
    """The error for a path in the data directory that cannot be written."""
    reason = error.strerror or error
    return StoreError(f"{path} cannot be written: {reason}; choose another --data-dir.")


def json_bytes(value: object, indent: int | None = None) -> bytes:
    """Encode a value as JSON in ASCII, because file names need not be valid Unicode."""
    return json.dumps(msgspec.to_builtins(value), indent=indent).encode("ascii")


def read_json(path: Path, kind: type[T]) -> T | None:
    """Read a value that ``write_json`` stored; None if it is missing or invalid."""
    try:
        return msgspec.convert(json.loads(path.read_bytes()), kind)
    except (OSError, ValueError):
        return None


def write_json(path: Path, value: object) -> None:
    """Store a value as JSON in ASCII, because directory names need not be valid Unicode.

    Raises:
        StoreError: The file cannot be written.
    """
    try:
        write_atomically(path, json_bytes(value))
    except OSError as error:
        raise unwritable(path, error) from error


def make_directory(path: Path) -> None:
    """Create the data directory, or restrict an existing one, so that only its owner has access.

    A directory is unchanged if it is shared, belongs to another user, or is or contains the home or
    the working directory. Then only the files written into it are private.

    Raises:
        StoreError: The directory cannot be created.
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
    """Create a folder and its missing parents, accessible only to their owner.

    Raises:
        OSError: The folder cannot be created.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def narrow(folder: Path) -> None:
    """Remove the permissions of everyone but the owner from a folder and its contents.

    Links are not followed. Files of other users, and files that are just removed, are skipped.
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
    """The disk space of a file or folder in bytes. Vector files are sparse."""
    total = 0
    inside = (
        Path(place, name)
        for place, folders, files in os.walk(path)  # unlike ``rglob``, skips a removed folder
        for name in (*folders, *files)
    )
    for one in chain((path,), inside):
        try:
            status = one.lstat()
        except OSError:  # another process has just removed it
            continue
        blocks = getattr(status, "st_blocks", None)  # of 512 bytes; missing on Windows
        total += status.st_size if blocks is None else 512 * blocks
    return total


def _is_wide(path: Path) -> bool:
    """Whether others have access to a directory that only Repertory uses."""
    if os.name == "nt":
        return False
    status, real = path.stat(), path.resolve()
    is_ours = status.st_uid == os.getuid() and not status.st_mode & stat.S_ISVTX
    is_above = any(used.is_relative_to(real) for used in (Path.home().resolve(), Path.cwd()))
    return bool(status.st_mode & 0o077) and is_ours and not is_above


def write_atomically(
    path: Path, data: bytes, *, mode: int = PRIVATE, is_durable: bool = False
) -> None:
    """Replace a file atomically; create its folder, accessible only to its owner, if missing.

    Args:
        path: The file.
        data: Its new content.
        mode: Its permissions, before the umask.
        is_durable: Whether to flush the content to disk before the file is replaced.

    Raises:
        OSError: The file cannot be written; the old one is unchanged.
    """
    make_private(path.parent)
    with replacing(path, mode=mode) as file:
        file.write(data)
        if is_durable:
            flush_to_disk(file)


@contextlib.contextmanager
def replacing(path: Path, *, mode: int = PRIVATE) -> Iterator[BinaryIO]:
    """Write a new file that replaces another atomically, unless writing fails.

    Args:
        path: The file that is replaced.
        mode: The permissions of the new file, before the umask.

    Raises:
        OSError: The file cannot be written; the old one is unchanged.
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
    """The path of the temporary file that will replace a file; ``UNFINISHED`` matches its name.

    The name is random. The caller must create it exclusively, so that no link is followed and no
    file is overwritten.
    """
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")


def flush_to_disk(file: BinaryIO) -> None:
    """Flush a file and wait until its content is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def is_there(path: Path) -> bool:
    """Whether a path exists. Since Python 3.14, ``Path.exists`` is False for inaccessible ones.

    Raises:
        OSError: This cannot be checked.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def is_gone(path: Path) -> bool:
    """Whether a path does not exist; False if that cannot be checked now."""
    try:
        return not is_there(path)
    except OSError:
        return False


def identity(path: str) -> tuple[int, int] | None:
    """The device and inode of a file or folder; None if it cannot be accessed."""
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
    """The signature of a file, from its status."""
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def is_for_all(folder: Path) -> bool:
    """Whether every account may put files into a folder, such as ``/tmp``.

    A world-writable folder of the user without the sticky bit does not count. It typically means
    that the file system does not support permissions.
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

    Homes may be behind links, as on a system that stores them elsewhere.
    """
    homes = (home, Path("/home"), Path("/Users"))
    real = (Path(os.path.realpath(one)) for one in homes)
    return folder not in {Path(folder.anchor), *homes, *real}
