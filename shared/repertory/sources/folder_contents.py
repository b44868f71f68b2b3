"""The items of a folder at the last reading, so that updates cost only the size of the change."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from repertory.catalogue.item import Item, Kind
from repertory.sources.folder_memory import KnownItem
from repertory.sources.reading_cache import Reading
from repertory.sources.source import Problem, warning

MAX_HELD = 16  # files whose items are cached by id during an update; one may have thousands

Entry = Item | KnownItem


class FolderContents:
    """The files of a folder with their readings, and their combined items.

    If several files have an item with the same id, the first file by place counts.

    Args:
        same_id: Makes the problem of an item that was left out, given it and the one that counts.

    Attributes:
        readings: The readings of the files, by place.
        unchanged: The ids of the items that were not read again.
    """

    def __init__(self, same_id: Callable[[Entry, Entry], Problem]) -> None:
        self._same_id = same_id
        self.readings: dict[str, Reading] = {}
        self.unchanged: set[str] = set()
        self._offers: dict[str, list[str]] = {}  # the places of each id, sorted
        self._first: dict[str, Entry] = {}  # the items that count, by id
        self._named: dict[str, str | set[str]] = {}  # the id or ids of these, by name
        self._marked: set[str] = set()  # the places with problems or unread items
        self._left_out: dict[str, list[Problem]] = {}  # by id
        self._shadowed: dict[str, list[Problem]] = {}  # by name

    def replace(self, readings: Mapping[str, Reading]) -> None:
        """Replace the readings of all files."""
        changes: dict[str, Reading | None] = dict.fromkeys(self.readings.keys() - readings.keys())
        changes |= {
            place: reading
            for place, reading in readings.items()
            if self.readings.get(place) is not reading
        }
        self.change(changes)

    def change(self, readings: Mapping[str, Reading | None]) -> dict[str, Entry | None]:
        """Replace the readings of some files; None for a file that is no longer read.

        Returns:
            All items that may have changed, by id; None for removed ones.
        """
        ids: dict[str, None] = {}
        for place, reading in readings.items():
            before = self.readings.pop(place, None)
            self._marked.discard(place)
            for item in _entries(before):
                ids[item.id] = None
                if place in self._offers.get(item.id, ()):
                    self._offers[item.id].remove(place)
            if reading is None:
                continue
            self.readings[place] = reading
            if reading.problems or reading.broken or reading.postponed:
                self._marked.add(place)
            for item in _entries(reading):
                ids[item.id] = None
                places = self._offers.setdefault(item.id, [])
                if place not in places:
                    places.insert(bisect_left(places, place), place)
        self._settle(ids)
        return {item_id: self._first.get(item_id) for item_id in ids}

    def entries(self) -> Iterator[Entry]:
        """All items that count, in the order of the files."""
        for place in sorted(self.readings):
            for item in _entries(self.readings[place]):
                if self._first[item.id] is item:
                    yield item

    def marked(self) -> Iterator[tuple[str, Reading]]:
        """The files with problems or unread items, as places with their readings, sorted."""
        for place in sorted(self._marked):
            yield place, self.readings[place]

    def problems(self) -> list[Problem]:
        """The problems of the files, and of conflicts between their items."""
        files = [problem for _, reading in self.marked() for problem in reading.problems]
        between = [*self._left_out.values(), *self._shadowed.values()]
        found = [problem for problems in between for problem in problems]
        return [*files, *sorted(found, key=lambda problem: problem.path)]

    def _settle(self, ids: Mapping[str, None]) -> None:
        """Update which items count for these ids, and which skills are shadowed."""
        names: dict[str, None] = {}
        held = lru_cache(MAX_HELD)(self._held)
        for item_id in ids:
            before = self._first.pop(item_id, None)
            self.unchanged.discard(item_id)
            self._left_out.pop(item_id, None)
            if before is not None:
                names[before.name] = None
                self._unname(before.name, item_id)
            places = self._offers[item_id]
            if not places:
                del self._offers[item_id]
                continue
            first, *others = [item for place in places for item in held(place)[item_id]]
            self._first[item_id] = first
            if isinstance(first, KnownItem):
                self.unchanged.add(item_id)
            self._name(first.name, item_id)
            names[first.name] = None
            if others:
                self._left_out[item_id] = [self._same_id(other, first) for other in others]
        for name in names:
            self._shadow(name)

    def _name(self, name: str, item_id: str) -> None:
        """Add an item to those with a name. Most names have only one."""
        ids = self._named.setdefault(name, item_id)
        if isinstance(ids, set):
            ids.add(item_id)
        elif ids != item_id:
            self._named[name] = {ids, item_id}

    def _unname(self, name: str, item_id: str) -> None:
        ids = self._named[name]
        if isinstance(ids, set):
            ids.discard(item_id)
        if ids in (item_id, set()):
            del self._named[name]

    def _held(self, place: str) -> dict[str, list[Entry]]:
        """The items of a file, by id."""
        held: dict[str, list[Entry]] = {}
        for item in _entries(self.readings[place]):
            held.setdefault(item.id, []).append(item)
        return held

    def _shadow(self, name: str) -> None:
        """Update the warnings about skills with the name of an earlier item."""
        self._shadowed.pop(name, None)
        ids = self._named.get(name, "")
        if isinstance(ids, str) or len(ids) < 2:
            return
        if not any(self._first[item_id].kind is Kind.SKILL for item_id in ids):
            return
        places = sorted({self._offers[item_id][0] for item_id in ids})
        ordered = [
            item
            for place in places
            for item in _entries(self.readings[place])
            if item.name == name and self._first[item.id] is item
        ]
        first, *others = ordered
        self._shadowed[name] = [
            warning(
                item.path,
                f"The skill {name!r} is shadowed by {first.id} ({first.path}); both are found, "
                "but rename one of them.",
                item=item.id,
            )
            for item in others
            if item.kind is Kind.SKILL
        ]


def _entries(reading: Reading | None) -> tuple[Entry, ...] | list[Item]:
    return () if reading is None else reading.known or reading.items
