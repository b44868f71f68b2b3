"""Writes untrusted files into a new folder: only regular files, only inside it, within limits."""

import errno
import os
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from repertory.errors import SourceError
from repertory.system.files import make_private
from repertory.text import is_clean, one_line

MAX_FILES = 20_000
MAX_FILE_SIZE = 16 * 2**20  # bytes; larger files are left out
MAX_TOTAL_SIZE = 256 * 2**20  # bytes
MAX_PLACE_LENGTH = 500  # characters
MAX_PARTS = 24  # parts of a path
MAX_ENTRIES = 100_000  # listed entries, written or not
_NO_NAMES = {errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ}  # names that the disk rejects


class Writer:
    """Writes files below a folder.

    Args:
        into: The empty folder.
        location: The origin of the files, for messages.

    Attributes:
        left_out: The numbers of files left out, by a description of them.
    """

    def __init__(self, into: Path, location: str) -> None:
        self.left_out: Counter[str] = Counter()
        self._into = into
        self.location = location
        self._files = self._size = self._entries = 0

    def takes(self, place: str, size: int) -> bool:
        """Whether to write a file with this place and size.

        Raises:
            SourceError: The place is outside the folder, or a limit is exceeded.
        """
        self._entries += 1
        if self._entries > MAX_ENTRIES:
            raise SourceError(f"{self.location} lists more than {MAX_ENTRIES:,} files.")
        parts = place.split("/")
        if {"", ".", ".."} & set(parts):
            raise SourceError(
                f"{self.location} has a file that would lie elsewhere, {one_line(place)[:200]!r}; "
                "nothing was taken from it."
            )
        if ".git" in map(str.lower, parts):
            return False
        if what := _unfit(place, size):
            self.leave_out(what)
            return False
        if self._files >= MAX_FILES:
            raise SourceError(
                f"{self.location} has more than {MAX_FILES:,} files; name a folder of it."
            )
        if self._size + size > MAX_TOTAL_SIZE:
            raise SourceError(
                f"{self.location} has more than {MAX_TOTAL_SIZE:,} bytes; name a folder of it."
            )
        return True

    def write(self, place: str, chunks: Iterable[bytes], *, is_executable: bool = False) -> None:
        """Write a file that ``takes`` accepted, unless the name is taken or invalid on this disk.

        Raises:
            SourceError: It is too large.
        """
        path = self._into / place
        size = 0
        try:
            make_private(path.parent)
            opener = partial(os.open, mode=0o700 if is_executable else 0o600)
            with open(path, "xb", opener=opener) as file:
                for chunk in chunks:
                    size += len(chunk)
                    if size > MAX_FILE_SIZE or self._size + size > MAX_TOTAL_SIZE:
                        raise SourceError(f"{self.location} has more bytes than it says.")
                    file.write(chunk)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            self.leave_out("files with duplicate names")
            return
        except OSError as error:
            if error.errno not in _NO_NAMES:
                raise
            self.leave_out("files whose names this disk does not allow")
            return
        self._files += 1
        self._size += size

    def leave_out(self, what: str) -> None:
        """Count a file as left out, by a description in the plural."""
        self.left_out[what] += 1

    @property
    def notes(self) -> tuple[str, ...]:
        """The files left out, one sentence for each description."""
        return tuple(f"Left out: {what} ({number:,})." for what, number in self.left_out.items())


def _unfit(place: str, size: int) -> str:
    """A description, in the plural, of files that are not written; empty for a fit file."""
    if not is_clean(place) or "\\" in place or (os.name == "nt" and ":" in place):
        return "files whose names are invalid on other systems"
    if len(place) > MAX_PLACE_LENGTH or len(place.split("/")) > MAX_PARTS:
        return "files that are nested too deeply"
    return f"files of more than {MAX_FILE_SIZE:,} bytes" if size > MAX_FILE_SIZE else ""


def checked_folder(folder: str) -> str:
    """A relative folder without outer slashes; ValueError if it leads outside its parent."""
    parts = [part for part in folder.split("/") if part not in {"", "."}]
    if folder.startswith("/") or ".." in parts or not is_clean(folder) or "\\" in folder:
        raise ValueError(folder)
    return "/".join(parts)
