"""Resolve the words of a query to indexed terms: spellings, corrections and completions.

The terms of a word depend on the word and on which terms the index contains, not on how often.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, pairwise

import msgspec
from msgspec.structs import replace

from repertory.catalogue.names import compact_name, digits
from repertory.index.keywords.background import (
    MIN_RARITY,
    frequency,
    is_english,
    is_known,
    is_word,
    rarity,
)
from repertory.index.keywords.document import WRITTEN
from repertory.index.keywords.inflections import are_forms
from repertory.index.keywords.packed import encoded
from repertory.index.keywords.parts import Part
from repertory.index.keywords.query_words import query_words
from repertory.index.keywords.spellings import other_spellings
from repertory.index.keywords.tokens import ENGLISH, RUN, is_unspaced, runs, term_of

VARIANT_FACTOR = 0.5  # factor for the weight of a correction or completion
MIN_VARIED = 5  # minimum characters to correct or complete a word that has exact matches
# Minimum characters of a word that is corrected before embedding, and of one with a wrong letter.
MIN_CORRECTED, MIN_REPLACED = 6, 8
MIN_PREFIX_LENGTH = 3  # minimum characters of a word that is completed
MAX_VARIANTS = 12
MIN_OF_CODE = 4  # minimum letters to correct a word with digits; fewer are a code
ACRONYM_LENGTH = 3  # letters of most acronyms; an additional s makes a plural
# Factors for the rarity of two kinds of words: non-ASCII words that no item contains (the catalogue
# may be in another language), and character pairs of scripts without spaces (a sentence has almost
# as many pairs as characters).
FOREIGN_FACTOR = 0.25
PAIR_FACTOR = 0.5
_HIRAGANA = re.compile("[\u3041-\u309f]")

_ACRONYM = re.compile(r"[b-df-hj-np-tv-xz]+[a-z]")  # in the singular


class QueryTerm(msgspec.Struct, frozen=True):
    """One term of a query and the indexed terms that it stands for.

    Attributes:
        typed: The word as typed in the query, in lower case.
        stem: The term itself.
        exact: The indexed terms that count as the word itself: its own, that of another spelling
            (``colour``), and the longer word that contains it (``JavaScript`` for ``java``).
        variants: The indexed terms that are its corrections or completions.
        forms: The indexed words of the term, with ``WRITTEN``, that are forms of the word; only for
            queries of one term.
        others: The indexed words of the same stem that are different words.
        rarity: How informative it is, 0…1; see ``background.rarity``.
    """

    typed: str
    stem: str
    exact: tuple[str, ...]
    variants: tuple[str, ...]
    rarity: float
    forms: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def indexed(self) -> tuple[str, ...]:
        """All indexed terms that it stands for."""
        return self.exact + self.variants

    @property
    def written(self) -> str:
        """The indexed term of the word as typed; empty if the word equals its stem."""
        return WRITTEN + self.typed if self.typed != self.stem else ""

    @property
    def beginnings(self) -> tuple[str, ...]:
        """The beginnings of all words that it stands for.

        A final i is removed, because it may stand for a y, unless it is that of a short word: API.
        """
        found = (one.removeprefix(WRITTEN) for one in self.indexed)
        return tuple(
            one if len(one) <= ACRONYM_LENGTH and one in self.typed else one.removesuffix("i")
            for one in found
        )

    @property
    def is_itself(self) -> bool:
        """Whether the stem is a form of the word, as ``track`` is of ``tracking``."""
        return are_forms(self.stem, self.typed)


class Lexicon:
    """Resolves the words of queries to the terms of an index."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts

    def terms(self, query: str) -> list[QueryTerm]:
        """The terms of a query, without duplicates.

        Case and separators do not matter.
        """
        typed = query_words(query)
        # An item may write "java script", or any two adjacent words, as one word. Joined numbers
        # are another number.
        longer: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for word in typed:
            if word.whole and not word.whole.isdigit():
                longer[word.text][word.whole] = None
        for one, other in pairwise(word.text for word in typed):
            joined = compact_name(one + other)
            if not joined.isdigit():
                longer[one][joined] = longer[other][joined] = None
        for one, other in pairwise(runs(query.lower())):
            if other in ENGLISH and is_known(term_of(one + other)):  # "back up"
                longer[one][one + other] = None
        found: dict[str, tuple[str, dict[str, None]]] = {}
        for text, term in dict.fromkeys((word.text, word.term) for word in typed):
            found.setdefault(term, (text, {}))[1].update(longer[text])
        is_alone = len(found) == 1
        grammar = set[str]() if is_alone else _grammar(found)
        return [
            replace(one, rarity=MIN_RARITY) if term in grammar else one
            for term, (text, others) in found.items()
            for one in [self._term(text, term, others, is_alone=is_alone)]
        ]

    def corrected(self, text: str) -> str:
        """A text in which each misspelt word is replaced by the indexed word that it stands for.

        Only unknown words that no item contains are replaced, and only by usual words.
        """
        return RUN.sub(lambda run: self._corrected(run[0]), text)

    def _corrected(self, word: str) -> str:
        if len(word) < MIN_CORRECTED or not (word.isascii() and word.isalpha()):
            return word
        term = term_of(word)
        if is_english(word) or (term == word and is_known(term)) or self._has(term):
            return word
        near = [
            one
            for one in sorted(self._near(word))
            if is_word(one, term_of(one)) and _is_likely_typo(word, one)
        ]
        # Forms of one word are one correction. The longest one is a word, not a stem.
        is_one = bool(near) and all(are_forms(near[0], one) for one in near)
        return max(near, key=len) if is_one else word

    def _term(self, word: str, term: str, others: Iterable[str], *, is_alone: bool) -> QueryTerm:
        if len(term) == 1 and is_unspaced(term):
            return QueryTerm(word, term, (), self._with_character(term), PAIR_FACTOR)
        candidates = dict.fromkeys((term, *map(term_of, others)))
        spellings = (word, *other_spellings(word))
        candidates |= dict.fromkeys(map(term_of, spellings[1:]))
        exact = tuple(one for one in candidates if self._has(one))
        number = _other_number(word, term)
        if number and (not exact or _is_same(word, number)) and self._has(number):
            exact += (number,)
        if is_unspaced(term):
            return QueryTerm(word, term, exact, (), PAIR_FACTOR)
        variants: tuple[str, ...] = ()
        # A misspelt word may have the term of another word: "recipie" that of "recipient".
        is_right = is_known(term) and (bool(exact) or term == word or is_english(word))
        is_version = "." in word  # which is not the beginning of a number
        if not (is_right or is_version) and (not exact or len(word) >= MIN_VARIED):
            # A query of one English word is not corrected: "cream" does not mean "create".
            is_corrected = not (is_alone and is_english(word))
            variants = self._variants(compact_name(word), exact, is_corrected=is_corrected)
        is_foreign = not exact and not variants and not word.isascii()
        share = FOREIGN_FACTOR if is_foreign else 1.0
        forms, others = self._forms(spellings) if is_alone else ((), ())
        return QueryTerm(word, term, exact, variants, share * rarity(term), forms, others)

    def _forms(self, spellings: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The indexed words that are forms of a word, and other indexed words of the same stems."""
        forms: dict[str, None] = {}
        others: dict[str, None] = {}
        for word in spellings:
            term = term_of(word)
            # The last letter of a term may differ from that of the word: an i for a y.
            beginning = WRITTEN + term[: max(MIN_PREFIX_LENGTH, len(term) - 1)]
            # A part with a form of the word also has its term.
            parts = [part for part in self._parts if part.has_term(term)]
            found = {one for part in parts for one in _beginning(part, beginning)}
            for one in sorted(found):
                written = one.removeprefix(WRITTEN)
                if term_of(written) == term:
                    (forms if are_forms(word, written) else others)[one] = None
        return tuple(forms), tuple(others)

    def _has(self, term: str) -> bool:
        return any(part.has_term(term) for part in self._parts)

    def _with_character(self, character: str) -> tuple[str, ...]:
        """The terms of unspaced scripts that contain a character, most frequent first."""
        frequency: Counter[str] = Counter()
        for part in self._parts:
            for term in part.segment.words.with_character.get(character, ()):
                frequency[term] += part.frequency(term)
        found = sorted((-count, term) for term, count in frequency.items() if count)
        return tuple(term for _, term in found[:MAX_VARIANTS])

    def _variants(
        self, word: str, exact: Collection[str], *, is_corrected: bool
    ) -> tuple[str, ...]:
        """The corrections and completions of an unknown word."""
        near = self._near(word) if is_corrected else set()
        if is_corrected and not near and word.endswith("s"):
            near = self._near(word[:-1])
        corrections = (key for other in sorted(near) for key in (WRITTEN + other, other))
        found: dict[str, None] = {}
        for one in chain(corrections, self._completions(word)):
            if len(found) == MAX_VARIANTS:
                break
            if one not in exact and self._has(one):
                found[one] = None
        return tuple(found)

    def _near(self, word: str) -> set[str]:
        """The indexed words one edit away, with the same digits.

        Empty for codes such as ``e501``. Words that only removed items contain are left out.
        """
        if digits(word) and sum(map(str.isalpha, word)) < MIN_OF_CODE:
            return set()
        near = {one for part in self._parts for one in part.segment.words.one_edit.near(word)}
        return {
            one
            for one in near
            if digits(one) == digits(word) and (self._has(WRITTEN + one) or self._has(one))
        }

    def _completions(self, word: str) -> Iterator[str]:
        """The indexed terms that start with a word, shortest first; may contain duplicates."""
        if len(word) < MIN_PREFIX_LENGTH:
            return iter(())
        found = (_beginning(part, key) for part in self._parts for key in (WRITTEN + word, word))
        return merge(*found, key=_order)


def _grammar(terms: Iterable[str]) -> set[str]:
    """The character pairs of a Japanese query that are usually particles and endings.

    They begin with hiragana, or end with it after a character of another word: 法を beside 方法.
    """
    with_hiragana = {term for term in terms if _HIRAGANA.search(term)}
    words = {character for term in terms if term not in with_hiragana for character in term}
    return {term for term in with_hiragana if _HIRAGANA.match(term) or term[0] in words}


def _is_likely_typo(typed: str, word: str) -> bool:
    """Whether a typed word is likely to be a typo of a word, and not just another rare word.

    Few people misspell the first letter. ``seeders`` is not ``seekers``, nor ``patchy`` ``patch``.
    """
    is_replaced = len(typed) == len(word) and sorted(typed) != sorted(word)
    is_long = len(typed) >= MIN_REPLACED or not is_replaced
    return typed[0] == word[0] and is_long and not typed.startswith(word)


def _beginning(part: Part, prefix: str) -> Iterator[str]:
    """The terms in the live rows of a part that start with a prefix, in ``_order``."""
    return part.beginning_with(prefix, part.segment.postings.table)


def _order(term: str) -> tuple[int, bool, str]:
    """A sort key: shorter terms first, then written words before stems."""
    return len(encoded(term)), not term.startswith(WRITTEN), term


def _other_number(word: str, term: str) -> str:
    """The plural or singular of an acronym without a stem, such as ``gpus``; else empty."""
    one = word.removesuffix("s")
    several = one + "s"
    is_acronym = term == word and not word.endswith("ss") and _ACRONYM.fullmatch(one)
    if not is_acronym or term_of(several) != several:
        return ""
    return several if word == one else one


def _is_same(word: str, other: str) -> bool:
    """Whether two words are the singular and plural of one acronym: ``slo``, ``slos``.

    Unless the singular has three letters, it must be at least twice as frequent as the plural. So
    ``dns`` and ``https`` are not plurals.
    """
    one, several = sorted((word, other), key=len)
    return len(one) == ACRONYM_LENGTH or frequency(one) >= 2 * frequency(several) > 0
