"""Names found as they are typed: exact, prefix, any case and separators, one edit."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from repertory.catalogue.names import compact_name
from repertory.index.keywords.document import Entry
from repertory.index.keywords.typos import OneEdit

SHORTEST_PREFIX = 3  # characters
MOST_COMPLETIONS = 20

# How like a name what was typed is. All three are exact as 32-bit numbers.
EXACT = 1.0
ONE_EDIT = 0.875
MOST_BEGUN = 0.75


class NameIndex:
    """Looks names up by their letters and digits alone; ids count as names too."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries

    @cached_property
    def _rows(self) -> dict[str, list[int]]:
        rows: defaultdict[str, list[int]] = defaultdict(list)
        for row, entry in enumerate(self._entries):
            if entry.compact:
                rows[entry.compact].append(row)
        for row, entry in enumerate(self._entries):
            if row not in rows[key := compact_name(entry.id)] and key:
                rows[key].append(row)
        return dict(rows)

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted({entry.compact for entry in self._entries if entry.compact})

    @cached_property
    def _one_edit(self) -> OneEdit:
        return OneEdit(self._sorted)

    def exact(self, typed: str) -> list[int]:
        """The rows whose name or id is the typed one, whatever its case and separators."""
        return self._rows.get(compact_name(typed), [])

    def close(self, typed: str) -> dict[int, float]:
        """The rows of names like the typed one, each with how like it is, 0…1.

        ``EXACT`` is the name itself, ``ONE_EDIT`` a name one edit away; a name that was only begun
        counts by the share of it that was typed, up to ``MOST_BEGUN``.
        """
        key = compact_name(typed)
        found: dict[int, float] = {}
        for name in self._beginning_with(key):
            for row in self._rows[name]:
                found[row] = MOST_BEGUN * len(key) / len(name)
        for name in self._one_edit.near(key):
            for row in self._rows[name]:
                found[row] = ONE_EDIT
        for row in self._rows.get(key, ()):
            found[row] = EXACT
        identical = [row for row in found if self._entries[row].id == typed.strip()]
        if identical:  # an id says more than a name of the same letters
            found |= {row: min(value, ONE_EDIT) for row, value in found.items()}
            found |= dict.fromkeys(identical, EXACT)
        return found

    def _beginning_with(self, key: str) -> list[str]:
        """The shortest names that the key begins."""
        if len(key) < SHORTEST_PREFIX:
            return []
        first = bisect_left(self._sorted, key)
        last = bisect_left(self._sorted, key + "\U0010ffff", lo=first)
        return sorted(self._sorted[first:last], key=lambda name: (len(name), name))[
            :MOST_COMPLETIONS
        ]
