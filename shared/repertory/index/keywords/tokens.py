"""Text to the terms that are indexed and searched."""

import re
import unicodedata
from functools import lru_cache

import Stemmer

from repertory.catalogue.names import split_name

# Words too common to tell one item from another. Kept out of the index and of queries, so that a
# small catalogue, which has no reliable statistics, does not take them for rare.
STOP_WORDS = frozenset(
    """a about above after all also am an and any are as at be been but by can could did do does for
    from get had has have how i if in into is it its let like me my need of on or our please she
    should so some such than that the their them then there these they this those to up us use used
    using was we were what when where which while who will with would you your want
    wants""".split()  # noqa: SIM905 -- a list of ninety literals would be harder to read
)
LONGEST_TERM = 40  # characters; longer runs are hashes and encoded data, not words

_WORD = re.compile(r"\w+")
# Scripts written without spaces: Han, kana, Hangul, Thai, Lao, Khmer, Myanmar.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003134f]+"
)
_stem = Stemmer.Stemmer("english")


def terms(text: str) -> list[str]:
    """Every term of a text, in order, repeats included; stop words are left out."""
    return [term for _, term in words(text)]


def words(text: str) -> list[tuple[str, str]]:
    """Every word of a text that is not a stop word, as it is written, with its term."""
    return [pair for run in _WORD.findall(text) for pair in _words_of(run)]


@lru_cache(maxsize=200_000)
def _words_of(run: str) -> tuple[tuple[str, str], ...]:
    """The words of one run of letters, digits and underscores, which may be an identifier."""
    found: list[tuple[str, str]] = []
    for part in split_name(run).split():
        if not part.isascii() and _UNSPACED.search(part):
            found += [(gram, gram) for gram in _grams(part)]
        elif part not in STOP_WORDS and len(part) <= LONGEST_TERM:
            found.append((_fold(part), _fold(_stem.stemWord(part))))
    return tuple(found)


def _grams(text: str) -> list[str]:
    """Overlapping pairs of characters of unspaced scripts, whole words of what stands between."""
    found: list[str] = []
    end = 0
    for run in _UNSPACED.finditer(text):
        if run.start() > end:
            found.append(text[end : run.start()])
        chars = run[0]
        found += [chars[i : i + 2] for i in range(len(chars) - 1)] or [chars]
        end = run.end()
    if end < len(text):
        found.append(text[end:])
    return found


def _fold(term: str) -> str:
    """Drop accents, so that ``café`` and ``cafe`` are one term."""
    if term.isascii():
        return term
    decomposed = unicodedata.normalize("NFKD", term)
    return "".join(c for c in decomposed if not unicodedata.combining(c)) or term
