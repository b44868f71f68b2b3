"""Queries in another language than the catalogue's, which still find the words that both share."""

import re
from collections.abc import Sequence

from repertory.catalogue.names import folded
from repertory.index.keywords.index import KeywordIndex, Term
from repertory.index.keywords.tokens import ENGLISH, OTHER_LANGUAGES

_WORD = re.compile(r"\w+")


def shared_terms(text: str, index: KeywordIndex, terms: Sequence[Term]) -> list[Term]:
    """The terms of a query in another language that are words of names; none for English ones.

    Of such a query the words that names have, in ASCII, are what a catalogue in English can answer:
    ``GitHub``, ``issue``. The others are in it by chance if at all.
    """
    if not _is_in_another_language(text):
        return []
    return [term for term in terms if term.typed.isascii() and index.is_in_a_name(term)]


def _is_in_another_language(text: str) -> bool:
    """Whether as many words are of another's letters or grammar as are of English grammar."""
    words = [folded(word) if word.isascii() else word for word in _WORD.findall(text)]
    others = sum(not word.isascii() or word in OTHER_LANGUAGES for word in words)
    return others > 0 and others >= sum(word in ENGLISH for word in words)
