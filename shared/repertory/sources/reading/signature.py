"""A cheap sign that a file has changed."""

import os
import stat

Signature = tuple[int, int, int, int]  # mtime and ctime in nanoseconds, size, inode

_FOLDER = (0, 0, 0, 0)


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
