"""The temporary folder of a backup, beside its file. The next backup removes abandoned ones."""

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from repertory.system.files import PRIVATE

PREFIX = ".repertory-backup-"  # of the folder's name
LOCK = "lock"  # held while the backup runs
GRACE_S = 60.0  # age from which a folder without a held lock counts as abandoned


@contextlib.contextmanager
def work_folder(folder: Path) -> Iterator[Path]:
    """Yield a new private folder in ``folder``, after removing those of killed backups.

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
        folder: The folder to search.
        now: The time, in seconds since the epoch.
    """
    return [path for path in folder.glob(f"{PREFIX}*") if _is_left(path, now)]


def _is_left(place: Path, now: float) -> bool:
    """Whether a folder is left from a killed backup of this account.

    Folders of other accounts are not opened.
    """
    try:
        status = place.lstat()
        is_ours = os.name == "nt" or status.st_uid == os.getuid()
        if not (is_ours and stat.S_ISDIR(status.st_mode)) or now - status.st_mtime < GRACE_S:
            return False
        with FileLock(place / LOCK, timeout=0, mode=PRIVATE):
            return True
    except (Timeout, OSError):  # it is in use
        return False
