"""A cache of the files of a folder, so that unchanged files are not read again."""

from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

from repertory.catalogue.item import Item
from repertory.sources.folder_memory import (
    CHANGING,
    FolderState,
    KnownFile,
    KnownItem,
    Memory,
    settled_signature,
)
from repertory.sources.reading.files import Found
from repertory.sources.reading.walk import SLICE
from repertory.sources.source import Problem, error
from repertory.system.files import Signature


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The items and problems of one file.

    Attributes:
        items: Its items; empty if it is hidden.
        problems: Its problems.
        broken: Whether an item of it could not be read, so that the index keeps its items.
        known: Its items as read by an earlier process, if this one has not read it; the last known
            items of a broken file, if they are kept.
        postponed: Whether it has changed and there was no time to read it.
        hidden: Why it has no items, as a clause with "it" as its subject: its author hides it, or
            it is an empty document, or one for other programs.
    """

    items: list[Item] = []
    problems: list[Problem] = []
    broken: bool = False
    known: tuple[KnownItem, ...] = ()
    postponed: bool = False
    hidden: str = ""

    def known_items(self) -> tuple[KnownItem, ...]:
        """Its items as a later process knows them."""
        return self.known or tuple(map(KnownItem.of, self.items))


def unread(file: Found, message: str, line: int | None = None) -> Reading:
    """The reading of a file whose items could not be read, with the reason as an error."""
    return Reading(problems=[error(file.path, message, line)], broken=True)


class _Cached(msgspec.Struct, frozen=True):
    signature: Signature | None
    reading: Reading

    @property
    def is_settled(self) -> bool:
        """Whether the same signature means the same reading."""
        return self.signature not in (None, CHANGING) and not self.reading.broken


class ReadingCache:
    """The readings of one source's files. Supports one scan at a time.

    An unchanged file yields the same item objects, so that their hashes are not computed again.
    Broken files are always read again, because the cause may be outside the file.
    """

    def __init__(self) -> None:
        self._cached: dict[str, _Cached] = {}
        self._is_late: Callable[[], bool] = lambda: False

    def resume(self, memory: Memory, is_late: Callable[[], bool]) -> None:
        """Continue from the results of an earlier process.

        Args:
            memory: The results.
            is_late: Whether the time for reading files is up.
        """
        self._is_late = is_late
        ids = Counter(item.id for known in memory.known.values() for item in known.items)
        for path, known in memory.known.items():
            # Reread all files that share an id, because together they decide which one counts.
            is_shared = any(ids[item.id] > 1 for item in known.items)
            reading = Reading(known=known.items, problems=list(known.problems), broken=known.broken)
            last = CHANGING if is_shared else memory.seen.files.get(path, CHANGING)
            self._cached[path] = _Cached(last, reading)

    def read(
        self,
        files: Iterable[Found],
        parse: Callable[[Found], Reading],
        pause: Callable[[], None] = lambda: None,
    ) -> list[Reading]:
        """Return a reading for each file, and forget all other files.

        Args:
            files: The files.
            parse: Reads one file. The result must depend only on this file and ``last``.
            pause: Called after every ``SLICE`` files.
        """
        cached = {}
        for number, file in enumerate(files, 1):
            cached[file.path] = self._read_one(file, parse)
            if not number % SLICE:
                pause()
        self._cached = cached
        return [one.reading for one in cached.values()]

    def read_again(self, file: Found, parse: Callable[[Found], Reading]) -> Reading:
        """Return a reading of one file and keep all others; see ``read``."""
        self._cached[file.path] = one = self._read_one(file, parse)
        return one.reading

    def last(self, path: str) -> Reading:
        """The last reading of a file; without items if it was never read."""
        before = self._cached.get(path)
        return before.reading if before else Reading()

    def forget(self, path: str) -> None:
        """Forget a file that is no longer read."""
        self._cached.pop(path, None)

    def memory(self, seen: FolderState) -> Memory:
        """The results of the last scan, given the state of everything else that it depended on."""
        signatures = {path: one.signature for path, one in self._cached.items()}
        known = {
            path: KnownFile(
                one.reading.known_items(), tuple(one.reading.problems), one.reading.broken
            )
            for path, one in self._cached.items()
        }
        return Memory(msgspec.structs.replace(seen, files=seen.files | signatures), known)

    def _read_one(self, file: Found, parse: Callable[[Found], Reading]) -> _Cached:
        current = settled_signature(file.path)
        before = self._cached.get(file.path)
        if before and before.is_settled and before.signature == current:
            return before
        if self._is_late():
            postponed = msgspec.structs.replace(self.last(file.path), postponed=True)
            return _Cached(CHANGING, postponed)
        reading = parse(file)
        if before and _is_same(reading, before.reading):
            reading = before.reading
        return _Cached(current, reading)


def _is_same(reading: Reading, other: Reading) -> bool:
    """Whether two readings are equal, wherever the texts of their items are stored."""
    return [item.metadata_hash() for item in reading.items] == [
        item.metadata_hash() for item in other.items
    ] and msgspec.structs.replace(reading, items=[]) == msgspec.structs.replace(other, items=[])
