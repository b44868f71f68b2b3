"""Reads the files of a tar archive in one pass, bounded and in linear time.

Some versions of the standard library take quadratic time for extended headers while they hold the
interpreter lock. All versions skip as many bytes as a header says, even beyond the end.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

import msgspec

BLOCK = 512  # bytes
MAX_RECORDS_SIZE = 1 << 20  # bytes of an extended header, such as a long name
CHUNK_SIZE = 1 << 16  # bytes
_MAX_DIGITS = 20

_FILES = (b"0", b"\0", b"7")
_LINKS = (b"1", b"2")
_FOLDERS, _DEVICES = (b"5",), (b"3", b"4", b"6")
_LONG_NAME, _LONG_LINK, _RECORDS, _COMMON, _SPARSE = b"L", b"K", b"x", b"g", b"S"
_POSIX, _OF_SPARSE = b"ustar\0", b"GNU.sparse."


class Stream(Protocol):
    """The stream that an archive is read from."""

    def read(self, size: int) -> bytes:
        """Read ``size`` bytes; fewer only at the end."""
        ...


class TarFile(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of an archive other than a folder.

    Attributes:
        place: Its path.
        size: Its number of bytes.
        is_executable: Whether its owner may execute it.
        odd: The kind of entry, in the plural, if it is not a regular file; else empty.
    """

    place: str
    size: int
    is_executable: bool
    odd: str = ""


class Tar:
    """The entries of an archive in order, without folders.

    Args:
        stream: The archive without its compression.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._left = 0  # unread bytes of the current file
        self._padding = 0  # bytes after it

    def __iter__(self) -> Iterator[TarFile]:
        """Iterate over the entries. The unread rest of the current file is skipped.

        Raises:
            ValueError: The archive is damaged.
            EOFError: It ends within a file.
        """
        records: dict[bytes, bytes] = {}
        while any(header := self._stream.read(BLOCK)):
            kind, size = header[156:157], _size_of(header)
            if kind in (_LONG_NAME, _LONG_LINK, _RECORDS, _COMMON):
                if kind == _LONG_NAME:
                    records[b"path"] = self._text(size).partition(b"\0")[0]
                elif kind == _RECORDS:
                    records |= _records_of(self._text(size))
                else:
                    self._begin(size)
                    self._skip()
                continue
            if b"size" in records:
                size = _number(records[b"size"], 10)
            found = _file(header, kind, size, records)
            self._begin(0 if kind in (*_LINKS, *_FOLDERS, *_DEVICES) else size)
            records = {}
            if found:
                yield found
            self._skip()

    def content(self) -> Iterator[bytes]:
        """The bytes of the current file, in pieces."""
        while self._left:
            yield self._read(min(self._left, CHUNK_SIZE))

    def _begin(self, size: int) -> None:
        self._left, self._padding = size, -size % BLOCK

    def _read(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) < size:
            raise EOFError("it ends within a file")
        self._left -= size
        return data

    def _skip(self) -> None:
        for _ in self.content():
            pass
        self._begin(self._padding)
        for _ in self.content():
            pass

    def _text(self, size: int) -> bytes:
        if size > MAX_RECORDS_SIZE:
            raise ValueError("a header in it is too long")
        self._begin(size)
        text = b"".join(self.content())
        self._skip()
        return text


def _file(header: bytes, kind: bytes, size: int, records: Mapping[bytes, bytes]) -> TarFile | None:
    """Parse the header of an entry; None for a folder."""
    name, prefix = header[:100].partition(b"\0")[0], header[345:500].partition(b"\0")[0]
    if prefix and header[257:263] == _POSIX:
        name = prefix + b"/" + name
    name = records.get(b"path", name)
    if kind in _FOLDERS or (kind == b"\0" and name.endswith(b"/")):
        return None
    odd = ""
    if kind in _LINKS:
        odd = "links"
    elif kind not in _FILES or _OF_SPARSE in records:
        odd = "devices" if kind in _DEVICES else "other entries"
    if kind == _SPARSE:  # these have a different layout after the header
        raise ValueError("it has sparse files")
    return TarFile(
        place=name.decode("utf-8", "surrogateescape"),
        size=size,
        is_executable=bool(_number(header[100:108], 8) & 0o100),
        odd=odd,
    )


def _size_of(header: bytes) -> int:
    """The size in a header; raises for a wrong checksum."""
    if len(header) < BLOCK:
        raise EOFError("it ends within a header")
    if _number(header[148:156], 8) != sum(header) - sum(header[148:156]) + 8 * ord(" "):
        raise ValueError("the checksum of a header is wrong")
    return _number(header[124:136], 8)


def _records_of(text: bytes) -> dict[bytes, bytes]:
    """The relevant records of an extended header, which are lines ``LENGTH KEY=VALUE``."""
    found = {}
    start = 0
    while start < len(text):
        space = text.find(b" ", start, start + _MAX_DIGITS)
        end = start + _number(text[start : max(space, start)], 10)
        if not start < space < end <= len(text):
            raise ValueError("an extended header is damaged")
        key, _, value = text[space + 1 : end - 1].partition(b"=")
        if key in (b"path", b"size"):
            found[key] = value
        elif key.startswith(_OF_SPARSE):
            found[_OF_SPARSE] = value
        start = end
    return found


def _number(text: bytes, base: int) -> int:
    digits = text.strip(b" \0")
    if len(digits) > _MAX_DIGITS or (digits and not digits.isdigit()):
        raise ValueError("a number in a header is invalid")
    return int(digits or b"0", base)
