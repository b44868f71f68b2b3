"""The bodies of a source's items, in a file, so that they need no memory."""

import os
import weakref
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryFile

from repertory.catalogue.item import Item
from repertory.errors import StoreError

MIN_LENGTH = 200  # characters; shorter ones stay in memory
SLACK = 64 << 20  # bytes of replaced bodies that are always tolerated


class Body:
    """The body of one item, in a file."""

    __slots__ = ("_place",)

    def __init__(self, file: "BodyFile", start: int, size: int) -> None:
        self._place = file, start, size

    def read(self) -> str:
        """The text.

        Raises:
            StoreError: The file cannot be read.
        """
        file, start, size = self._place
        return file.read(start, size).decode()

    @property
    def size(self) -> int:
        """Its bytes."""
        return self._place[2]

    def move(self, target: "BodyFile") -> None:
        """Copy it to another file, and read it there from now on."""
        file, start, size = self._place
        self._place = target, target.write(file.read(start, size)), size


class BodyFile:
    """A file without a name, which is gone when nothing uses it any more.

    Args:
        folder: Where it takes its place.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - open as long as used
        weakref.finalize(self, self._file.close)
        self._size = 0

    def keep(self, item: Item) -> Item:
        """Put the body of an item here; it stays in memory if it is short or the disk is full."""
        if len(item.body) < MIN_LENGTH:
            return item
        data = item.body.encode()
        try:
            return item.without_body(Body(self, self.write(data), len(data)))
        except (OSError, UnicodeEncodeError):
            return item

    def compacted(self, items: Iterable[Item]) -> "BodyFile":
        """This file, or another one with the bodies of these items if this has too many others."""
        if self._size < SLACK:
            return self
        bodies = [item.body_place for item in items]
        kept = [body for body in bodies if isinstance(body, Body)]
        if self._size < SLACK + 2 * sum(body.size for body in kept):
            return self
        other = BodyFile(self._folder)
        for body in kept:
            body.move(other)
        return other

    def write(self, data: bytes) -> int:
        """Append bytes; returns where they start."""
        start = self._size
        if os.pwrite(self._file.fileno(), data, start) != len(data):
            raise OSError("the disk is full")
        self._size += len(data)
        return start

    def read(self, start: int, size: int) -> bytes:
        """Read bytes; any thread may do so."""
        try:
            data = os.pread(self._file.fileno(), size, start)
        except OSError as error:
            raise StoreError(f"The texts in {self._folder} cannot be read: {error}.") from error
        if len(data) != size:
            raise StoreError(f"The texts in {self._folder} cannot be read: they end too early.")
        return data
