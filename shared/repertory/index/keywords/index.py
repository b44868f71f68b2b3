"""The keyword index: BM25F over the fields of items, names, policies and filters.

An index is immutable; a change makes a new one from the old one's postings, without reading
unchanged items again.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from repertory.catalogue.item import Item, item_key
from repertory.index.keywords.document import Entry, entry, term_weights
from repertory.index.keywords.filters import FilterIndex
from repertory.index.keywords.lexicon import Lexicon
from repertory.index.keywords.matches import Matches
from repertory.index.keywords.names import NameIndex
from repertory.index.keywords.policies import PolicyIndex
from repertory.index.keywords.postings import Postings
from repertory.index.vectors import Filter


class KeywordIndex:
    """The items of a catalogue as the keyword arm searches them; see ``document.py`` for weights.

    Args:
        entries: One for each item, sorted by id; a row is an item's place in it.
        postings: The rows of each term.
    """

    def __init__(self, entries: Sequence[Entry], postings: Postings) -> None:
        self.entries = entries
        self.postings = postings
        self.names = NameIndex(entries)
        self.policies = PolicyIndex(entries, self.names)
        self._lexicon = Lexicon(postings)
        self._filters = FilterIndex(entries)

    @classmethod
    def empty(cls) -> Self:
        """An index without items."""
        return cls([], Postings.empty())

    def updated(self, removed: Collection[str], added: Iterable[Item]) -> "KeywordIndex":
        """This index without some items, by id, and with others, which replace those of equal id.

        The result equals an index built at once from the same items.
        """
        fresh = {item.id: item for item in added}
        gone = {*removed, *fresh}
        kept = [row for row, old in enumerate(self.entries) if old.id not in gone]
        entries = [self.entries[row] for row in kept] + [entry(item) for item in fresh.values()]
        order = sorted(range(len(entries)), key=lambda row: entries[row].id)
        place = np.empty(len(entries), np.int32)
        place[order] = np.arange(len(entries), dtype=np.int32)

        moved = np.full(len(self.entries), -1, np.int32)
        moved[kept] = place[: len(kept)]
        weights = zip(place[len(kept) :].tolist(), map(term_weights, fresh.values()), strict=True)
        return KeywordIndex(
            [entries[row] for row in order], self.postings.merged(moved, weights, len(entries))
        )

    def prepare(self) -> None:
        """Build all lookup tables now, so that no search waits: under 0.1 s for 10,000 items."""
        for part in (self, self.postings, self._lexicon, self._filters, self.names, self.policies):
            for name, value in vars(type(part)).items():
                if isinstance(value, cached_property):
                    getattr(part, name)

    def __len__(self) -> int:
        return len(self.entries)

    @cached_property
    def row_of(self) -> dict[str, int]:
        """The row of each item, by its id."""
        return {entry.id: row for row, entry in enumerate(self.entries)}

    @cached_property
    def keys(self) -> list[int]:
        """The key of each item, by its row."""
        return [item_key(entry.id) for entry in self.entries]

    @cached_property
    def row_of_key(self) -> dict[int, int]:
        """The row of each item, by its key."""
        return {key: row for row, key in enumerate(self.keys)}

    def match(self, query: str) -> Matches:
        """The terms of a query with their corrections and completions, and their matches."""
        return Matches(self._lexicon.terms(query), self.entries, self.postings, self._filters)

    def mentioning(self, key: str) -> list[int]:
        """The rows of the skills that mention a tool; see ``TOOL`` and ``TOOL_NAME``."""
        term = self.postings.id_of(key)
        return [] if term is None else self.postings.of(term)[0].tolist()

    def allowed(self, rows: NDArray[np.integer], where: Filter) -> NDArray[np.bool_]:
        """Which of some rows a filter allows."""
        return self._filters.allowed(rows, where)
