"""Highlights the words of a query in a text, and finds the passage with most of them."""

import re
from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape

from repertory.catalogue.names import MARKS, folded
from repertory.catalogue.passages import passages
from repertory.catalogue.views import split_at_headings
from repertory.index.keywords.tokens import is_unspaced, term_of
from repertory.search.answer import Term
from repertory_query.pages.page import legible

MAX_EXCERPT = 240  # characters
MAX_SECTION = 6_000  # searched characters of a section
LEAD = 60  # characters of an excerpt before the first highlighted word
CUT = "…"
_MARKS = "-+*>#| "  # Markdown marks before a passage, of a list, a quote or a table

_WORD = re.compile(rf"(?:(?!_)[\w{MARKS}])+")
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()\s]*\)")
Span = tuple[int, int]


class Highlighter:
    """Highlights the matched words of a hit, in all their forms.

    Args:
        terms: The matched words.
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        words = [word for term in terms for word in _WORD.findall(term.matched)]
        self._pairs = {word for word in words if is_unspaced(word)}
        self._terms = {term_of(folded(word)) for word in words if word not in self._pairs}

    def marked(self, text: str) -> Markup:
        """A text as HTML, with its matched words highlighted."""
        text, done = legible(text), 0
        html = Markup()
        for start, end in self._spans(text):
            html += escape(text[done:start]) + Markup("<mark>{}</mark>").format(text[start:end])
            done = end
        return html + escape(text[done:])

    def excerpt(self, body: str, heading: str) -> Markup:
        """The passage of a section with the most matches; empty if there is no such heading."""
        text = _text_below(body, heading)[:MAX_SECTION]
        some = [_LINK.sub(r"\1", _unmarked(passage)) for passage in passages(text)]
        if not some:
            return Markup()
        best = max(some, key=lambda passage: len({*self._words(passage)}))
        first = next(self._spans(best), (0, 0))[0]
        start = 0 if first <= LEAD else (best.find(" ", first - LEAD, first) + 1 or first - LEAD)
        shown = best[start : start + MAX_EXCERPT]
        is_cut = start + MAX_EXCERPT < len(best)
        at_word = shown.rfind(" ")
        if is_cut and at_word > MAX_EXCERPT // 2:  # else the script has no spaces
            shown = shown[:at_word]
        return escape(CUT if start else "") + self.marked(shown) + escape(CUT if is_cut else "")

    def _words(self, text: str) -> Iterator[str]:
        return (term_of(folded(text[start:end])) for start, end in self._spans(text))

    def _spans(self, text: str) -> Iterator[Span]:
        """The positions of the matched words of a text, in order."""
        for found in _WORD.finditer(text):
            word = found[0]
            if term_of(folded(word)) in self._terms:
                yield found.span()
            elif self._pairs and not word.isascii():
                yield from self._pair_spans(word, found.start())

    def _pair_spans(self, word: str, offset: int) -> Iterator[Span]:
        """The positions of matched character pairs in a word of a script without spaces."""
        end = 0
        for place in range(len(word)):
            if word[place : place + 2] in self._pairs:
                start, end = max(place, end), place + 2
                yield offset + start, offset + end


def _unmarked(passage: str) -> str:
    """A passage without leading Markdown marks, including those of task lists."""
    return passage.lstrip(_MARKS).removeprefix("[ ] ").removeprefix("[x] ")


def _text_below(body: str, heading: str) -> str:
    """The text of the first section with a heading; if it has none, that of its subsections."""
    for deepest in (6, 2):
        for section in split_at_headings(body, deepest):
            if section.heading == heading and section.text:
                return section.text
    return ""
