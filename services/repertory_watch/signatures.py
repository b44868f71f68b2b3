"""What shows that a file has changed."""

import os
import stat
from collections.abc import Hashable


def signature(path: str) -> Hashable:
    """What of a file changes when its content does; of a folder, only that it is there."""
    try:
        status = os.stat(path)  # noqa: PTH116 - speed
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(status.st_mode):
        return "folder"
    return status.st_mtime_ns, status.st_size, status.st_ino
