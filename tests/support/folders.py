"""Folders for tests that write much."""

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

_MEMORY = Path("/dev/shm")
_ROOM = 1 << 30  # bytes


def quick_folder() -> TemporaryDirectory[str]:
    """A temporary folder in memory where there is room, for what need not survive a power cut."""
    is_usable = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM
    return TemporaryDirectory(prefix="repertory-", dir=_MEMORY if is_usable else None)
