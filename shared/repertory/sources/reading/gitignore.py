"""The files that the ``.gitignore`` files below a root exclude."""

import os
import re
from pathlib import Path

from pathspec import GitIgnoreSpec

from repertory.sources.reading.files import read_text

IGNORE_FILE = ".gitignore"

_LIMIT = 1 << 16  # bytes
_MAX_PATTERNS = 1_000
_MAX_STARS = 3  # in one part of a pattern; the time to match a name is exponential in them


class GitIgnore:
    """The ``.gitignore`` files below one root, each read when it is first needed."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._specs: dict[str, GitIgnoreSpec | None] = {}

    def ignores(self, place: str) -> bool:
        """Whether the nearest ``.gitignore`` that matches a place ignores it; see ``verdict``."""
        return bool(self.verdict(place))

    def verdict(self, place: str) -> bool | None:
        """Whether the nearest ``.gitignore`` that matches a place ignores it; None if none does.

        Args:
            place: With ``/`` between its parts, and at its end if it is a folder. The folders
                above it must not be ignored.
        """
        folder = place.rstrip("/")
        while folder:
            folder = folder.rpartition("/")[0]
            spec = self._spec(folder)
            if spec is not None:
                verdict = spec.check_file(place[len(folder) :].lstrip("/")).include
                if verdict is not None:
                    return verdict
        return None

    def files(self) -> list[str]:
        """The files that were looked for so far, whether they are there or not."""
        return [self._file(folder) for folder in self._specs]

    def _file(self, folder: str) -> str:
        return os.path.join(self._root, folder, IGNORE_FILE)  # noqa: PTH118 - speed

    def _spec(self, folder: str) -> GitIgnoreSpec | None:
        if folder not in self._specs:
            self._specs[folder] = read_patterns(self._file(folder))
        return self._specs[folder]


def read_patterns(file: str) -> GitIgnoreSpec | None:
    """Read the patterns of a file; None if it has none or cannot be read."""
    text, _ = read_text(file, _LIMIT)
    lines = filter(is_usable, (text or "").split("\n")[:_MAX_PATTERNS])
    return GitIgnoreSpec.from_lines(lines) if text else None


def is_usable(pattern: str) -> bool:
    """Whether a pattern is valid (git skips invalid ones) and can be matched quickly."""
    if any(part.count("*") > _MAX_STARS for part in pattern.split("/")):
        return False
    try:
        GitIgnoreSpec.from_lines([pattern])
    except (ValueError, re.error):
        return False
    return True
