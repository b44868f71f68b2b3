"""The files excluded by the ``.gitignore`` files below a root."""

import os
from collections.abc import Iterable
from pathlib import Path

from pathspec import GitIgnoreSpec

from repertory.sources.reading.files import EMPTY, Found, read_file
from repertory.sources.reading.patterns import spec_of
from repertory.sources.source import Problem, warning
from repertory.system.paths import real_path
from repertory.text import clean

IGNORE_FILE = ".gitignore"

_MAX_PATTERNS = 1_000  # of a file
_MAX_IN_EFFECT = 2_000  # patterns for one place, from all files above it
_MAX_DIFFERENT = 1 << 19  # characters of distinct patterns below a root, as each is compiled
_EACH = 50  # characters added to the length of each pattern
_SHORT = 250  # characters of a place. Longer ones get fewer patterns, because matching takes longer


class GitIgnore:
    """The ``.gitignore`` files below one root, each read at its first use."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._real = real_path(root)
        self._specs: dict[str, GitIgnoreSpec | None] = {}
        self._patterns: set[str] = set()
        self._left = _MAX_DIFFERENT
        self._left_out: set[str] = set()
        self._unread: dict[str, Problem] = {}

    @property
    def problems(self) -> list[Problem]:
        """One for each file that was not read, or has patterns that are not used everywhere."""
        message = (
            "The .gitignore files here have too many patterns, so some patterns of this one are "
            "not used; remove some."
        )
        left_out = [warning(clean(self._file(one)), message) for one in sorted(self._left_out)]
        return [*left_out, *(self._unread[one] for one in sorted(self._unread))]

    def ignores(self, place: str) -> bool:
        """Whether the nearest ``.gitignore`` that matches a place ignores it; see ``verdict``."""
        return bool(self.verdict(place))

    def verdict(self, place: str) -> bool | None:
        """Whether the nearest ``.gitignore`` that matches a place ignores it; None if none does.

        The nearest files are checked first. A file that makes too many patterns for the place, and
        all files above it, do not count, because a large tree has many places to match. It gets a
        problem.

        Args:
            place: A path with ``/`` between its parts, and at its end if it is a folder. The
                folders above it must not be ignored.
        """
        folder = place.rstrip("/")
        left = _MAX_IN_EFFECT * _SHORT
        while folder:
            folder = folder.rpartition("/")[0]
            spec = self._spec(folder)
            if spec is not None:
                below = place[len(folder) :].lstrip("/")
                left -= len(spec) * max(len(below), _SHORT)
                if left < 0:
                    self._left_out.add(folder)
                    return None
                verdict = spec.check_file(below).include
                if verdict is not None:
                    return verdict
        return None

    def files(self) -> list[str]:
        """The files checked so far, whether they exist or not."""
        return [self._file(folder) for folder in self._specs]

    def forget(self, folders: Iterable[str]) -> None:
        """Forget the files of these folders, so that they are read again at their next use."""
        for folder in folders:
            self._specs.pop(folder, None)
            self._left_out.discard(folder)
            self._unread.pop(folder, None)

    def _file(self, folder: str) -> str:
        return os.path.join(self._root, folder, IGNORE_FILE)  # noqa: PTH118 - speed

    def _spec(self, folder: str) -> GitIgnoreSpec | None:
        if folder not in self._specs:
            lines = self._lines(folder)
            self._specs[folder] = self._counted(folder, lines) if lines else None
        return self._specs[folder]

    def _lines(self, folder: str) -> list[str]:
        """The patterns of a folder's file; none if it is missing, empty or was not read."""
        path = self._file(folder)
        text, problems = read_file(
            Found(f"{folder}/{IGNORE_FILE}" if folder else IGNORE_FILE, path, self._real)
        )
        if text is None and problems[0].message != EMPTY and os.path.lexists(path):
            self._unread[folder] = warning(clean(path), problems[0].message)
        return _patterns(text)

    def _counted(self, folder: str, lines: list[str]) -> GitIgnoreSpec | None:
        """The patterns of a folder's file; None if that makes too many patterns in total."""
        if len(lines) > _MAX_PATTERNS:
            self._left_out.add(folder)
            lines = lines[:_MAX_PATTERNS]
        new = set(lines) - self._patterns
        size = sum(map(len, new)) + len(new) * _EACH
        if size > self._left:
            self._left_out.add(folder)
            return None
        self._patterns |= new
        self._left -= size
        return spec_of(lines)


def read_patterns(file: Found) -> GitIgnoreSpec | None:
    """Read the patterns of a file; None if it is empty or unreadable."""
    text, _ = read_file(file)
    lines = _patterns(text)[:_MAX_PATTERNS]
    return spec_of(lines) if lines else None


def _patterns(text: str | None) -> list[str]:
    """The patterns in the text of a file, without comments."""
    lines = text.split("\n") if text else ()
    return [line for line in lines if line.strip() and not line.startswith("#")]
