"""Reads one file: bounded, confined to its root, never blocking."""

import os

import msgspec

from repertory.sources.reading.encodings import in_older_encoding
from repertory.sources.source import Problem, error, warning
from repertory.system.paths import UnfitFileError
from repertory.system.untrusted_files import UTF_16, read_bytes, read_inside
from repertory.text import UNFIT, clean, is_clean

FILE_LIMIT = 1 << 20  # bytes

_BINARY = "The file is binary (it holds a zero byte); if it is text, save it as UTF-8."
EMPTY = "The file is empty; write what it is for, or delete it."
NO_TEXT = frozenset({_BINARY, EMPTY})  # the messages for files without any text


class Found(msgspec.Struct, frozen=True, order=True):
    """One file.

    Attributes:
        place: Its path relative to the root, with ``/`` between its parts.
        path: Its absolute path.
        root: The path of the root without links, if the file must be inside it; else empty.
    """

    place: str
    path: str
    root: str = ""


def read_text(path: str, limit: int = FILE_LIMIT) -> tuple[str | None, list[Problem]]:
    """Read the file at a path, wherever its links lead; see ``read_file``."""
    return read_file(Found(path, path), limit)


def read_file(file: Found, limit: int = FILE_LIMIT) -> tuple[str | None, list[Problem]]:
    """Read a file of at most ``limit`` bytes as UTF-8; line ends become newlines.

    A byte order mark is removed; with that of UTF-16, the file is read as such. A text in a common
    older encoding is decoded, other invalid UTF-8 is replaced, and unfit characters are removed,
    each with a warning.

    Returns:
        The text and the problems. The text is None if the file is unreadable, not a plain file,
        outside its root, over the limit, binary or empty.
    """
    try:
        data = (
            read_inside(file.root, file.place, limit, is_text=True)
            if file.root
            else read_bytes(file.path, limit, is_text=True)
        )
    except OSError as exc:
        return None, [error(file.path, _unreadable(file, exc))]
    return text_of(data, file.path)


def text_of(data: bytes, path: str) -> tuple[str | None, list[Problem]]:
    """The text of a file with this content; see ``read_file``."""
    if data.startswith(UTF_16):
        data = data.decode("utf-16", errors="replace").encode()
    if b"\0" in data:
        return None, [error(path, _BINARY)]
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        return None, [error(path, EMPTY)]
    problems = []
    try:
        text = data.decode()
    except UnicodeDecodeError as exc:
        older = in_older_encoding(data)
        text, name = older or (data.decode(errors="replace"), "")
        done = f"it was read as {name}" if name else "the invalid bytes were replaced"
        message = f"The file is not UTF-8 (byte {exc.start:,}); {done}. Save it as UTF-8."
        line = data.count(b"\n", 0, exc.start) + 1
        problems.append(warning(path, message, line))
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not is_clean(text):
        text = clean(text)
        problems.append(warning(path, f"The file has {UNFIT}; they were left out."))
    return text, problems


def _unreadable(file: Found, reason: OSError) -> str:
    """A sentence that says why a file cannot be used."""
    if isinstance(reason, UnfitFileError):
        return f"The file was not read: {reason.strerror}."
    # Unlike ``Path.is_symlink``, it does not raise if the file system is unavailable.
    if isinstance(reason, FileNotFoundError) and os.path.islink(file.path):  # noqa: PTH114
        return "The link leads to a file that does not exist; correct it or remove it."
    return f"The file cannot be read ({reason.strerror})."
