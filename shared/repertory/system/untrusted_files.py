"""Read files that other people made.

Only regular files up to a size limit are read, and opening one never blocks.
"""

import contextlib
import errno
import os
import stat
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from itertools import islice

from repertory.system.paths import UnfitFileError, is_inside, place_below, resolved

UTF_16 = (BOM_UTF16_LE, BOM_UTF16_BE)  # marks of text that may contain zero bytes
_BEGINNING = 1 << 15  # bytes read first, to detect binary files

# A plain open of a FIFO without a writer would wait forever. Not every system has all flags.
_FILE = os.O_RDONLY
for _flag in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"):
    _FILE |= getattr(os, _flag, 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
_OPENS_BELOW = os.open in os.supports_dir_fd and bool(_NO_LINK)
_IS_LINK = {errno.ELOOP, errno.EMLINK, errno.ENOTDIR}  # errors of an open that follows no links

_BEHIND_A_LINK = "it is a link, or lies behind one"


def read_bytes(path: str, limit: int, *, is_text: bool = False) -> bytes:
    """Read a file. Links are followed.

    Args:
        path: Its path.
        limit: Its maximum size in bytes.
        is_text: Whether to read only the beginning if it contains a zero byte and is not marked as
            UTF-16.

    Raises:
        UnfitFileError: It is not a regular file, or is too large.
        OSError: It cannot be read.
    """
    with _closing(os.open(path, _FILE)) as file:
        return _content(file, limit, is_text=is_text)


class OpenFolder:
    """An open folder. Reading below it follows no links.

    All reads are from this folder, even if another one replaces it at its path. Only Windows, which
    cannot open a file relative to a folder, uses the path again.

    Args:
        path: Its absolute path, without links.

    Raises:
        OSError: It cannot be opened, or is a link.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = os.open(path, _FOLDER) if _OPENS_BELOW else None

    def close(self) -> None:
        """Close it."""
        if self._file is not None:
            os.close(self._file)

    def read(self, place: str, limit: int) -> bytes:
        """Read a file; see ``read_inside``.

        Raises:
            UnfitFileError: It is a link or lies behind one, is not a regular file, or is too large.
            OSError: It cannot be read.
        """
        if self._file is None:
            path = os.path.join(self._path, place)  # noqa: PTH118 - of strings
            if resolved(path) != os.path.normpath(path):
                raise UnfitFileError(errno.ELOOP, _BEHIND_A_LINK, path)
            return read_bytes(path, limit)
        try:
            with _closing(_open_below(self._file, place)) as file:
                return _content(file, limit)
        except OSError as exc:
            if exc.errno in _IS_LINK:
                raise UnfitFileError(errno.ELOOP, _BEHIND_A_LINK) from exc
            raise

    def entries(self, place: str, limit: int) -> list[tuple[str, os.stat_result]]:
        """The names in a folder and their statuses, at most ``limit``.

        Raises:
            OSError: The folder cannot be listed, or is a link.
        """
        if self._file is None:  # Windows, where the status of a listed entry has no inode
            with os.scandir(os.path.join(self._path, place)) as listing:  # noqa: PTH118 - of strings
                return [(one.name, os.lstat(one.path)) for one in islice(listing, limit)]
        with (
            _closing(_open_below(self._file, place or ".", _FOLDER)) as folder,
            os.scandir(folder) as listing,
        ):
            return [(one.name, one.stat(follow_symlinks=False)) for one in islice(listing, limit)]


def read_inside(root: str, place: str, limit: int, *, is_text: bool = False) -> bytes:
    """Read a file below a folder. Links are followed only to a target inside the folder.

    Args:
        root: The absolute path of the folder, without links.
        place: The path of the file relative to the folder, with ``/`` and without ``..``.
        limit: As for ``read_bytes``.
        is_text: As for ``read_bytes``.

    Each folder is opened relative to its parent without following a link, so a link that is created
    in the meantime cannot lead out of the folder.

    Raises:
        UnfitFileError: It is outside the folder, is not a regular file, or is too large.
        OSError: It cannot be read.
    """
    with _closing(_open_inside(root, place)) as file:
        return _content(file, limit, is_text=is_text)


def read_within(path: str, folder: str, limit: int) -> bytes:
    """Read a file. If a folder is given, links must not lead out of it.

    Args:
        path: Its path.
        folder: The folder, or empty to follow all links.
        limit: As for ``read_bytes``.

    Raises:
        UnfitFileError: As for ``read_inside``.
        OSError: It cannot be read.
    """
    if not folder:
        return read_bytes(path, limit)
    root = resolved(folder)
    return read_inside(root, place_below(root, path), limit)


def read_beginning(root: str, place: str, size: int) -> bytes:
    """Read the first bytes of a file below a folder; see ``read_inside``.

    Raises:
        OSError: It cannot or must not be read.
    """
    with _closing(_open_inside(root, place)) as file:
        _check_kind(os.fstat(file))
        return _read(file, size)


def _open_inside(root: str, place: str) -> int:
    if _OPENS_BELOW:
        try:
            return _open_below(root, place)
        except OSError as exc:
            if exc.errno not in _IS_LINK:
                raise
    real = resolved(os.path.join(root, place))  # noqa: PTH118 - of strings
    if not is_inside(real, root):
        raise UnfitFileError(errno.EXDEV, f"it leads out of {root}", real)
    return _open_below(root, os.path.relpath(real, root)) if _OPENS_BELOW else os.open(real, _FILE)


def _open_below(root: str | int, place: str, how: int = _FILE | _NO_LINK) -> int:
    """Open a file below a folder, or below its descriptor, without following any link."""
    *folders, name = place.split("/")
    above = os.dup(root) if isinstance(root, int) else os.open(root, _FOLDER)
    try:
        for folder in folders:
            below = os.open(folder, _FOLDER, dir_fd=above)
            os.close(above)
            above = below
        return os.open(name, how, dir_fd=above)
    finally:
        os.close(above)


def _content(file: int, limit: int, *, is_text: bool = False) -> bytes:
    status = os.fstat(file)
    _check_kind(status)
    if status.st_size > limit:
        message = f"it has more than {limit:,} bytes; split it or shorten it"
        raise UnfitFileError(errno.EFBIG, message)
    data = _read(file, min(status.st_size, _BEGINNING))
    if is_text and b"\0" in data and not data.startswith(UTF_16):
        return data
    return data + _read(file, status.st_size - len(data))


def _read(file: int, size: int) -> bytes:
    """The next bytes of a file; fewer only at its end, unlike ``os.read`` on FUSE file systems."""
    data = b""
    while len(data) < size and (more := os.read(file, size - len(data))):
        data += more
    return data


def _check_kind(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        message = "it is not a regular file (a folder, a pipe or a device)"
        raise UnfitFileError(errno.EINVAL, message)


@contextlib.contextmanager
def _closing(file: int) -> Iterator[int]:
    try:
        yield file
    finally:
        os.close(file)
