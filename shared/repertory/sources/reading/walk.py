"""Walks the folders below a root: bounded, confined to it, each folder once."""

import os
from collections.abc import Callable
from heapq import heappop, heappush
from pathlib import Path
from stat import S_ISDIR, S_ISLNK

from repertory.errors import SourceError
from repertory.sources.folder_memory import settled_time
from repertory.sources.reading.files import Found
from repertory.sources.source import Problem, error, warning
from repertory.system.paths import as_listed, followed, is_inside, listed_path
from repertory.text import clean, counted, is_clean

MAX_DEPTH = 10  # folders below the root
MAX_FOLDERS = 1_000_000
SLICE = 200  # folders listed, or files read, between two pauses

# Folders of version control. Most projects have one, so no report lists them as skipped.
REPOSITORIES = frozenset({".git", ".hg", ".svn"})
# Folders that tools create and fill, without files written for people.
SKIPPED = (
    REPOSITORIES
    | {".tox", ".nox", ".venv", "venv", "node_modules", "site-packages"}
    | {"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"}
)

UNFIT_NAME = "The name has characters that cannot be shown, so it was passed over; rename it."

# Name prefixes of the temporary files of editors and operating systems.
TEMPORARY = (".#", "._", ".~")


class Walk:
    """A walk through the folders below a root. The constructor runs it.

    Links are followed only to targets inside the root. A folder is entered once, preferably under
    its own name and not a link's. Any entry with a wanted name counts, such as a FIFO or a dangling
    link, so that reading it reports the problem.

    Args:
        root: The folder.
        wanted: Whether a file with this name is wanted.
        passes_over: Why the folder at a place is not entered; empty if it is.
        elsewhere: Whether another source reads the folder with this real path. Links to it are then
            not followed.
        max_depth: The number of folder levels below the root to enter.
        pause: Called after every ``SLICE`` folders.
        place: Walk only this place, whose folder an earlier walk has listed.

    Attributes:
        files: The wanted files, sorted by place.
        problems: One for each link or folder that was not followed or entered.
        unlisted: The places of folders that exist but could not be listed; the empty place means
            all.
        folders: The places of the top-level folders that were entered.
        passed_over: The places of folders that were deliberately not entered, each with the reason,
            except those of version control.
        links: The real paths of all links, by place.
        too_deep: The places of folders below ``max_depth``.
        is_cut: Whether there are more than ``MAX_FOLDERS``.
        listed: The time of each folder before it was listed, by path; see
            ``folder_memory.settled_time``.

    Raises:
        SourceError: The root is missing, not a folder, or cannot be listed.
    """

    def __init__(
        self,
        root: Path,
        wanted: Callable[[str], bool],
        passes_over: Callable[[str], str] = lambda _place: "",
        elsewhere: Callable[[str], bool] = lambda _real: False,
        max_depth: int = MAX_DEPTH,
        pause: Callable[[], None] = lambda: None,
        place: str = "",
    ) -> None:
        self._wanted, self._passes_over, self._elsewhere = wanted, passes_over, elsewhere
        self._max_depth = max_depth
        self._top = os.path.abspath(root)  # noqa: PTH100 - keeps a link's own name, as ids must
        self._real_top = listed_path(root)
        self._folders: list[tuple[str, str]] = []  # a stack of places and real paths
        self._followed: list[tuple[int, str, str]] = []  # links to folders: depth, place, real path
        self._entered: set[str] = set()
        self.too_deep: list[str] = []
        self.links: dict[str, str] = {}
        self.is_cut = False
        self.files: list[Found] = []
        self.problems: list[Problem] = []
        self.unlisted: list[str] = []
        self.folders: list[str] = []
        self.passed_over: dict[str, str] = {}
        self.listed: dict[str, int] = {}
        self._walk(place, pause)

    def times(self) -> dict[str, int]:
        """The times of each listed folder and of each link's target; see ``FolderState``.

        The target of a link may be missing, in a folder that is not listed.
        """
        return {path: settled_time(path) for path in map(self._path, self.links)} | self.listed

    def _walk(self, place: str, pause: Callable[[], None]) -> None:
        if place:
            self._start_at(place)
        else:
            self._entered.add(self._real_top)
            self._folders.append(("", self._real_top))
        # Follow links last, so that folders are entered under their own names first.
        while (self._folders or self._followed) and len(self.listed) < MAX_FOLDERS:
            if self._folders:
                self._list(*self._folders.pop())
                if not len(self.listed) % SLICE:
                    pause()
            else:
                self._follow(*heappop(self._followed)[1:])
        if self._folders or self._followed:
            self.is_cut = True
            message = (
                f"There are more than {MAX_FOLDERS:,} folders here, and the rest was not read; "
                "name a smaller folder."
            )
            self.problems.append(error(self._top, message))
            self.unlisted.append("")
        if self.too_deep:
            others = len(self.too_deep) - 1
            beside = f", nor {'was' if others == 1 else 'were'} {counted(others, 'other')}"
            message = (
                f"This folder is more than {self._max_depth} levels down and was not entered"
                f"{beside if others else ''}; make it a source of its own."
            )
            self._warn(min(self.too_deep), message)
        self.files.sort()
        self.folders.sort()
        self.problems.sort(key=lambda problem: problem.path)
        self.unlisted.sort()

    def _start_at(self, place: str) -> None:
        """Add the entry at a place, if it exists."""
        path = self._path(place)
        try:
            mode = os.lstat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return
        if as_listed(self._top, place) != place:  # it exists, but with another spelling
            return
        name = place.rpartition("/")[2]
        real = os.path.join(self._real_top, place)  # noqa: PTH118 - speed
        self._add(place, name, real, is_link=S_ISLNK(mode), is_folder=S_ISDIR(mode))

    def _list(self, place: str, real: str) -> None:
        path = self._path(place)
        self.listed[path] = settled_time(path)
        try:
            with os.scandir(path) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as exc:
            if not place:
                why = f"The folder {self._top} cannot be read ({exc.strerror})"
                if isinstance(exc, PermissionError):
                    remedy = ": make it readable, or remove its source from the configuration."
                else:
                    remedy = (
                        ". Restore it, remove its source from the configuration or, if it was "
                        "found, restart the server."
                    )
                raise SourceError(why + remedy) from exc
            message = f"The folder cannot be listed ({exc.strerror})."
            self.problems.append(error(path, message))
            self.unlisted.append(place)
            return
        before = len(self._folders)
        for entry in entries:
            inside = f"{place}/{entry.name}" if place else entry.name
            self._add(
                inside,
                entry.name,
                os.path.join(real, entry.name),  # noqa: PTH118 - speed
                is_link=entry.is_symlink(),
                is_folder=entry.is_dir(follow_symlinks=False),
            )
        self._folders[before:] = reversed(self._folders[before:])

    def _add(self, place: str, name: str, real: str, *, is_link: bool, is_folder: bool) -> None:
        """Add one entry of a folder."""
        if name.startswith(TEMPORARY):
            return
        if is_link:
            self._add_link(place, name)
            return
        if self._wanted(name):
            self._add_file(place)
        if not is_folder:
            return
        if name not in SKIPPED:
            self._add_folder(place, real)
        elif name not in REPOSITORIES:
            self.passed_over[place] = "tools create and fill such folders"

    def _add_file(self, place: str) -> None:
        if is_clean(place):
            self.files.append(Found(place, self._path(place), self._real_top))
        else:
            self._warn(place, UNFIT_NAME)

    def _add_folder(self, place: str, real: str) -> None:
        if real in self._entered:
            return
        if reason := self._passes_over(place):
            self.passed_over[place] = reason
            return
        if place.count("/") >= self._max_depth:
            self.too_deep.append(place)
            return
        self._entered.add(real)
        self._folders.append((place, real))
        if "/" not in place:
            self.folders.append(place)

    def _add_link(self, place: str, name: str) -> None:
        real = followed(self._path(place))
        self.links[place] = real = real and listed_path(real)
        if not real:
            self._warn(place, "The link cannot be followed, so it was passed over; remove it.")
            return
        is_folder = os.path.isdir(real)  # noqa: PTH112 - speed
        if not (self._wanted(name) or (is_folder and name not in SKIPPED)):
            return
        if is_folder and self._elsewhere(real):
            self.passed_over[place] = "another source reads the folder it leads to"
        elif not is_inside(real, self._real_top):
            message = (
                f"The link leads out of {self._top} to {clean(real)} and was not followed; make "
                "that a source of its own."
            )
            self._warn(place, message)
        elif is_folder:
            heappush(self._followed, (place.count("/"), place, real))
        else:
            self._add_file(place)

    def _follow(self, place: str, real: str) -> None:
        folder = os.path.dirname(self._path(place))  # noqa: PTH120 - speed
        if is_inside(listed_path(folder), real):
            self._warn(place, "The link leads back to a folder that it is in and was not followed.")
        else:
            self._add_folder(place, real)

    def _path(self, place: str) -> str:
        return os.path.join(self._top, place) if place else self._top  # noqa: PTH118 - speed

    def _warn(self, place: str, message: str) -> None:
        self.problems.append(warning(clean(self._path(place)), message))
