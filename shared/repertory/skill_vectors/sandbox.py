"""A folder that file reads are confined to."""

import os
import re
from pathlib import Path

import msgspec

from repertory.errors import UsageError
from repertory.system.paths import UnfitFileError, real_path
from repertory.system.untrusted_files import read_inside
from repertory.text import is_clean

MAX_BYTES = 1 << 17  # per file; embedding this much takes about ten seconds
MAX_PATH_LENGTH = 4_096  # characters

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_ABSOLUTE = re.compile(r"/|[A-Za-z]:")


class SandboxFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the sandbox.

    Attributes:
        path: Its resolved absolute path.
        text: Its text.
        changed: When it was last written or moved, in microseconds.
    """

    path: str
    text: str
    changed: int


class Sandbox:
    """A folder; nothing outside it is read.

    Args:
        folder: The folder; it may be a link.

    Attributes:
        root: Its resolved absolute path.
    """

    def __init__(self, folder: Path) -> None:
        self.root = real_path(folder)
        names = (self.root, os.path.abspath(folder))  # noqa: PTH100 - links stay
        self._prefixes = tuple(os.path.join(name, "") for name in names)  # noqa: PTH118 - a slash

    def place(self, path: str) -> str | None:
        """Convert an absolute path to one relative to the sandbox, with ``/``; None if outside.

        Links in the path of the sandbox may be resolved or not.
        """
        for prefix in self._prefixes:
            if path.startswith(prefix):
                return path.removeprefix(prefix).replace(os.sep, "/")
        return None

    def path(self, place: str) -> str:
        """The absolute path of a place."""
        return os.path.join(self.root, place)  # noqa: PTH118 - of strings

    def missing(self, filepath: str) -> str | None:
        """The absolute path of a valid place in the sandbox that has no file; None otherwise.

        A file that cannot be reached now is not missing.
        """
        if _fault(filepath):
            return None
        path = os.path.realpath(self.path(filepath))
        if not self.place(path):
            return None
        try:
            os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return path if os.path.isdir(self.root) else None  # noqa: PTH112 - of strings
        except OSError:
            pass
        return None

    def read(self, filepath: str) -> SandboxFile:
        """Read a whole file.

        Args:
            filepath: Its path relative to the sandbox, with ``/``. Links that stay inside are
                followed.

        Raises:
            UsageError: The path leaves the sandbox, or is not a readable UTF-8 text of at most
                ``MAX_BYTES`` bytes.
        """
        shown = repr(filepath[:200])
        if fault := _fault(filepath):
            raise UsageError(f"The path {shown} {fault}.")
        try:
            path = os.path.realpath(self.path(filepath), strict=True)
            place = self.place(path)
            if place is None or not is_clean(path):
                raise UsageError(f"The path {shown} leads to no file inside the sandbox.")
            status = os.lstat(path)
            data = read_inside(self.root, place, MAX_BYTES)
        except UnfitFileError as error:
            raise UsageError(f"The file {shown} was not read: {error.strerror}.") from error
        except OSError as error:
            if not Path(self.root).is_dir():
                raise UsageError(
                    f"There is no folder {self.root} for the sandbox; name another as --sandbox."
                ) from error
            raise UsageError(f"The file {shown} cannot be read: {error.strerror}.") from error
        changed = max(status.st_mtime_ns, status.st_ctime_ns) // 1_000
        return SandboxFile(path=path, text=_text(data, shown), changed=changed)


def _fault(filepath: str) -> str | None:
    """The reason why a path is invalid; None if it is valid."""
    faults = (
        (not filepath, "is empty; name a file of the sandbox"),
        (len(filepath) > MAX_PATH_LENGTH, f"has more than {MAX_PATH_LENGTH:,} characters"),
        (_CONTROL.search(filepath), "holds control characters"),
        ("\\" in filepath, "holds a backslash; separate folders with '/'"),
        (_ABSOLUTE.match(filepath), "is absolute; name the file relative to the sandbox"),
        (".." in filepath.split("/"), "holds '..'; name the file without leaving the sandbox"),
    )
    return next((fault for holds, fault in faults if holds), None)


def _text(data: bytes, shown: str) -> str:
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        raise UsageError(
            f"The file {shown} is not UTF-8 (byte {error.start:,}); save it as UTF-8."
        ) from error
    if "\0" in text:
        raise UsageError(f"The file {shown} is binary (it holds a zero byte).")
    if not text.strip():
        raise UsageError(f"The file {shown} is empty; there is nothing to find it by.")
    return text
