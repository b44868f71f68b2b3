"""A cache of the files of a folder: an unchanged file is not read again."""

import time
from collections.abc import Callable, Iterable

import msgspec

from repertory.catalogue.item import Item
from repertory.files import Signature, signature
from repertory.sources.reading.files import Found
from repertory.sources.source import Problem

# A file that changed this recently may change again with the same signature: some file systems
# count times in steps of two seconds.
GRANULARITY = 2_100_000_000  # nanoseconds


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The items and problems of one file.

    Attributes:
        items: Its items; none if its author hides them.
        problems: Its problems.
        broken: Whether an item of it could not be read, so that the index keeps its items.
    """

    items: list[Item] = []
    problems: list[Problem] = []
    broken: bool = False


class _Cached(msgspec.Struct, frozen=True):
    signature: Signature | None  # None: read the file again in any case
    reading: Reading


class ReadingCache:
    """The readings of one source's files. Supports one scan at a time.

    An unchanged file yields the same item objects, so that their computed hashes stay known.
    Broken files are always read again: the cause may lie outside the file.
    """

    def __init__(self) -> None:
        self._cached: dict[str, _Cached] = {}

    def read(self, files: Iterable[Found], parse: Callable[[Found], Reading]) -> list[Reading]:
        """Return a reading for each file, and forget all other files.

        The result of ``parse`` must depend on the one file alone.
        """
        self._cached = {file.path: self._read_one(file, parse) for file in files}
        return [one.reading for one in self._cached.values()]

    def _read_one(self, file: Found, parse: Callable[[Found], Reading]) -> _Cached:
        now = time.time_ns()
        current = signature(file.path)
        before = self._cached.get(file.path)
        if before and current and before.signature == current:
            return before
        reading = parse(file)
        if before and reading == before.reading:
            reading = before.reading
        is_stable = current and not reading.broken and max(current[:2]) < now - GRANULARITY
        return _Cached(current if is_stable else None, reading)
