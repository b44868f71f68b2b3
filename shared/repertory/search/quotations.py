"""Queries that quote a text, such as a sentence, a command, an address or a title of a document."""

import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import chain, dropwhile, islice

import msgspec

from repertory.catalogue.item import Item
from repertory.catalogue.names import MARKS, UNSPACED
from repertory.catalogue.views import LINK, Section, split_at_headings
from repertory.index.keywords.background import rarity
from repertory.index.keywords.query_words import AROUND, query_words
from repertory.index.keywords.tokens import STOP_WORDS, runs, term_of, word_count
from repertory.text import clean

# A text that has this many words of a request in the same order was hardly written independently.
MIN_WORDS = 5
# Nor was one with fewer words of this total rarity, or with signs that requests do not have.
MIN_RARE_WORDS, MIN_RARITY = 3, 1.6
MIN_WORDS_OF_CODE = 2
MIN_WORDS_OF_TITLE = 2  # many sections have a title of one word
_SIGNS = frozenset("=<>{}[]()|\\$%^~;")
_OPTION = " --"
_END = f"{AROUND}.,:;!?\u2026\u3002"  # a sentence may be copied without its end
_STRAIGHT = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")  # quotation marks
_MARKS = {"'": "(?:'|\u2018|\u2019)", '"': '(?:"|\u201c|\u201d)'}
# Characters of scripts without spaces, words such as `foo-bar` and `1.5`, and signs. A copy of a
# displayed text has no markup.
_TOKEN = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+(?:[-.][^\W{UNSPACED}]+)*|[^\w\s`*]")
_EMPHASIS = re.compile(r"(?<!\w)_+|_+(?!\w)")
_NUMBER = "0123456789.) "  # characters of the number of a section
_ADDRESS = re.compile(r"[^\s/]+/\S+")  # of a web page or a file
_MAIL = re.compile(r"[^\s@]+@[^\s@]+")  # an e-mail address, or a version: checkout@v4
_BLOCK_QUOTE = re.compile(r"\n[ \t>]{0,20}>")  # at the beginning of a line
# What may be between two words of a displayed text, in bytes: spaces, of which one may be the
# non-breaking one, markup, and the target of a link.
_GAP = r"(?:[\s`*_\[]{0,9}\]\([^()]{0,300}\))?[\s`*_\[>\xc2\xa0]{0,40}"
_STARS = "[*`]{0,3}"  # which are no tokens: src/**/*.py
PART = 4  # words and signs that are looked for first
_MARGIN = 400  # bytes around these that may belong to the targets of links
_MAX_READ = 50_000  # bytes around their occurrences in a text that are compared
_MAX_TITLES = 1_000  # titles with the words of a query that are compared


class Quotation(msgspec.Struct, frozen=True, dict=True):
    """What an item must contain to be quoted by a query.

    Attributes:
        tokens: The words and signs of the query, in lower case.
        is_address: Whether it may be the target of a link, and not only a displayed text.
    """

    tokens: Sequence[str]
    is_address: bool = False

    @cached_property
    def _rarest(self) -> re.Pattern[bytes]:
        """The expression for its rarest tokens in a row, or for a whole address."""
        if self.is_address:  # of which many may begin alike
            return re.compile(_STARS.join(map(_in_any_case, self.tokens)).encode())
        last = max(len(self.tokens) - PART, 0)
        parts = [self.tokens[at : at + PART] for at in range(last + 1)]
        rarest = max(parts, key=lambda part: sum(map(_rarity, part)))
        return re.compile(_GAP.join(map(_in_any_case, rarest)).encode())

    def is_in(self, text: str) -> bool:
        """Whether a text contains the quotation, in any case and with any spaces and markup."""
        lower = _lower(text)
        wanted = _joined(self.tokens)
        reach = 2 * len(wanted.encode()) + _MARGIN
        found = islice(self._rarest.finditer(lower), _MAX_READ // reach)
        around = (lower[max(at.start() - reach, 0) : at.end() + reach] for at in found)
        texts = (one.decode(errors="ignore") for one in around)
        return any(wanted in _joined(_tokens(one, is_address=self.is_address)) for one in texts)

    def is_within(self, section: Section) -> bool:
        """Whether a section contains the quotation."""
        return self.is_in(f"{section.title}\n{section.text}")

    def is_of(self, item: Item) -> bool:
        """Whether an item's description or body contains the quotation."""
        return any(map(self.is_in, (item.description, item.body)))


class Title(Quotation, frozen=True, dict=True):
    """A query of a few usual words, which quotes only a section that has exactly this title.

    Other texts have the words by chance. The number of a section does not matter, nor do signs
    around its title, such as emoji.
    """

    def is_within(self, section: Section) -> bool:
        """Whether a section has this title."""
        title = _without_signs(_tokens(section.title))
        return self.tokens in (title, [*dropwhile(_is_number_or_sign, title)])

    def is_of(self, item: Item) -> bool:
        """Whether an item has a section with this title."""
        # It is much faster to look at the lines first than to find the sections of every body.
        _, *after = f"\n{item.body}".split("\n#")
        lines = dict.fromkeys(one[:_MARGIN].partition("\n")[0] for one in after)
        if not self._rarest.search(_lower("\n".join(lines))):
            return False
        found = islice((one for one in lines if self._rarest.search(_lower(one))), _MAX_TITLES)
        sections = chain.from_iterable(split_at_headings(f"#{line}") for line in found)
        # A line of code is no title.
        return any(map(self.is_within, sections)) and any(
            map(self.is_within, split_at_headings(item.body))
        )


@lru_cache(maxsize=64)  # several parts of a search need it
def quotation(query: str) -> Quotation | None:
    """The quotation that a query may be; None if it is a single word."""
    typed = clean(query).lower().strip(AROUND).rstrip(_END)  # as items are
    words = runs(typed)
    number = word_count(" ".join(words))
    is_mail = _MAIL.fullmatch(typed) is not None
    is_code = not _SIGNS.isdisjoint(typed) or _OPTION in typed or is_mail
    if number < MIN_WORDS_OF_TITLE:
        return None
    is_short = number < (MIN_WORDS_OF_CODE if is_code else MIN_RARE_WORDS)
    is_address = not is_short and _ADDRESS.fullmatch(typed) is not None
    is_usual = number < MIN_WORDS and not (is_code or is_address)
    if is_short or (is_usual and _rarity_of(typed) < MIN_RARITY):
        return Title(_without_signs(_tokens(typed)))
    return Quotation(_tokens(typed, is_address=is_address), is_address)


def _rarity_of(text: str) -> float:
    return sum(rarity(one.term) for one in query_words(text))


def _lower(text: str) -> bytes:
    """A text in bytes, of which those of ASCII are in lower case; five times as fast as in str."""
    return text.encode(errors="replace").lower()


def _tokens(text: str, *, is_address: bool = False) -> list[str]:
    """The words and signs of a text in lower case.

    The targets of links and the underscores around words only count for an address.
    """
    lower = _BLOCK_QUOTE.sub("\n", f"\n{text}").lower().translate(_STRAIGHT)
    return _TOKEN.findall(lower if is_address else LINK.sub(r"\1", _EMPHASIS.sub("", lower)))


def _without_signs(tokens: Sequence[str]) -> list[str]:
    """The tokens without the signs around them."""
    rest = [*dropwhile(_is_sign, tokens)]
    return [*dropwhile(_is_sign, reversed(rest))][::-1]


def _is_sign(token: str) -> bool:
    """Whether a token is a sign that may be around a title; those of ``C++`` and ``C#`` are not."""
    if len(token) > 1 or token.isalnum() or token in MARKS:
        return False
    return token in _END or not token.isascii()


def _is_number_or_sign(token: str) -> bool:
    return not token.strip(_NUMBER) or _is_sign(token)


def _joined(tokens: Sequence[str]) -> str:
    return f" {' '.join(tokens)} "


def _rarity(token: str) -> float:
    return 0.0 if token in STOP_WORDS else rarity(term_of(token))


def _in_any_case(token: str) -> str:
    """The expression for a token in bytes, of which only those of ASCII are in lower case.

    A straight quotation mark stands for the typographic ones, too.
    """
    if marks := _MARKS.get(token):
        return marks
    return "".join(re.escape(one) if one.isascii() else f"(?:{one}|{one.upper()})" for one in token)
