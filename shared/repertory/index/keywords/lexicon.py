"""The words of a query as terms of the index: each with its spellings, corrections, completions.

Which terms a word stands for depends on the word and on what the index has, never on how often.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise

import msgspec

from repertory.catalogue.names import compact_name
from repertory.index.keywords.background import is_known, rarity
from repertory.index.keywords.document import TOOL, TOOL_NAME, WRITTEN
from repertory.index.keywords.postings import Postings
from repertory.index.keywords.query_words import query_words
from repertory.index.keywords.tokens import is_unspaced, term_of
from repertory.index.keywords.typos import OneEdit

VARIANT_FACTOR = 0.5  # the share of its weight that a correction or completion counts
MIN_VARIED = 5  # characters of a word that is corrected, or completed, beside its exact matches
MIN_PREFIX_LENGTH = 3  # characters of a word that is completed
MAX_VARIANTS = 12
# The factors of a word's rarity: for a word that no item contains and that has other than ASCII
# letters (the catalogue may be in another language), and for a pair of characters of a script
# without spaces (a sentence has almost as many pairs as characters).
FOREIGN_FACTOR = 0.25
PAIR_FACTOR = 0.5


class Term(msgspec.Struct, frozen=True):
    """One term of a query and the indexed terms that it stands for.

    Attributes:
        typed: The word as the query has it, in lower case.
        stem: The term itself.
        exact: The indexed terms that are the word itself: one, or also the longer word that it is a
            part of (``java`` of ``JavaScript``).
        variants: The indexed terms that are its corrections or completions.
        as_typed: The indexed words, with ``WRITTEN``, that are the word itself or its plural; empty
            if its stem says as much.
        rarity: How much it tells, 0…1; see ``background.rarity``.
    """

    typed: str
    stem: str
    exact: tuple[int, ...]
    variants: tuple[int, ...]
    rarity: float
    as_typed: tuple[str, ...] = ()

    @property
    def term_ids(self) -> tuple[int, ...]:
        """All indexed terms that it stands for."""
        return self.exact + self.variants


class Lexicon:
    """Resolves the words of queries to the terms of an index."""

    def __init__(self, postings: Postings) -> None:
        self._postings = postings

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
        vocabulary = self._postings.vocabulary
        return OneEdit(
            {
                key.removeprefix(WRITTEN)
                for key in vocabulary
                if not key.startswith((TOOL, TOOL_NAME))
            }
        )

    def terms(self, query: str) -> list[Term]:
        """The terms of a query, each once.

        A word and the same word in another case, or with other separators, give the same terms.
        """
        typed = query_words(query)
        # "java script" may be one word of an item, and so may any two neighbours.
        joined: defaultdict[str, list[str]] = defaultdict(list)
        for one, other in pairwise(typed):
            for word in (one, other):
                joined[word.text].append(compact_name(one.text + other.text))
        found: dict[str, tuple[str, list[str]]] = {}
        for word in typed:
            _, others = found.setdefault(word.term, (word.text, []))
            others += [*([word.whole] if word.whole else []), *joined[word.text]]
        return [self._term(word, term, others) for term, (word, others) in found.items()]

    def _term(self, word: str, term: str, others: Iterable[str]) -> Term:
        if len(term) == 1 and is_unspaced(term):
            variants = tuple(self._with_character.get(term, [])[:MAX_VARIANTS])
            return Term(word, term, (), variants, PAIR_FACTOR)
        candidates = (self._postings.id_of(one) for one in (term, *map(term_of, others)))
        exact = tuple(dict.fromkeys(one for one in candidates if one is not None))
        if is_unspaced(term):
            return Term(word, term, exact, (), PAIR_FACTOR)
        variants = ()
        if not is_known(term) and (not exact or len(word) >= MIN_VARIED):
            variants = self._variants(compact_name(word), exact)
        is_foreign = not exact and not variants and not word.isascii()
        share = FOREIGN_FACTOR if is_foreign else 1.0
        return Term(word, term, exact, variants, share * rarity(term), _as_typed(word, term))

    def _variants(self, word: str, exact: tuple[int, ...]) -> tuple[int, ...]:
        """The corrections and completions of an unknown word."""
        near = [term_id for other in self._one_edit.near(word) for term_id in self._ids(other)]
        found = dict.fromkeys([*near, *self._completions(word)])
        return tuple(one for one in found if one not in exact)[:MAX_VARIANTS]

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


def _as_typed(word: str, term: str) -> tuple[str, ...]:
    """A derived word, its singular and its plural, as written: integrals are no integrations."""
    base = re.sub("ies$", "y", word).removesuffix("s")
    forms = dict.fromkeys((word, base, base + "s", base + "es", base.removesuffix("y") + "ies"))
    return () if term in forms or not word.isalpha() else tuple(WRITTEN + one for one in forms)
