"""The keyword index: postings of every term, and what a query finds in them.

An index is immutable; a change makes a new one from the old one's postings, without reading
unchanged items again.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from repertory.catalogue.item import Item, item_key
from repertory.catalogue.names import folded, split_name
from repertory.index.keywords.document import WRITTEN, Entry, entry, term_weights
from repertory.index.keywords.names import NameIndex
from repertory.index.keywords.policies import PolicyIndex
from repertory.index.keywords.tokens import is_unspaced, words
from repertory.index.keywords.typos import OneEdit
from repertory.index.vectors import Filter

Rows = NDArray[np.int32]
Scores = NDArray[np.float32]

PERFECT = 0.85  # the weight of a term that stands in a name and again in its description
TYPO = 0.8  # what a term one edit away, or one that was only begun, counts of its weight
SHORTEST_BEGINNING = 3  # characters of a word that was only begun
MOST_NAMES = 20  # that are read for a word: those of the items where it weighs most
MOST_VARIANTS = 12
# What a word that is nowhere counts if it is not of ASCII letters: perhaps the catalogue is in
# another language, and a sentence without spaces has a pair of characters for each of its own.
FOREIGN = 0.25
PAIR = 0.5  # what a pair of characters counts of a word
# Postings read to find candidates. Rarer terms are read first; the common terms left over only
# score what the rare ones found. This bounds the time of a query whatever the catalogue's size.
BUDGET = 50_000


class Term(msgspec.Struct, frozen=True):
    """One term of a query and the indexed terms that it stands for.

    Attributes:
        typed: The word as the query has it.
        rows: The numbers of the indexed terms: itself, or, when it is not in the index, its
            corrections and completions.
        idf: How rare it is, from 0 up; a term that is nowhere is the rarest of all.
        factor: 1 for the term itself, less for a variant.
    """

    typed: str
    rows: tuple[int, ...]
    idf: float
    factor: float


class KeywordIndex:
    """BM25F over the fields of items; see ``document.py`` for the weights."""

    def __init__(
        self,
        entries: Sequence[Entry],
        vocabulary: Sequence[str],
        offsets: NDArray[np.int64],
        rows: Rows,
        weights: NDArray[np.float16],
    ) -> None:
        """Take over postings: those of term ``t`` are ``rows[offsets[t]:offsets[t + 1]]``.

        Args:
            entries: One for each item, sorted by id; a row is an item's place in it.
            vocabulary: The terms, sorted.
            offsets: Shape ``(len(vocabulary) + 1,)``.
            rows: Ascending within each term.
            weights: The weight, 0…1, of the term in the item, beside its row.
        """
        self.entries = entries
        self.vocabulary = vocabulary
        self.offsets = offsets
        self.rows = rows
        self.weights = weights
        self.names = NameIndex(entries)
        self.policies = PolicyIndex(entries, self.names)

    @classmethod
    def empty(cls) -> Self:
        """An index of nothing."""
        return cls([], [], np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float16))

    def updated(self, removed: Collection[str], added: Iterable[Item]) -> "KeywordIndex":
        """This index without some items, by id, and with others; one of an id there is replaces it.

        The result is the same as if it had been built at once from what it holds.
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
        old_rows = moved[self.rows] if len(self.entries) else self.rows
        old_terms = np.repeat(np.arange(len(self.vocabulary)), np.diff(self.offsets))
        alive = old_rows >= 0

        numbers = {term: number for number, term in enumerate(self.vocabulary)}
        new_terms: list[int] = []
        new_rows: list[int] = []
        new_weights: list[float] = []
        for number, item in enumerate(fresh.values(), start=len(kept)):
            for term, weight in term_weights(item).items():
                new_terms.append(numbers.setdefault(term, len(numbers)))
                new_rows.append(int(place[number]))
                new_weights.append(weight)

        all_terms = np.concatenate([old_terms[alive], np.array(new_terms, np.int64)])
        all_rows = np.concatenate([old_rows[alive], np.array(new_rows, np.int32)])
        all_weights = np.concatenate([self.weights[alive], np.array(new_weights, np.float16)])

        used = np.bincount(all_terms, minlength=len(numbers)) > 0
        vocabulary = sorted(term for term, number in numbers.items() if used[number])
        rank = np.full(len(numbers), -1, np.int64)
        rank[[numbers[term] for term in vocabulary]] = np.arange(len(vocabulary))
        all_terms = rank[all_terms]
        # What was kept is in order already; a stable sort makes use of that, 20 times faster.
        sorting = np.argsort(all_terms * len(entries) + all_rows, kind="stable")
        offsets = np.zeros(len(vocabulary) + 1, np.int64)
        np.cumsum(np.bincount(all_terms, minlength=len(vocabulary)), out=offsets[1:])
        return KeywordIndex(
            [entries[row] for row in order],
            vocabulary,
            offsets,
            all_rows[sorting],
            all_weights[sorting],
        )

    def prepare(self) -> None:
        """Build all tables now, so that no search waits: under 0.1 s for 10,000 items."""
        for part in (self, self.names, self.policies):
            for name, member in vars(type(part)).items():
                if isinstance(member, cached_property):
                    getattr(part, name)

    def __len__(self) -> int:
        return len(self.entries)

    @cached_property
    def row_of(self) -> dict[str, int]:
        """The row of each item, by its id."""
        return {entry.id: row for row, entry in enumerate(self.entries)}

    @cached_property
    def row_of_key(self) -> dict[str, int]:
        """The row of each item, by its key."""
        return {item_key(entry.id): row for row, entry in enumerate(self.entries)}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {term: number for number, term in enumerate(self.vocabulary)}

    @cached_property
    def _with_character(self) -> dict[str, list[int]]:
        """The indexed terms of unspaced scripts that hold a character, the commonest first."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for number, term in enumerate(self.vocabulary):
            if len(term) <= 2 and is_unspaced(term):
                for character in {*term}:
                    found[character].append(number)
        return {
            character: sorted(numbers, key=lambda number: -self._frequency(number))
            for character, numbers in found.items()
        }

    @cached_property
    def _one_edit(self) -> OneEdit:
        return OneEdit({key.removeprefix(WRITTEN) for key in self.vocabulary})

    def terms(self, query: str) -> list[Term]:
        """The terms of a query, each once, with their corrections and completions."""
        written = {term: word for word, term in reversed(words(query))}
        return [self._term(word, term) for term, word in reversed(written.items())]

    def _term(self, word: str, term: str) -> Term:
        if len(term) == 1 and is_unspaced(term):
            variants = self._with_character.get(term, [])[:MOST_VARIANTS]
        elif (number := self._numbers.get(term)) is not None:
            share = PAIR if is_unspaced(term) else 1.0
            return Term(word, (number,), share * self._idf(self._frequency(number)), 1.0)
        else:
            near = [number for other in self._one_edit.near(word) for number in self._keys(other)]
            variants = (near or self._completions(word))[:MOST_VARIANTS]
        frequency = max((self._frequency(variant) for variant in variants), default=0)
        share = 1.0 if variants or word.isascii() else FOREIGN
        return Term(word, tuple(variants), share * self._idf(frequency), TYPO)

    def _keys(self, word: str) -> list[int]:
        """The indexed terms that are a word: as it is written, else as a stem."""
        found = (self._numbers.get(WRITTEN + word), self._numbers.get(word))
        return [number for number in found if number is not None]

    def _completions(self, word: str) -> list[int]:
        """The indexed terms that begin with a word, the shortest first."""
        if len(word) < SHORTEST_BEGINNING:
            return []
        found: list[int] = []
        for key in (WRITTEN + word, word):
            first = bisect_left(self.vocabulary, key)
            found += range(first, bisect_left(self.vocabulary, key + "\U0010ffff", lo=first))
        return sorted(found, key=lambda number: len(self.vocabulary[number]))

    def _frequency(self, number: int) -> int:
        return int(self.offsets[number + 1] - self.offsets[number])

    def _idf(self, frequency: int) -> float:
        rest = max(len(self.entries) - frequency, 0)
        return float(np.log1p((rest + 0.5) / (frequency + 0.5)))

    def candidates(self, query: Sequence[Term], limit: int, where: Filter | None = None) -> Rows:
        """The rows that match a query best, best first, of those that a filter lets through."""
        total = self._partial_scores(query)
        found = np.flatnonzero(total > 0)
        if where:
            found = found[self.allowed(found, where)]
        values = total[found]
        if len(found) > 4 * limit:
            found = found[values >= np.partition(values, -4 * limit)[-4 * limit]]
        scores = self.scores(query, found)
        return found[np.argsort(-scores, kind="stable")[:limit]].astype(np.int32)

    def _partial_scores(self, query: Sequence[Term]) -> NDArray[np.float64]:
        """The score of every row by the postings of the rarest terms, as many as are allowed."""
        rows: list[Rows] = []
        weights: list[Scores] = []
        read = 0
        for term in sorted(query, key=lambda term: -term.idf):
            for number in term.rows:
                start, end = self.offsets[number], self.offsets[number + 1]
                if read and read + end - start > BUDGET:
                    continue
                read += int(end - start)
                rows.append(self.rows[start:end])
                weights.append(self._weights[start:end] * np.float32(term.idf * term.factor))
        if not rows:
            return np.zeros(len(self.entries))
        total = np.bincount(np.concatenate(rows), np.concatenate(weights), len(self.entries))
        return total.astype(np.float64, copy=False)

    def scores(self, query: Sequence[Term], rows: NDArray[np.integer]) -> Scores:
        """How well rows match a query, 0…1, beside the rows.

        1 is a perfect match of that query: every term in the name and again in the description. A
        term that is nowhere in the index counts against all of them.
        """
        total = np.zeros(len(rows), np.float32)
        best = sum(term.idf for term in query) * PERFECT
        if not best:
            return total
        for term in query:
            weights = np.zeros(len(rows), np.float32)
            for number in term.rows:
                np.maximum(weights, self.weights_in(number, rows), out=weights)
            total += term.idf * term.factor * weights
        share: Scores = np.minimum(total / np.float32(best), np.float32(1.0))
        return share

    def is_in_a_name(self, term: Term) -> bool:
        """Whether a term, just as it was typed, is a word of some name or of a server's."""
        if term.factor < 1.0:
            return False
        (number,) = term.rows
        start, end = self.offsets[number], self.offsets[number + 1]
        weights, rows = self._weights[start:end], self.rows[start:end]
        if len(rows) > MOST_NAMES:
            rows = rows[np.argpartition(-weights, MOST_NAMES)[:MOST_NAMES]]
        found = (self.entries[row] for row in rows)
        names = (split_name(f"{entry.name} {entry.server}") for entry in found)
        return any(term.typed in folded(name).split() for name in names)

    def holds(self, number: int, row: int) -> bool:
        """Whether an indexed term is in a row."""
        postings = self.rows[self.offsets[number] : self.offsets[number + 1]]
        place = int(postings.searchsorted(row))
        return place < len(postings) and bool(postings[place] == row)

    def weights_in(self, number: int, rows: NDArray[np.integer]) -> Scores:
        """The weight of an indexed term in each of some rows, 0 where it is not."""
        start, end = self.offsets[number], self.offsets[number + 1]
        postings = self.rows[start:end]
        place = np.minimum(np.searchsorted(postings, rows), len(postings) - 1)
        there = postings[place] == rows
        return np.where(there, self._weights[start:end][place], np.float32(0.0))

    @cached_property
    def _weights(self) -> Scores:
        return self.weights.astype(np.float32)

    def allowed(self, rows: NDArray[np.integer], where: Filter) -> NDArray[np.bool_]:
        """Which of some rows a filter lets through."""
        through = np.ones(len(rows), np.bool_)
        for field, values in (
            ("kind", where.kinds),
            ("source", where.sources),
            ("server", where.servers),
        ):
            if values:
                codes, column = self._column(field)
                wanted = [codes[value] for value in values if value in codes]
                through &= np.isin(column[rows], wanted)
        if where.tags:
            tagged = [row for tag in where.tags for row in self._tagged.get(tag, ())]
            through &= np.isin(rows, np.array(tagged, np.int64))
        return through

    def _column(self, field: str) -> tuple[dict[str, int], Rows]:
        """A field of every entry as numbers, and the number of each of its values."""
        if field not in self._columns:
            codes: dict[str, int] = {}
            column = [codes.setdefault(getattr(e, field), len(codes)) for e in self.entries]
            self._columns[field] = codes, np.array(column, np.int32)
        return self._columns[field]

    @cached_property
    def _columns(self) -> dict[str, tuple[dict[str, int], Rows]]:
        return {}

    @cached_property
    def _tagged(self) -> dict[str, list[int]]:
        rows: dict[str, list[int]] = {}
        for row, tagged in enumerate(self.entries):
            for tag in tagged.tags:
                rows.setdefault(tag, []).append(row)
        return rows
