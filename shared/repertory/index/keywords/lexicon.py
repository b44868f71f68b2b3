"""The words of a query as terms of the index: the word itself, its corrections or completions."""

from bisect import bisect_left
from collections import defaultdict
from functools import cached_property

import msgspec
import numpy as np

from repertory.index.keywords.document import WRITTEN
from repertory.index.keywords.postings import Postings
from repertory.index.keywords.tokens import is_unspaced, words
from repertory.index.keywords.typos import OneEdit

VARIANT_FACTOR = 0.8  # the share of its weight that a correction or completion counts
MIN_PREFIX_LENGTH = 3  # characters of a word that is completed
MAX_VARIANTS = 12
# The factors of a word's idf: for a word that no item contains and that has other than ASCII
# letters (the catalogue may be in another language), and for a pair of characters of a script
# without spaces (a sentence has almost as many pairs as characters).
FOREIGN_FACTOR = 0.25
PAIR_FACTOR = 0.5


class Term(msgspec.Struct, frozen=True):
    """One term of a query and the indexed terms that it stands for.

    Attributes:
        typed: The word as the query has it.
        term_ids: The indexed terms: the term itself or, when the index does not have it, its
            corrections or completions.
        idf: Inverse document frequency, from 0 up; highest for a term that no item contains.
        factor: 1 for the term itself, less for a variant.
    """

    typed: str
    term_ids: tuple[int, ...]
    idf: float
    factor: float

    @property
    def is_exact(self) -> bool:
        """Whether the index has the term as it was typed."""
        return self.factor == 1.0


class Lexicon:
    """Resolves the words of queries to the terms of an index of some number of items."""

    def __init__(self, postings: Postings, items: int) -> None:
        self._postings = postings
        self._items = items

    @cached_property
    def _with_character(self) -> dict[str, list[int]]:
        """The terms of unspaced scripts that contain a character, the most frequent first."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for term_id, term in enumerate(self._postings.vocabulary):
            if len(term) <= 2 and is_unspaced(term):
                for character in {*term}:
                    found[character].append(term_id)
        return {
            character: sorted(ids, key=self._postings.frequency, reverse=True)
            for character, ids in found.items()
        }

    @cached_property
    def _one_edit(self) -> OneEdit:
        return OneEdit({key.removeprefix(WRITTEN) for key in self._postings.vocabulary})

    def terms(self, query: str) -> list[Term]:
        """The terms of a query, each once, with their corrections and completions."""
        written = {term: word for word, term in reversed(words(query))}
        return [self._term(word, term) for term, word in reversed(written.items())]

    def _term(self, word: str, term: str) -> Term:
        if len(term) == 1 and is_unspaced(term):
            variants = self._with_character.get(term, [])[:MAX_VARIANTS]
        elif (term_id := self._postings.id_of(term)) is not None:
            share = PAIR_FACTOR if is_unspaced(term) else 1.0
            idf = share * self._idf(self._postings.frequency(term_id))
            return Term(word, (term_id,), idf, 1.0)
        else:
            near = [term_id for other in self._one_edit.near(word) for term_id in self._ids(other)]
            variants = (near or self._completions(word))[:MAX_VARIANTS]
        frequency = max(map(self._postings.frequency, variants), default=0)
        share = 1.0 if variants or word.isascii() else FOREIGN_FACTOR
        return Term(word, tuple(variants), share * self._idf(frequency), VARIANT_FACTOR)

    def _ids(self, word: str) -> list[int]:
        """The indexed terms that are a word: as it is written, and as a stem."""
        found = (self._postings.id_of(WRITTEN + word), self._postings.id_of(word))
        return [term_id for term_id in found if term_id is not None]

    def _completions(self, word: str) -> list[int]:
        """The indexed terms that start with a word, the shortest first."""
        if len(word) < MIN_PREFIX_LENGTH:
            return []
        vocabulary = self._postings.vocabulary
        found: list[int] = []
        for key in (WRITTEN + word, word):
            first = bisect_left(vocabulary, key)
            found += range(first, bisect_left(vocabulary, key + "\U0010ffff", lo=first))
        return sorted(found, key=lambda term_id: len(vocabulary[term_id]))

    def _idf(self, frequency: int) -> float:
        rest = max(self._items - frequency, 0)
        return float(np.log1p((rest + 0.5) / (frequency + 0.5)))
