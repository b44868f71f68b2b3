"""The words of a query as terms of the index: each word, its spellings, corrections, completions.

Which terms a word stands for depends on the word and on what the index has, never on how often.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise

import msgspec

from repertory.catalogue.names import compact_name, split_name
from repertory.index.keywords.background import is_common, is_known, rarity
from repertory.index.keywords.document import WRITTEN
from repertory.index.keywords.postings import Postings
from repertory.index.keywords.tokens import RUN, STOP_WORDS, Token, is_unspaced, term_of, tokens
from repertory.index.keywords.typos import OneEdit

VARIANT_FACTOR = 0.5  # the share of its weight that a correction or completion counts
MIN_VARIED = 5  # characters of a word that is corrected, or completed, beside its exact matches
MIN_PREFIX_LENGTH = 3  # characters of a word that is completed
MIN_PART = 2  # characters of each common word into which a rare word is split
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
        rarity: How much it tells, 0…1; see ``background.rarity``.
    """

    typed: str
    stem: str
    exact: tuple[int, ...]
    variants: tuple[int, ...]
    rarity: float

    @property
    def term_ids(self) -> tuple[int, ...]:
        """All indexed terms that it stands for."""
        return self.exact + self.variants


@lru_cache(maxsize=256)  # each part of a search needs it
def plain(text: str) -> str:
    """A text with its identifiers as words, in lower case, as queries are embedded.

    ``createIssue``, ``create_issue`` and ``CREATE-ISSUE`` are equal, and so are ``LaTeX`` and
    ``latex``; versions and other words with digits stay as they are.
    """
    return RUN.sub(lambda run: _plain(run[0]), text).strip()


@lru_cache(maxsize=20_000)
def _plain(run: str) -> str:
    joined = run.replace("-", "").replace("_", "").lower()
    pieces = [piece for piece in run.replace("_", "-").split("-") if piece]
    if len(pieces) > 1:
        is_one = _is_one_word(joined, split_name(run).split())
        written = run.lower() if any(map(str.isdigit, run)) else joined
        return written if is_one else " ".join(map(_plain, pieces))
    if any(map(str.isdigit, run)):
        return run.lower()
    return " ".join(_identifier(joined, split_name(run).split())) or joined


def _is_one_word(whole: str, parts: Iterable[str]) -> bool:
    """Whether a word of several parts is a usual one, and no identifier of common words."""
    term = term_of(whole)
    is_identifier = all(is_common(word, term_of(word)) for word in parts)
    return is_known(term) and (is_common(whole, term) or not is_identifier)


def _words(token: Token) -> list[tuple[str, str, str]]:
    """The words of a token, each with its term, and the whole that it is a part of."""
    of_pieces = [
        found for piece in token.pieces for inner in tokens(piece) for found in _words(inner)
    ]
    if token.whole is None and (of_pieces or len(token.parts) != 1):
        return of_pieces or [(word, term, "") for word, term in token.parts]
    whole, term = token.whole or token.parts[0]
    if token.whole is None or token.camel:
        split = _identifier(whole, token.camel)
        common = [word for word in split if word not in STOP_WORDS]
        return [(word, term_of(word), whole) for word in common] or [(token.text, term, "")]
    found = of_pieces or [(word, of, "") for word, of in token.parts]
    is_one = _is_one_word(whole, [word for word, _ in token.parts])
    if is_one or all(len(word) <= 2 for word, _, _ in found):
        return [(token.text, term, "")]
    found = [(word, of, part_of or whole) for word, of, part_of in found if len(word) > 1]
    has_digits = any(map(str.isdigit, whole))
    if has_digits and not all(is_known(of) or of.isdigit() for _, of, _ in found):
        found.append((token.text, term, ""))
    return found


def _identifier(whole: str, by_case: Sequence[str]) -> Sequence[str]:
    """The words of an identifier, by case if that divides it into common words; empty if none."""
    if is_common(whole, term_of(whole)):
        return ()
    if len(by_case) > 1 and all(map(_is_part, by_case)):
        return by_case
    return _common_words(whole)


@lru_cache(maxsize=1_000)
def _common_words(word: str) -> tuple[str, ...]:
    """The common words that a rare word consists of: ``createissue``; empty if none."""
    if is_common(word, term_of(word)) or not (word.isascii() and word.isalpha()):
        return ()
    for end in range(len(word) - MIN_PART, MIN_PART - 1, -1):
        first, rest = word[:end], word[end:]
        if _is_part(first) and (others := (rest,) if _is_part(rest) else _common_words(rest)):
            return (first, *others)
    return ()


def _is_part(word: str) -> bool:
    return word in STOP_WORDS or is_common(word, term_of(word))


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
        return OneEdit({key.removeprefix(WRITTEN) for key in self._postings.vocabulary})

    def terms(self, query: str) -> list[Term]:
        """The terms of a query, each once.

        A word and the same word in another case, or with other separators, give the same terms.
        """
        typed = [word for token in tokens(query) for word in _words(token)]
        # "java script" may be one word of an item, and so may any two neighbours.
        joined: defaultdict[str, list[str]] = defaultdict(list)
        for (first, _, _), (second, _, _) in pairwise(typed):
            for word in (first, second):
                joined[word].append(compact_name(first + second))
        found: dict[str, tuple[str, list[str]]] = {}
        for word, term, whole in typed:
            _, others = found.setdefault(term, (word, []))
            others += [*([whole] if whole else []), *joined[word]]
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
        return Term(word, term, exact, variants, share * rarity(term))

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
