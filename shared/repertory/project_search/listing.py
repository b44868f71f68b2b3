"""The list of a project's files, updated when the times of its folders change."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

from repertory.project_search.ignored import Ignored
from repertory.project_search.private import is_private
from repertory.sources.folder_memory import GRANULARITY
from repertory.sources.reading.files import Found
from repertory.sources.reading.gitignore import IGNORE_FILE
from repertory.sources.reading.walk import UNFIT_NAME, Walk
from repertory.system.paths import real_path

MAX_DEPTH = 100  # folders below the project's directory
_CHANGING = -1  # the stamp of a path changed so recently that another change may keep its time


class Listing:
    """The files of a folder, without those that git ignores or that may hold secrets.

    Folders that tools fill, such as ``node_modules``, are left out. Links to folders are not
    followed; links to files only if their target is listed, too.

    Args:
        directory: The folder.
        leave_out: A folder to skip.

    Attributes:
        unfit: The number of files that are left out because their names cannot be shown.
    """

    def __init__(self, directory: Path, leave_out: Path | None = None) -> None:
        self._directory = Path(real_path(directory))
        self._leave_out = real_path(leave_out) if leave_out else None
        self._files: Sequence[Found] = ()
        self.unfit = 0
        self._stamps: dict[str, int] = {}  # of the folders and of the ignore files

    def files(self) -> Sequence[Found]:
        """Return all files by place; folders are reread only if one of them changed.

        Raises:
            SourceError: The folder cannot be listed.
        """
        is_current = all(_stamp(path) == stamp for path, stamp in self._stamps.items())
        if not (self._stamps and is_current):
            self._walk()
        return self._files

    def _walk(self) -> None:
        stable = time.time_ns() - GRANULARITY
        ignored = Ignored(self._directory, Path.home())
        folders = [str(self._directory)]

        def passes_over(place: str) -> str:
            path = os.path.join(self._directory, place)  # noqa: PTH118 - speed
            if is_private(place) or ignored.ignores(f"{place}/") or path == self._leave_out:
                return "it is left out"
            if os.path.islink(path):  # noqa: PTH114 - speed
                return "it is a link"
            folders.append(path)
            return ""

        walked = Walk(self._directory, lambda _name: True, passes_over, max_depth=MAX_DEPTH)
        self.unfit = sum(one.message == UNFIT_NAME for one in walked.problems)
        entered = set(folders)
        shown = [
            file
            for file in walked.files
            if file.path not in entered
            and not is_private(file.place)
            and not ignored.ignores(file.place)
        ]
        # A link may point to a file that is left out.
        links = {file.path for file in shown if os.path.islink(file.path)}  # noqa: PTH114 - speed
        plain = {file.path for file in shown} - links
        self._files = [
            file for file in shown if file.path not in links or real_path(file.path) in plain
        ]
        rules = [os.path.join(folder, IGNORE_FILE) for folder in folders]  # noqa: PTH118 - speed
        stamps = {path: _stamp(path) for path in (*folders, *rules, *ignored.files)}
        self._stamps = {
            path: stamp if stamp < stable else _CHANGING for path, stamp in stamps.items()
        }


def _stamp(path: str) -> int:
    """The time of the last change in nanoseconds; 0 if the path does not exist."""
    try:
        status = os.stat(path)  # noqa: PTH116 - speed
    except (OSError, ValueError):
        return 0
    return max(status.st_mtime_ns, status.st_ctime_ns)
