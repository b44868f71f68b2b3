"""The matches of one query's terms in the keyword index."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from repertory.catalogue.names import folded, split_name
from repertory.index.keywords.background import rarity
from repertory.index.keywords.document import WRITTEN
from repertory.index.keywords.lexicon import VARIANT_FACTOR, QueryTerm
from repertory.index.keywords.packed import Rows
from repertory.index.keywords.places import Places
from repertory.index.keywords.postings import Scores
from repertory.index.keywords.query_words import joined
from repertory.index.keywords.tokens import term_of
from repertory.index.keywords.totals import Totals
from repertory.index.vectors import NO_FILTER, Filter

if TYPE_CHECKING:
    from repertory.index.keywords.index import KeywordIndex

ENDINGS = ("e", "s", "es", "ed", "ing")  # that a stem may lack
MAX_NAMES = 20  # names read per word: those of the items in which it weighs most
MAX_WITH_COPIES = 200  # rows, many of which may be copies
# Postings read to find candidates. Rarer terms are read first; the remaining common terms only
# score the candidates found. This bounds the time of a query in a catalogue of any size.
BUDGET = 50_000


class ItemMatch(msgspec.Struct, frozen=True):
    """A term of the query as it appears in one item.

    Attributes:
        term: The term.
        spelling: The matched word: as typed, or as the item spells it if it was corrected.
        fields: The names of the fields with the word, most important first; empty if unknown.
    """

    term: QueryTerm
    spelling: str
    fields: tuple[str, ...]


class Matches:
    """The terms of a query, or some of them, and their matches in one index."""

    def __init__(self, query: str, terms: Sequence[QueryTerm], index: "KeywordIndex") -> None:
        self.terms = terms
        self._query = query
        self._index = index

    def only(self, terms: Sequence[QueryTerm]) -> "Matches":
        """The matches of some of the terms."""
        return Matches(self._query, terms, self._index)

    def best(self, limit: int, where: Filter = NO_FILTER) -> Rows:
        """The best-matching rows that a filter allows, best first.

        They contain ``limit`` distinct items if possible, so copies do not displace other items.
        With copies there are at most ``MAX_WITH_COPIES`` rows.
        """
        partial = self._partial_scores(where)
        count = 4 * limit
        while True:
            found = partial.highest(count).rows
            scores = self.scores(found)
            order = self._index.highest_first(found, scores)
            found, scores = found[order], scores[order]
            number = self._reaching(found, scores, limit)
            is_all = len(found) < count or len(found) >= MAX_WITH_COPIES
            if number <= len(found) or is_all:
                return found[: min(number, max(limit, MAX_WITH_COPIES))].astype(np.int32)
            count *= 4

    def _reaching(self, rows: NDArray[np.integer], scores: Scores, limit: int) -> int:
        """How many of the first rows contain ``limit`` distinct items; more than all if too few.

        Copies have equal scores, so rows with different scores need no check.
        """
        if len(rows) <= limit or len({*scores[:limit].tolist()}) == limit:
            return limit
        found: set[int] = set()
        for number, key in enumerate(self._index.duplicate_keys(rows[:MAX_WITH_COPIES]).tolist()):
            found.add(key)
            if len(found) == limit:
                return number + 1
        return len(rows) + 1

    def _partial_scores(self, where: Filter) -> Totals:
        """The scores of rows from the postings of the rarest terms, within ``BUDGET``.

        Filtered-out rows get no score, and their postings do not count against the budget.
        """
        allowed = self._index.allowed(np.arange(self._index.rows), where) if where else None
        read: list[tuple[Rows, Scores]] = []
        size = 0
        by_frequency = sorted(
            (self._index.frequency(one), number, one)
            for number, term in enumerate(self.terms)
            for one in term.indexed
        )
        for frequency, number, one in by_frequency:
            if allowed is None and read and size + frequency > BUDGET:
                break  # a common word has many postings, so do not even copy them
            found = self._index.of_term(one)
            if allowed is not None:
                found = [(held[allowed[held]], weight[allowed[held]]) for held, weight in found]
            count = sum(len(held) for held, _ in found)
            if read and size + count > BUDGET:
                break
            size += count
            term = self.terms[number]
            factor = np.float32(term.rarity * (1.0 if one in term.exact else VARIANT_FACTOR))
            if found:
                rows, weights = map(np.concatenate, zip(*found, strict=True))
                read.append((rows, weights * factor))
        return Totals.of(read, self._index.rows)

    def weights(self, rows: NDArray[np.integer]) -> Scores:
        """The weight of each term in some rows, 0…1: shape ``(len(terms), len(rows))``.

        A correction or completion weighs less; see ``VARIANT_FACTOR``.
        """
        found = np.zeros((len(self.terms), len(rows)), np.float32)
        for part, places in self._index.divided(rows):
            postings, own = part.segment.postings, (rows[places] - part.start).astype(np.int32)
            in_part = np.zeros((len(self.terms), len(own)), np.float32)
            for number, term in enumerate(self.terms):
                for one in term.indexed:
                    if (weight := postings.weights_in(one, own)) is None:
                        continue
                    if one not in term.exact:
                        weight *= np.float32(VARIANT_FACTOR)
                    np.maximum(in_part[number], weight, out=in_part[number])
            found[:, places] = in_part
        return found

    @cached_property
    def whole(self) -> QueryTerm:
        """All words of the query joined to one term: ``generateobject``.

        Numbers are not joined in the index: ``1.2.3`` is not ``123``.
        """
        stem = term_of(joined(self._query))
        exact = (stem,) if not stem.isdigit() and self._index.frequency(stem) else ()
        one_of_them = (term for term in self.terms if term.stem == stem)
        return next(one_of_them, QueryTerm(stem, stem, exact, (), rarity(stem)))

    def of_forms(self, limit: int, where: Filter = NO_FILTER) -> set[int]:
        """The rows that contain a form of the only word of a query, not just its stem.

        Of the rows that a filter allows, these are up to ``limit`` with the word as typed and up to
        ``limit`` with any form, heaviest first. The same applies to rows that contain all words of
        a query as one word: ``longrun``, which is divided, or ``geturl``, of which `url` is left.
        """
        asked = [self.whole.exact] if self.whole not in self.terms else []
        if len(self.terms) == 1:
            asked += [(self.terms[0].written,), self.terms[0].forms]
        found = set[int]()
        for terms in filter(None, asked):
            found |= self._heaviest(terms, limit, where)
        return found

    def _heaviest(self, terms: Sequence[str], limit: int, where: Filter) -> set[int]:
        """The rows, up to ``limit``, in which any of the terms weighs most."""
        read = []
        for term in terms:
            for rows, weights in self._index.of_term(term):
                allowed = self._index.allowed(rows, where) if where else slice(None)
                read.append((rows[allowed], weights[allowed]))
        found = Totals.of(read, self._index.rows, np.maximum).highest(limit)
        order = self._index.highest_first(found.rows, found.values)
        return {*found.rows[order[:limit]].tolist()}

    def weights_as_typed(self, term: QueryTerm, rows: NDArray[np.integer]) -> Scores:
        """The weight of a word as typed in some rows; 0 in rows with other forms of it.

        A word that equals its stem is not indexed separately, so the stem's weight is used.
        """
        return self._index.weights_in(term.written or term.stem, rows)

    def holds_form(self, term: QueryTerm, rows: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Which rows contain a form of a word, and not only another word of the same stem.

        A word that equals its stem is not indexed separately, so rows without other words of the
        stem are taken to contain it.
        """
        if not (term.forms or term.others):
            return np.ones(len(rows), np.bool_)
        holds = self._hold(term.forms, rows)
        return holds | ~self._hold(term.others, rows) if term.is_itself else holds

    def _hold(self, terms: Sequence[str], rows: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Which rows contain any of some terms."""
        holds = np.zeros(len(rows), np.bool_)
        for term in terms:
            holds |= self._index.weights_in(term, rows) > 0
        return holds

    @cached_property
    def shares(self) -> Scores:
        """The share of each term in the query's information, by rarity; they add up to 1."""
        rarities = np.array([term.rarity for term in self.terms], np.float32)
        shares: Scores = rarities / rarities.sum()
        return shares

    def scores(self, rows: NDArray[np.integer]) -> Scores:
        """How well each row matches, 0…1: the mean weight of the terms, by rarity.

        A term that no item contains lowers the score of every row.
        """
        return self.mean(self.weights(rows))

    def mean(self, weights: Scores) -> Scores:
        """The mean of the terms' weights in each row, by rarity; equal for equal weights.

        A matrix product is not used, because its last digit depends on a row's position.
        """
        mean: Scores = (self.shares[:, None] * weights).sum(axis=0)
        return mean

    def have_all(self, weights: Scores) -> NDArray[np.bool_]:
        """Which rows, given their weights, have all terms; none do if any term was corrected."""
        if not (self.terms and all(term.exact for term in self.terms)):
            return np.zeros(weights.shape[1], np.bool_)
        every: NDArray[np.bool_] = np.all(weights > 0, axis=0)
        return every

    def has(self, term: QueryTerm, row: int) -> bool:
        """Whether an item contains a term."""
        return any(self._index.holds(one, row) for one in term.indexed)

    def in_item(self, term: QueryTerm, row: int, places: Places) -> ItemMatch:
        """A term as it appears in an item that contains it."""
        keys = term.indexed
        if len(keys) > 1:
            keys = tuple(one for one in keys if self._index.holds(one, row))
        if term.stem in keys:  # prefer a name with `worktree` to a text with `work`
            own = dict.fromkeys((term.stem, *term.exact))
            key = places.first([one for one in own if one in keys])
        else:  # prefer a written word to a stem, which may not be a word
            key = max(keys, key=lambda key: key.startswith(WRITTEN))
        there = places.of(key, term.typed if key == term.stem else self._word(key, row))
        spelling = next(iter(there.values()))
        return ItemMatch(term, spelling, tuple(filter(None, there)))

    def _word(self, key: str, row: int) -> str:
        """The word for a term in a row; for a stem, a likely word that the row contains."""
        if key.startswith(WRITTEN):
            return key.removeprefix(WRITTEN)
        words = [key + ending for ending in ENDINGS]
        words += [key[:-1] + "y"] if key.endswith("i") else []
        return next((word for word in words if self._index.holds(WRITTEN + word, row)), key)

    def is_in_a_name(self, term: QueryTerm) -> bool:
        """Whether a term, as typed, is a word in the name or server of some item."""
        if not term.exact:
            return False
        parts = [
            (rows[best], weights[best])
            for rows, weights in self._index.of_term(term.exact[0])
            for best in [np.argsort(-weights, kind="stable")[:MAX_NAMES]]
        ]
        rows, weights = (np.concatenate(values) for values in zip(*parts, strict=True))
        order = self._index.highest_first(rows, weights)
        found = self._index.entries(rows[order[:MAX_NAMES]].tolist())
        names = (split_name(f"{entry.name} {entry.server}") for entry in found)
        return any(term.typed in folded(name).split() for name in names)
