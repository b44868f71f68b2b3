"""Text to the terms that are indexed and searched."""

import re
from functools import lru_cache
from typing import NamedTuple

import Stemmer

from repertory.catalogue.names import MARKS, compact_name, folded, split_name

# Words too common to tell one item from another. They are left out of the index and of queries: a
# small catalogue has no reliable statistics and would take them for rare.
ENGLISH = frozenset(
    """a about above after all also am an and any are as at be been but by can could did do does for
    from get had has have how i if in into is it its let like me my need of on or our please she
    should so some such than that the their them then there these they this those to up us use used
    using was we were what when where which while who will with would you your want
    wants""".split()  # noqa: SIM905 -- a list of ninety literals would be harder to read
)
# The same for other languages, without accents, and without words that English uses too.
OTHER_LANGUAGES = frozenset(
    """auf bei das dem der ein eine einem einen einer fur ich im ist nach nicht und von wie wir
    zum zur avec aux cette dans de des du en et je la le les mes mon pour que qui sur un une
    con del el las los para por quiero che gli il nel della eu meu uma een het hoe ik naar voor
    bir icin ile nasil""".split()  # noqa: SIM905 -- as above
)
STOP_WORDS = ENGLISH | OTHER_LANGUAGES
MAX_TERM_LENGTH = 40  # characters; longer runs are hashes and encoded data, not words

RUN = re.compile(rf"[\w{MARKS}]+(?:[-.][\w{MARKS}]+)*")
_PIECE = re.compile(rf"[\w{MARKS}]+")
_CAMEL = re.compile(r"[^\W\d_]+")
MAX_PIECES = 3  # of a word with hyphens or dots that is a term as a whole
# Scripts written without spaces: Han, kana, Hangul, Thai, Lao, Khmer, Myanmar.
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003134f]+)"
)
_stem = Stemmer.Stemmer("english")

Pair = tuple[str, str]  # a word as it is written, in lower case, and its term


class Token(NamedTuple):
    """One word of a text as it is typed, which may be an identifier of several words.

    Attributes:
        text: As it is typed, in lower case.
        parts: Its words that are not stop words, each with its term.
        wholes: Itself without separators, if it may be one word: ``LaTeX``, ``k8s``, ``gpt-4o``;
            before it, those of its pieces.
        camel: All its words, stop words too, if only case divides it.
        pieces: What hyphens and dots divide it into; empty for one piece.
    """

    text: str
    parts: tuple[Pair, ...]
    wholes: tuple[Pair, ...]
    camel: tuple[str, ...] = ()
    pieces: tuple[str, ...] = ()

    @property
    def whole(self) -> Pair | None:
        """The word without separators, if it may be one word, with its term."""
        is_whole = bool(self.wholes) and self.wholes[-1][0] == compact_name(self.text)
        return self.wholes[-1] if is_whole else None


def tokens(text: str) -> list[Token]:
    """Every word of a text as it is typed, in order; underscores separate words."""
    return [_token(part) for run in RUN.findall(text) for part in run.split("_")]


def terms(text: str) -> list[str]:
    """Every term of a text, in order, repeats included; stop words are left out."""
    return [term for _, term in words(text)]


def words(text: str) -> list[Pair]:
    """Every word of a text that is not a stop word, as it is written, with its term."""
    return [pair for token in tokens(text) for pair in token.parts]


def wholes(text: str) -> list[Pair]:
    """Every word of a text that has parts and may be one word itself, with its term."""
    return [pair for token in tokens(text) for pair in token.wholes]


@lru_cache(maxsize=20_000)  # names and servers, which every search reads
def term_set(text: str) -> frozenset[str]:
    """The terms of a short text."""
    return frozenset(terms(text))


def term_of(word: str) -> str:
    """The term of one word in lower case."""
    term: str = _stem.stemWord(word)
    return term


def is_unspaced(text: str) -> bool:
    """Whether a text consists only of characters of scripts without spaces."""
    return _UNSPACED.fullmatch(text) is not None


def word_count(text: str) -> int:
    """The number of words, stop words too; two characters of an unspaced script make one."""
    unspaced = 0 if text.isascii() else sum(map(len, _UNSPACED.findall(text)))
    spaced = _UNSPACED.sub(" ", text) if unspaced else text
    return max(len(spaced.split()) + unspaced // 2, 1)


@lru_cache(maxsize=200_000)
def _token(run: str) -> Token:
    """One run of letters and digits, and of hyphens and dots between these."""
    parts: list[Pair] = []
    named = split_name(run).split()
    for part in named:
        if part.isascii():
            parts += _word(part)
            continue
        for place, piece in enumerate(_UNSPACED.split(part)):
            parts += _pairs(piece) if place % 2 else _word(folded(piece))
    if len(named) < 2 or not run.isascii():
        return Token(run.lower(), tuple(parts), ())
    pieces = _PIECE.findall(run)
    joined = [*pieces, run] if 1 < len(pieces) <= MAX_PIECES else pieces
    found = [compact_name(one) for one in joined if _may_be_one_word(one)]
    wholes = tuple((one, term_of(one)) for one in dict.fromkeys(found))
    camel = tuple(named) if _CAMEL.fullmatch(run) else ()
    several = tuple(pieces) if len(pieces) > 1 else ()
    return Token(run.lower(), tuple(parts), wholes, camel, several)


def _may_be_one_word(text: str) -> bool:
    """Whether a text of several words may be one: of letters in mixed case, digits or hyphens."""
    if len(text) > MAX_TERM_LENGTH or " " not in split_name(text):
        return False
    if _CAMEL.fullmatch(text) or ("-" in text and "." not in text):
        return any(map(str.isalpha, text))
    return any(map(str.isdigit, text)) and any(map(str.isalpha, text))


def _word(word: str) -> list[Pair]:
    """A word with its stem, in a list; empty for a word that is not indexed."""
    if not word or word in STOP_WORDS or len(word) > MAX_TERM_LENGTH:
        return []
    return [(word, term_of(word))]


def _pairs(chars: str) -> list[Pair]:
    """The overlapping pairs of characters of an unspaced script; a single character is itself."""
    pairs = [chars[i : i + 2] for i in range(len(chars) - 1)] or [chars]
    return [(pair, pair) for pair in pairs]
