"""Postings: for each indexed term, the items that contain it, with its weight in each."""

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from repertory.index.keywords.packed import Rows, Strings, Table, numbers
from repertory.text import MAX_REMEMBERED_LENGTH

Scores = NDArray[np.float32]

MAX_SPANS = 20_000  # cached spans of terms; queries repeat their words
_NOWHERE = (0, 0)  # the span of a missing term


class Postings:
    """The rows and weights of each term.

    Args:
        table: The rows of each term.
        weights: For each of these rows, the term's weight in the item, 0…1.

    Attributes:
        vocabulary: The terms, sorted.
        rows: The rows of all terms; those of one term are at its ``span``, ascending.
    """

    def __init__(self, table: Table, weights: NDArray[np.float16]) -> None:
        self.table = table
        self.vocabulary = table.keys
        self.rows = table.rows
        self.weights = weights
        self._offsets = numbers(table.offsets)
        self._spans: dict[str, tuple[int, int]] = {}

    @classmethod
    def of(cls, weights: Sequence[Mapping[str, float]]) -> Self:
        """Make postings from the term weights of items; an item's row is its place."""
        vocabulary = sorted({term for one in weights for term in one})
        places = {term: place for place, term in enumerate(vocabulary)}
        terms = np.array([places[term] for one in weights for term in one], np.int64)
        rows = np.repeat(np.arange(len(weights), dtype=np.int32), [len(one) for one in weights])
        held = np.array([weight for one in weights for weight in one.values()], np.float16)
        table, order = Table.arranged(Strings.of(vocabulary), terms, rows)
        return cls(table, held[order])

    @classmethod
    def merged(cls, parts: Sequence["Postings"], moved: Sequence[Rows]) -> Self:
        """Merge postings. ``moved`` has the new row of each row of each part, or -1 to drop it."""
        table, order = Table.merged([one.table for one in parts], moved)
        return cls(table, np.concatenate([one.weights for one in parts])[order])

    def span(self, term: str) -> tuple[int, int]:
        """Where the rows of a term begin and end; the same place if no item contains it."""
        try:
            return self._spans[term]
        except KeyError:
            pass
        if len(self._spans) >= MAX_SPANS:
            self._spans.clear()
        place = self.vocabulary.find(term)
        span = _NOWHERE if place is None else (self._offsets[place], self._offsets[place + 1])
        if len(term) <= MAX_REMEMBERED_LENGTH:
            self._spans[term] = span
        return span

    def of_term(self, term: str) -> tuple[Rows, Scores]:
        """The rows that contain a term, ascending, and its weight in each."""
        start, end = self.span(term)
        return self.rows[start:end], self.weights[start:end].astype(np.float32)

    def holds(self, term: str, row: int) -> bool:
        """Whether a row contains a term."""
        start, end = self.span(term)
        rows = self.rows[start:end]
        place = int(rows.searchsorted(np.int32(row)))
        return place < len(rows) and bool(rows[place] == row)

    def weights_in(self, term: str, rows: NDArray[np.integer]) -> Scores | None:
        """The weight of a term in each row, 0 in rows without it; None if no item has it."""
        start, end = self.span(term)
        if start == end:
            return None
        holding = self.rows[start:end]
        # With another integer type, NumPy would convert the whole posting list.
        place = holding.searchsorted(rows.astype(np.int32, copy=False))
        holds = holding.take(place, mode="clip") == rows
        weights: Scores = self.weights[start:end].take(place, mode="clip").astype(np.float32)
        weights *= holds
        return weights
