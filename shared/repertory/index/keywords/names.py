"""Names found as they are typed: exact, prefix, any case and separators, one edit."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from heapq import nsmallest

from repertory.catalogue.names import compact_name
from repertory.index.keywords.document import Entry
from repertory.index.keywords.typos import OneEdit

MIN_PREFIX_LENGTH = 3  # characters; one less in other scripts than ASCII, whose signs say more
MIN_MISSPELT_LENGTH = 2  # characters; a name of three may have lost one
MAX_COMPLETIONS = 100  # as many as either arm finds
MAX_ID_WORDS = 6  # of a query that is looked up among ids, whose table takes 30 ms for 10,000

# How similar the typed text is to a name. All are exact as 32-bit numbers.
EXACT = 1.0
UNPREFIXED = 0.9375  # the name without the words of its server
ONE_EDIT = 0.875
BEGUN = 0.75  # the beginning of a name: so much of the share that was typed

Rows = dict[str, list[int]]


class NameIndex:
    """Looks names up by their letters and digits alone; ids and aliases count as names too."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries

    @cached_property
    def _names(self) -> Rows:
        return _rows_of((entry.compact, row) for row, entry in enumerate(self._entries))

    @cached_property
    def _ids(self) -> Rows:
        keys = ((compact_name(entry.id), row) for row, entry in enumerate(self._entries))
        return _rows_of((key, row) for key, row in keys if key != self._entries[row].compact)

    @cached_property
    def _aliases(self) -> Rows:
        return _rows_of(
            (key, row)
            for row, entry in enumerate(self._entries)
            if entry.aliases
            for key in {*map(compact_name, entry.aliases)} - {entry.compact}
        )

    @cached_property
    def _unprefixed(self) -> Rows:
        """The rows of names that begin with their server's, by the rest of the name."""
        return _rows_of(
            (entry.compact.removeprefix(server), row)
            for row, entry in enumerate(self._entries)
            if (server := compact_name(entry.server)) and entry.compact.startswith(server)
        )

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._names.keys() | self._aliases.keys())

    @cached_property
    def _one_edit(self) -> OneEdit:
        return OneEdit(self._sorted, MIN_MISSPELT_LENGTH)

    def exact(self, typed: str) -> list[int]:
        """The rows whose name or id is the typed one, in any case and with any separators.

        If no item has it, the rows of which it is an alias.
        """
        key = compact_name(typed)
        own = [*self._names.get(key, ())]
        if len(typed.split()) <= MAX_ID_WORDS:
            own += self._ids.get(key, ())
        return own or self._aliases.get(key, [])

    def close(self, typed: str) -> dict[int, float]:
        """The rows of names similar to the typed one, each with its similarity, 0…1.

        ``EXACT`` is the name itself, ``UNPREFIXED`` the name without the words of its server,
        ``ONE_EDIT`` a name one edit away. A name of which only the beginning was typed counts by
        the share that was typed, below ``BEGUN``.
        """
        key = compact_name(typed)
        found: dict[int, float] = {}
        begun = self._beginning_with(key)
        for name in nsmallest(MAX_COMPLETIONS, begun, key=len):
            like = BEGUN * len(key) / len(name)
            for row in self._known_as(name):
                found[row] = max(like, found.get(row, 0.0))
        for name in self._one_edit.near(key):
            found |= dict.fromkeys(self._known_as(name), ONE_EDIT)
        found |= dict.fromkeys(self._unprefixed.get(key, ()), UNPREFIXED)
        exact = self.exact(typed)
        # If an alias equals another item's name, that item ranks first.
        found |= dict.fromkeys(self._aliases.get(key, ()), ONE_EDIT)
        found |= dict.fromkeys(exact, EXACT)
        identical = [row for row in exact if typed.strip() in self._spellings(row)]
        if identical:  # the exact spelling beats other spellings of the same letters
            found |= dict.fromkeys(exact, ONE_EDIT)
            found |= dict.fromkeys(identical, EXACT)
        return found

    def _known_as(self, key: str) -> list[int]:
        return [*self._names.get(key, ()), *self._aliases.get(key, ())]

    def _spellings(self, row: int) -> tuple[str, ...]:
        entry = self._entries[row]
        return entry.id, *entry.names

    def _beginning_with(self, key: str) -> list[str]:
        """The names that start with the key and are longer, sorted."""
        if len(key) < _min_prefix_length(key):
            return []
        first = bisect_left(self._sorted, key)
        last = bisect_left(self._sorted, key + "\U0010ffff", lo=first)
        begun = self._sorted[first:last]
        return begun[1:] if begun[:1] == [key] else begun


def _min_prefix_length(key: str) -> int:
    """The length from which a key is looked up as the beginning of a name."""
    return MIN_PREFIX_LENGTH - (not key.isascii())


def _rows_of(keys: Iterable[tuple[str, int]]) -> Rows:
    """The rows of each key that is not empty."""
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for key, row in keys:
        if key:
            rows[key].append(row)
    return dict(rows)
