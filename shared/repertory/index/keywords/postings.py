"""Postings: the items that contain each indexed term, with the term's weight in each."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int32]
Scores = NDArray[np.float32]


class Postings:
    """A sorted vocabulary; a term's id is its place in it, an item is a row.

    Args:
        vocabulary: The terms, sorted.
        offsets: Shape ``(len(vocabulary) + 1,)``.
        rows: The rows of term ``t`` are ``rows[offsets[t]:offsets[t + 1]]``, ascending.
        weights: The weight, 0…1, of the term in the item, beside its row.
    """

    def __init__(
        self,
        vocabulary: Sequence[str],
        offsets: NDArray[np.int64],
        rows: Rows,
        weights: NDArray[np.float16],
    ) -> None:
        self.vocabulary = vocabulary
        self.offsets = offsets
        self.rows = rows
        self.weights = weights

    @classmethod
    def empty(cls) -> Self:
        """Postings without terms."""
        return cls([], np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float16))

    def merged(
        self, moved: Rows, added: Iterable[tuple[int, Mapping[str, float]]], items: int
    ) -> "Postings":
        """These postings for a new list of items.

        Args:
            moved: The new row of each old row, or -1 for an item that was removed.
            added: The row and the term weights of each new item.
            items: The number of items in the new list.
        """
        old_rows = moved[self.rows] if len(moved) else self.rows
        old_terms = np.repeat(np.arange(len(self.vocabulary)), np.diff(self.offsets))
        alive = old_rows >= 0

        ids = {term: term_id for term_id, term in enumerate(self.vocabulary)}
        new_terms: list[int] = []
        new_rows: list[int] = []
        new_weights: list[float] = []
        for row, weights in added:
            for term, weight in weights.items():
                new_terms.append(ids.setdefault(term, len(ids)))
                new_rows.append(row)
                new_weights.append(weight)

        all_terms = np.concatenate([old_terms[alive], np.array(new_terms, np.int64)])
        all_rows = np.concatenate([old_rows[alive], np.array(new_rows, np.int32)])
        all_weights = np.concatenate([self.weights[alive], np.array(new_weights, np.float16)])

        used = np.bincount(all_terms, minlength=len(ids)) > 0
        vocabulary = sorted(term for term, term_id in ids.items() if used[term_id])
        rank = np.full(len(ids), -1, np.int64)
        rank[[ids[term] for term in vocabulary]] = np.arange(len(vocabulary))
        all_terms = rank[all_terms]
        # The old postings are in order already, which makes a stable sort 20 times faster.
        sorting = np.argsort(all_terms * items + all_rows, kind="stable")
        offsets = np.zeros(len(vocabulary) + 1, np.int64)
        np.cumsum(np.bincount(all_terms, minlength=len(vocabulary)), out=offsets[1:])
        return Postings(vocabulary, offsets, all_rows[sorting], all_weights[sorting])

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {term: term_id for term_id, term in enumerate(self.vocabulary)}

    @cached_property
    def _weights(self) -> Scores:
        return self.weights.astype(np.float32)

    def id_of(self, term: str) -> int | None:
        """The id of a term, or None if no item contains it."""
        return self._ids.get(term)

    def frequency(self, term_id: int) -> int:
        """How many items contain a term."""
        return int(self.offsets[term_id + 1] - self.offsets[term_id])

    def of(self, term_id: int) -> tuple[Rows, Scores]:
        """The rows that contain a term, ascending, and its weight in each."""
        start, end = self.offsets[term_id], self.offsets[term_id + 1]
        return self.rows[start:end], self._weights[start:end]

    def holds(self, term_id: int, row: int) -> bool:
        """Whether a row contains a term."""
        rows = self.rows[self.offsets[term_id] : self.offsets[term_id + 1]]
        place = int(rows.searchsorted(row))
        return place < len(rows) and bool(rows[place] == row)

    def weights_in(self, term_id: int, rows: NDArray[np.integer]) -> Scores:
        """The weight of a term in each of some rows, 0 in rows without it."""
        holding, weights = self.of(term_id)
        place = np.minimum(np.searchsorted(holding, rows), len(holding) - 1)
        return np.where(holding[place] == rows, weights[place], np.float32(0.0))

    def with_any(self, terms: Iterable[str]) -> dict[int, float]:
        """The rows that contain one of some terms, and the greatest weight of these in each row."""
        found: dict[int, float] = {}
        for term_id in (self.id_of(term) for term in terms):
            if term_id is not None:
                for row, weight in zip(*self.of(term_id), strict=True):
                    found[int(row)] = max(float(weight), found.get(int(row), 0.0))
        return found

    def with_all(self, terms: Collection[str]) -> tuple[Rows, Scores]:
        """The rows that contain all of some terms, and the least weight of these in each row."""
        ids = [term_id for term in terms if (term_id := self.id_of(term)) is not None]
        if len(ids) < len(terms):
            return np.zeros(0, np.int32), np.zeros(0, np.float32)
        rows, _ = self.of(min(ids, key=self.frequency))
        weights = np.min([self.weights_in(term_id, rows) for term_id in ids], axis=0)
        return rows[weights > 0], weights[weights > 0]
