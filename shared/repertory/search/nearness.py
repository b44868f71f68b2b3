"""Whether the words of a query are near each other in a text."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from repertory.catalogue.names import folded
from repertory.catalogue.views import Section
from repertory.index.keywords.lexicon import QueryTerm
from repertory.search.reasons import terms_of

NEAR = 80  # characters before and after the rarest word in which the others must be
_MAX_LOOKS = 50  # occurrences of the rarest word that are examined
# Letters of Latin, Greek and Cyrillic, and accents. `folded` is slower for a long text.
_ACCENTED = re.compile("[\u00c0-\u052f]")
_WITHOUT_ACCENTS = {code: folded(chr(code)) for code in range(0xC0, 0x530)}


def is_near(terms: Sequence[QueryTerm], text: str) -> bool:
    """Whether a text has all terms near each other somewhere."""
    rarest, *others = sorted(terms, key=lambda term: -term.rarity)
    lower = text.lower()
    if not lower.isascii() and _ACCENTED.search(lower):
        lower = lower.translate(_WITHOUT_ACCENTS)
    around = (lower[max(at - NEAR, 0) : at + NEAR] for at in _places(rarest, lower))
    # A beginning may be within another word, so the words are compared as well.
    return any(
        all(any(one in part for one in term.beginnings) for term in others)
        and len(terms_of(Section(heading="", text=part), terms)) == len(terms)
        for part in around
    )


def _places(term: QueryTerm, lower: str) -> Iterator[int]:
    """The first places of a term's beginnings in a text in lower case without accents.

    Those at the beginning of a word come first: a text with "page" fifty times may have "age".
    """
    for beginning in map(re.escape, term.beginnings):
        # An expression that begins with letters is much faster than one that looks before them.
        for expression in (rf"{beginning}(?<![^\W_]{beginning})", beginning):
            found = re.finditer(expression, lower)
            yield from (one.start() for one in islice(found, _MAX_LOOKS))
