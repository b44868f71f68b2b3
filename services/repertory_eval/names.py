"""The names of a catalogue, and the items that have them."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from rapidfuzz import process
from rapidfuzz.distance import OSA

from repertory.catalogue.names import compact_name
from repertory.index.keywords.document import Entry


class Names:
    """The names of a catalogue, compared by letters and digits.

    Ids and aliases are names, too. The successor of a deprecated item also has that item's names.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._items: defaultdict[str, set[str]] = defaultdict(set)
        names = {
            entry.id: {*map(compact_name, (entry.id, *entry.names))} - {""} for entry in entries
        }
        for item, own in names.items():
            for name in own:
                self._items[name].add(item)
        for entry in entries:
            if entry.policy and (successors := self.of(entry.policy.deprecated_by)):
                for name in names[entry.id]:
                    self._items[name] |= successors
        self._sorted = sorted({entry.compact for entry in entries})

    @cached_property
    def _names(self) -> list[str]:
        return list(self._items)

    def of(self, name: str) -> set[str]:
        """The ids of the items with a name."""
        return self._items.get(compact_name(name), set())

    def within(self, typed: str, edits: int) -> set[str]:
        """The ids of the items with a name that is at most ``edits`` edits from the typed one.

        An edit drops, adds or replaces a character, or swaps two adjacent ones.
        """
        near = process.extract(
            compact_name(typed), self._names, scorer=OSA.distance, score_cutoff=edits, limit=None
        )
        return {item for name, _, _ in near for item in self._items[name]}

    def sharing(self, prefix: str) -> int:
        """The number of different names that begin with these letters and digits."""
        after = prefix + "\U0010ffff"
        return bisect_left(self._sorted, after) - bisect_left(self._sorted, prefix)
