"""The files below a folder that git ignores, according to all ignore files that git reads."""

import os
import re
from pathlib import Path

from repertory.sources.reading.files import Found, read_text
from repertory.sources.reading.gitignore import GitIgnore, read_patterns
from repertory.system.paths import real_path

# A hash or a semicolon begins a comment unless it is in quotes. Parts of the value may be quoted.
_EXCLUDES_FILE = re.compile(
    r"^[ \t]*excludesfile[ \t]*=[ \t]*((?:\"(?:\\.|[^\"\\\n])*+\"|\\.|[^\"#;\\\n])*+)",
    re.IGNORECASE | re.MULTILINE,
)
_QUOTING = re.compile(r"\"|\\(.)")


class Ignored:
    """Git's rules for a folder.

    Rules come from the ``.gitignore`` files of the folder and its parents up to the root of the
    repository, then from ``info/exclude`` of the repository, then from the user's excludes file.
    Tracked files that match a rule are ignored as well.

    Args:
        folder: An absolute path without links.
        home: The home directory of the user. Repositories at or above it do not count.

    Attributes:
        files: The files outside the folder that may hold rules, whether they exist or not.
    """

    def __init__(self, folder: Path, home: Path) -> None:
        top = _repository(folder, home)
        self._above = "" if top == folder else f"{folder.relative_to(top).as_posix()}/"
        self._nested = GitIgnore(top)
        git = _git_folder(top)
        around = [git / "info" / "exclude", _excludes_file(git, home)]
        self._around = [spec for file in around if (spec := read_patterns(Found("", str(file))))]
        parents = [one for one in folder.parents if one == top or top in one.parents]
        self.files = [str(file) for file in (*around, *(one / ".gitignore" for one in parents))]

    def ignores(self, place: str) -> bool:
        """Whether git ignores a place; see ``GitIgnore.verdict``."""
        place = self._above + place
        verdict = self._nested.verdict(place)
        for spec in self._around:
            if verdict is None:
                verdict = spec.check_file(place).include
        return bool(verdict)


def _repository(folder: Path, home: Path) -> Path:
    """The root of a folder's repository; the folder itself without one."""
    home = Path(real_path(home))
    for root in (folder, *folder.parents):
        if root == home or root in home.parents:
            break
        if os.path.lexists(root / ".git"):
            return root
    return folder


def _git_folder(top: Path) -> Path:
    """The git directory. In a linked worktree or a submodule, ``.git`` is a file that names it."""
    folder = top / ".git"
    if folder.is_file():
        text, _ = read_text(str(folder))
        folder = top / (text or "").removeprefix("gitdir:").strip()
        common, _ = read_text(str(folder / "commondir"))
        folder /= (common or "").strip()
    return folder


def _excludes_file(git: Path, home: Path) -> Path:
    """The user's excludes file, whose rules apply to all repositories."""
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git"
    for file in (git / "config", home / ".gitconfig", config / "config"):
        text, _ = read_text(str(file))
        if named := _EXCLUDES_FILE.search(text or ""):
            name = _QUOTING.sub(lambda sign: sign[1] or "", named[1].strip())
            return home / name.removeprefix("~/")
    return config / "ignore"
