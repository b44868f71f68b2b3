"""Small operations on files: writing them atomically, and noticing that they changed."""

import contextlib
import os
import secrets
import stat
from functools import partial
from pathlib import Path

PRIVATE = 0o600  # only the owner may read or write

Signature = tuple[int, int, int, int]  # mtime and ctime in nanoseconds, size, inode

_FOLDER = (0, 0, 0, 0)


def write_atomically(
    path: Path, data: bytes, *, mode: int = 0o666, is_durable: bool = False
) -> None:
    """Replace a file at once, and make its directory if it is missing.

    Args:
        path: The file.
        data: Its new content.
        mode: Its permissions, less the umask.
        is_durable: Whether the content is on the disk before the file is replaced.

    Raises:
        OSError: The file cannot be written; the old one stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # A random name that must be new: nothing that lies there is followed or overwritten.
    half = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(half, "xb", opener=partial(os.open, mode=mode)) as file:
            file.write(data)
            if is_durable:
                file.flush()
                os.fsync(file.fileno())
        half.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            half.unlink(missing_ok=True)
        raise


def signature(path: str) -> Signature | None:
    """Return a value that changes when a file's content does; None if the path does not exist.

    All folders have the same signature.
    """
    try:
        status = os.stat(path)  # noqa: PTH116 - speed
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(status.st_mode):
        return _FOLDER
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
