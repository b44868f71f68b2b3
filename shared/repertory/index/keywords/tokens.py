"""Text to the terms that are indexed and searched."""

import re
from functools import lru_cache

import Stemmer

from repertory.catalogue.names import MARKS, folded, split_name

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

_WORD = re.compile(rf"[\w{MARKS}]+")
# Scripts written without spaces: Han, kana, Hangul, Thai, Lao, Khmer, Myanmar.
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003134f]+)"
)
_stem = Stemmer.Stemmer("english")


def terms(text: str) -> list[str]:
    """Every term of a text, in order, repeats included; stop words are left out."""
    return [term for _, term in words(text)]


def words(text: str) -> list[tuple[str, str]]:
    """Every word of a text that is not a stop word, as it is written, with its term."""
    return [pair for run in _WORD.findall(text) for pair in _words_of(run)]


def is_unspaced(text: str) -> bool:
    """Whether a text consists only of characters of scripts without spaces."""
    return _UNSPACED.fullmatch(text) is not None


def word_count(text: str) -> int:
    """The number of words, stop words too; two characters of an unspaced script make one."""
    unspaced = 0 if text.isascii() else sum(map(len, _UNSPACED.findall(text)))
    spaced = _UNSPACED.sub(" ", text) if unspaced else text
    return max(len(spaced.split()) + unspaced // 2, 1)


@lru_cache(maxsize=200_000)
def _words_of(run: str) -> tuple[tuple[str, str], ...]:
    """The words of one run of letters, digits and underscores, which may be an identifier."""
    found: list[tuple[str, str]] = []
    for part in split_name(run).split():
        if part.isascii():
            found += _word(part)
            continue
        for place, piece in enumerate(_UNSPACED.split(part)):
            found += _pairs(piece) if place % 2 else _word(folded(piece))
    return tuple(found)


def _word(word: str) -> list[tuple[str, str]]:
    """A word with its stem, in a list; empty for a word that is not indexed."""
    if not word or word in STOP_WORDS or len(word) > MAX_TERM_LENGTH:
        return []
    return [(word, _stem.stemWord(word))]


def _pairs(chars: str) -> list[tuple[str, str]]:
    """The overlapping pairs of characters of an unspaced script; a single character is itself."""
    pairs = [chars[i : i + 2] for i in range(len(chars) - 1)] or [chars]
    return [(pair, pair) for pair in pairs]
