"""The folder that a backup works in, beside the backup: nothing of it stays, whatever ends it."""

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from repertory.files import PRIVATE

PREFIX = ".repertory-backup-"  # begins its name
LOCK = "lock"  # held while the backup runs
GRACE_S = 60.0  # until it surely is


@contextlib.contextmanager
def work_folder(folder: Path) -> Iterator[Path]:
    """Give a private folder in another one, after removing those that killed backups left there.

    Raises:
        OSError: The folder cannot be written.
    """
    for path in left_by_backups(folder, time.time()):
        shutil.rmtree(path, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=folder) as name:
        place = Path(name)
        with FileLock(place / LOCK, mode=PRIVATE):
            yield place


def left_by_backups(folder: Path, now: float) -> list[Path]:
    """The work folders of backups that were killed.

    Args:
        folder: Where they lie.
        now: The time, in seconds since the epoch.
    """
    return [path for path in folder.glob(f"{PREFIX}*") if _is_left(path, now)]


def _is_left(place: Path, now: float) -> bool:
    """Whether a backup of this account was killed there; nothing of another's is opened."""
    try:
        status = place.lstat()
        is_ours = os.name == "nt" or status.st_uid == os.getuid()
        if not (is_ours and stat.S_ISDIR(status.st_mode)) or now - status.st_mtime < GRACE_S:
            return False
        with FileLock(place / LOCK, timeout=0, mode=PRIVATE):
            return True
    except (Timeout, OSError):  # it is in use
        return False
