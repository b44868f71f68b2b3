"""Stores the texts of a source's items in a file, to save memory."""

import os
import weakref
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryFile

import msgspec

from repertory.catalogue.item import Item, Texts
from repertory.errors import StoreError

MIN_SIZE = 200  # bytes; smaller texts stay in memory
SLACK = 64 << 20  # bytes of obsolete texts that are always tolerated


class KeptTexts:
    """The texts of one item, in a file."""

    __slots__ = ("_place",)

    def __init__(self, file: "TextFile", start: int, size: int) -> None:
        self._place = file, start, size

    def read(self) -> Texts:
        """The texts.

        Raises:
            StoreError: The file cannot be read.
        """
        file, start, size = self._place
        return msgspec.json.decode(file.read(start, size), type=Texts)

    @property
    def size(self) -> int:
        """Their size in bytes."""
        return self._place[2]

    def move(self, target: "TextFile") -> None:
        """Move them to another file."""
        file, start, size = self._place
        self._place = target, target.write(file.read(start, size)), size


class TextFile:
    """A file without a name, which the system deletes when it is no longer used.

    Args:
        folder: A folder on the disk to use.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - open as long as used
        weakref.finalize(self, self._file.close)
        self._size = 0

    def keep(self, item: Item) -> Item:
        """Move the texts of an item here. They stay in memory if small or if the disk is full."""
        try:
            data = msgspec.json.encode(item.texts)
            if len(data) < MIN_SIZE:
                return item
            return item.without_texts(KeptTexts(self, self.write(data), len(data)))
        except (OSError, UnicodeEncodeError):
            return item

    def compacted(self, items: Iterable[Item]) -> "TextFile":
        """This file, or a new one with only the texts of these items if most texts are obsolete."""
        if self._size < SLACK:
            return self
        places = [item.texts_place for item in items]
        kept = [texts for texts in places if isinstance(texts, KeptTexts)]
        if self._size < SLACK + 2 * sum(texts.size for texts in kept):
            return self
        other = TextFile(self._folder)
        for texts in kept:
            texts.move(other)
        return other

    def write(self, data: bytes) -> int:
        """Append bytes. Returns their position."""
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
