"""Queries that quote a text, such as a sentence, a command or a setting copied from a document."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import NamedTuple

from repertory.catalogue.item import Item
from repertory.catalogue.names import UNSPACED
from repertory.catalogue.views import LINK
from repertory.index.keywords.background import rarity
from repertory.index.keywords.document import Entry
from repertory.index.keywords.query_words import AROUND, query_words
from repertory.index.keywords.tokens import runs, word_count

# A text that has this many words of a request in the same order was hardly written independently.
MIN_WORDS = 5
# Nor was one with fewer words of this total rarity, or with signs that requests do not have.
MIN_RARE_WORDS, MIN_RARITY = 3, 1.6
MIN_WORDS_OF_CODE = 2
_SIGNS = frozenset("=<>{}[]()|\\$%^~;")
_OPTION = " --"
_END = ".,:;!?"  # a sentence may be copied without its end
# Characters of scripts without spaces, words, and signs; a copy of a displayed text has no markup.
_TOKEN = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+|[^\w\s`*]")
# What may be between two words of a displayed text: spaces, markup, and the target of a link.
_GAP = r"[\s`*\[]{0,9}(?:\]\([^()]{0,300}\))?[\s`*\[]{0,9}"
_MARGIN = 400  # bytes around two words that may belong to the targets of links
_MAX_READ = 50_000  # bytes around the occurrences of two words in a text that are compared


class Quotation(NamedTuple):
    """What an item must contain to be quoted by a query.

    Attributes:
        text: The words and signs of the query in lower case, each between two spaces.
        pair: Its two longest neighbours as bytes, which are looked for first.
        reach: The number of bytes before and after them that may belong to the text.
    """

    text: str
    pair: re.Pattern[bytes]
    reach: int

    def is_in(self, text: str) -> bool:
        """Whether a text contains the quotation, in any case and with any spaces and markup."""
        lower = text.encode(errors="replace").lower()  # five times as fast as the lower case of str
        found = islice(self.pair.finditer(lower), _MAX_READ // self.reach)
        around = (lower[max(at.start() - self.reach, 0) : at.end() + self.reach] for at in found)
        return any(self.text in _joined(_tokens(one.decode(errors="ignore"))) for one in around)

    def is_of(self, entry: Entry, item: Item | None) -> bool:
        """Whether an item's description or body contains the quotation.

        Without the whole item, only the stored beginning of its description is known.
        """
        texts = (item.description, item.body) if item else (entry.description,)
        return any(map(self.is_in, texts))


@lru_cache(maxsize=64)  # several parts of a search need it
def quotation(query: str) -> Quotation | None:
    """The quotation that a query may be; None if it has too few words."""
    typed = query.lower().strip(AROUND).rstrip(_END)
    words = runs(typed)
    number = word_count(" ".join(words))
    is_code = not _SIGNS.isdisjoint(typed) or _OPTION in typed
    if number < (MIN_WORDS_OF_CODE if is_code else MIN_RARE_WORDS):
        return None
    is_short = number < MIN_WORDS and not is_code
    if is_short and sum(rarity(one.term) for one in query_words(typed)) < MIN_RARITY:
        return None
    tokens = _tokens(typed)
    pair = max(pairwise(tokens), key=lambda pair: sum(map(len, pair)))
    expression = re.compile(_GAP.join(map(_in_any_case, pair)).encode())
    return Quotation(_joined(tokens), expression, 2 * len(typed.encode()) + _MARGIN)


def _in_any_case(token: str) -> str:
    """The expression for a token in bytes, of which only those of ASCII are in lower case."""
    return "".join(re.escape(one) if one.isascii() else f"(?:{one}|{one.upper()})" for one in token)


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(LINK.sub(r"\1", text.lower()))


def _joined(tokens: Sequence[str]) -> str:
    return f" {' '.join(tokens)} "
