"""Queries in another language than the catalogue's, and the words that both share."""

import re

from repertory.catalogue.names import folded
from repertory.index.keywords.background import is_english
from repertory.index.keywords.lexicon import QueryTerm
from repertory.index.keywords.matches import Matches
from repertory.index.keywords.tokens import ENGLISH, OTHER_LANGUAGES

_WORD = re.compile(r"\w+")


def shared_terms(text: str, matches: Matches) -> list[QueryTerm]:
    """The terms of a foreign-language query that are words of names; empty for an English query.

    An English catalogue can answer only the ASCII words of such a query that occur in names:
    ``GitHub``, ``issue``.
    """
    if not is_in_another_language(text):
        return []
    return [term for term in matches.terms if term.typed.isascii() and matches.is_in_a_name(term)]


def is_in_another_language(text: str) -> bool:
    """Whether the query has at least as many foreign words as English function words.

    A single foreign word in ASCII is not enough, as ``du`` is also a command. English also has
    words with accents, such as ``résumé``.
    """
    words = _WORD.findall(text)
    others = sum(map(_is_foreign, words))
    is_sure = others > 1 or not text.isascii()
    return is_sure and others > 0 and others >= sum(folded(word) in ENGLISH for word in words)


def _is_foreign(word: str) -> bool:
    plain = folded(word)
    return plain in OTHER_LANGUAGES or not (word.isascii() or is_english(plain))
