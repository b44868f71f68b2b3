"""Splits text into the terms that are indexed and searched."""

import re
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

import Stemmer

from repertory.catalogue.names import MARKS, UNSPACED, compact_name, folded, split_name
from repertory.text import MAX_REMEMBERED, MAX_REMEMBERED_LENGTH

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

# Words too common to distinguish items. They are left out of the index and of queries, because a
# small catalogue has no reliable statistics that would show them to be common.
ENGLISH = frozenset(
    """a about above after all also am an and any are as at be been but by can could did do does for
    from get had has have how i if in into is it its let like me my need of on or our please she
    should so some such than that the their them then there these they this those to up us use used
    using was we were what when where which while who will with would you your want
    wants cant didnt doesnt dont isnt wasnt whats wont""".split()  # noqa: SIM905 -- readable so
)
# Stop words of other languages, without accents, and without words that English uses too.
OTHER_LANGUAGES = frozenset(
    """auf bei das dem der ein eine einem einen einer fur ich im ist nach nicht und von wie wir
    zum zur avec aux cette dans de des du en et je la le les mes mon pour que qui sur un une
    con del el las los para por quiero che gli il nel della eu meu uma een het hoe ik naar voor
    bir icin ile nasil""".split()  # noqa: SIM905 -- as above
)
STOP_WORDS = ENGLISH | OTHER_LANGUAGES
MAX_ACRONYM = 4  # characters of a stop word in capitals that is indexed: WHO, IT
MAX_TERM_LENGTH = 40  # characters; longer runs are hashes and encoded data, not words

# C++ and C# are words. In longer words, such as AFL++, the sign is not part of the word.
_SIGNED = r"[A-Za-z](?:\+\+|#)(?![#+A-Za-z])"
# .NET is a word, too. Many names of programs end with it, but so do addresses.
_DOTNET = r"(?<![\w*)\]}>])\.(?:NET|Net|net)(?![A-Za-z_]|\.\w)"
RUN = re.compile(rf"{_SIGNED}|{_DOTNET}|[\w{MARKS}]+(?:[-.](?!{_SIGNED})[\w{MARKS}]+)*")
DOTNETS = re.compile(_DOTNET)
_ALSO_LOWER = frozenset(("", "asp", "ado", "ml", "vb"))  # these also precede ".net" in lower case
_VERSION = re.compile(r"(?<![0-9.])[0-9]{1,4}(?:\.[0-9]{1,4}){1,3}(?![0-9]|\.[0-9])")
_SEPARATORS = re.compile("[-._]+")
DOTNET = "dotnet"  # the term of .NET, as it is written in commands
_UNSPACED = re.compile(f"([{UNSPACED}]+)")
_stem = Stemmer.Stemmer("english", 0)  # no cache, because it is slower than stemming

Pair = tuple[str, str]  # a word as written, in lower case, and its term


def runs(text: str) -> list[str]:
    """All words of a text as typed, with hyphens, dots and underscores, in order."""
    return RUN.findall(text)


def pieces(run: str) -> list[str]:
    """The parts of a word between hyphens, dots and underscores."""
    at = -4 if _is_dotnet(run) else len(run)
    return [piece for piece in (*_SEPARATORS.split(run[:at]), run[at:]) if piece]


def versions(run: str) -> list[str]:
    """The version numbers in a word, and their first two parts: ``3.12.1`` and ``3.12``."""
    found = _VERSION.findall(run) if "." in run else ()
    parts = ((one, ".".join(one.split(".")[:2])) for one in found)
    return [*dict.fromkeys(chain.from_iterable(parts))]


def _is_dotnet(run: str) -> bool:
    """Whether a word ends with the name .NET and is not an address."""
    before, dot, last = run.rpartition(".")
    if not dot or last.lower() != "net":
        return False
    return last == "NET" or before.lower() in _ALSO_LOWER


def terms(text: str) -> list[str]:
    """All terms of a text, in order and with repeats, without stop words."""
    return [term for _, term in words(text)]


def words(text: str) -> list[Pair]:
    """All words of a text except stop words, as written, each with its term."""
    return _of_runs(_words, text)


def wholes(text: str) -> list[Pair]:
    """All words of a text that have parts but may be one word, each with its term.

    They are written without separators: ``latex`` for ``LaTeX``, ``gpt4o`` for ``gpt-4o``. Words of
    scripts without spaces are left out.
    """
    return _of_runs(_wholes, text)


def spellings(text: str) -> list[Pair]:
    """The words and the wholes of a text together, word by word."""
    return _of_runs(_spellings, text)


@lru_cache(maxsize=MAX_REMEMBERED)  # for names and servers, which every search reads
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
    """The number of words, including stop words; two unspaced characters count as one word."""
    unspaced = 0 if text.isascii() else sum(map(len, _UNSPACED.findall(text)))
    spaced = _UNSPACED.sub(" ", text) if unspaced else text
    return max(len(spaced.split()) + unspaced // 2, 1)


def _of_runs(find: "_lru_cache_wrapper[tuple[Pair, ...]]", text: str) -> list[Pair]:
    """The pairs that a cached function finds in each run of a text. Long runs are not cached."""
    found = runs(text)
    if max(map(len, found), default=0) <= MAX_REMEMBERED_LENGTH:  # nearly always
        return [*chain.from_iterable(map(find, found))]
    return [
        pair
        for run in found
        for pair in (find if len(run) <= MAX_REMEMBERED_LENGTH else find.__wrapped__)(run)
    ]


@lru_cache(maxsize=MAX_REMEMBERED)
def _words(run: str) -> tuple[Pair, ...]:
    if run.endswith(("+", "#")):
        return ((run.lower(), run.lower()),)
    if run.isupper() and run.lower() in STOP_WORDS and 1 < len(run) <= MAX_ACRONYM:
        return ((run.lower(), run.lower()),)
    found, last = list[Pair](), list[Pair]()
    if _is_dotnet(run):
        run, last = run[:-4], [(DOTNET, DOTNET)]
    for part in split_name(run).split():
        if part.isascii():
            found += _word(part)
            continue
        for place, piece in enumerate(_UNSPACED.split(part)):
            found += _pairs(piece) if place % 2 else _word(folded(piece))
    return (*found, *last)


@lru_cache(maxsize=MAX_REMEMBERED)
def _wholes(run: str) -> tuple[Pair, ...]:
    if not run.isascii():
        is_undivided = run.isalpha() and run[1:].lower() == run[1:]  # like most words
        if is_undivided or _UNSPACED.search(run):
            return ()
    inner = pieces(run)
    joined = [*inner, run] if len(inner) > 1 else inner
    found = [compact_name(one) for one in joined if _may_be_one_word(one)]
    words = ((one, term_of(one)) for one in dict.fromkeys(found))
    return (*words, *((one, one) for one in versions(run)))


@lru_cache(maxsize=MAX_REMEMBERED)
def _spellings(run: str) -> tuple[Pair, ...]:
    return _words.__wrapped__(run) + _wholes.__wrapped__(run)


def _may_be_one_word(text: str) -> bool:
    """Whether a text divided by case, digits or separators may be one word."""
    is_several = len(text) <= MAX_TERM_LENGTH and " " in split_name(text)
    return is_several and any(map(str.isalpha, text))


def _word(word: str) -> list[Pair]:
    """A word with its stem, in a list; empty if it is not indexed."""
    if not word or word in STOP_WORDS or len(word) > MAX_TERM_LENGTH:
        return []
    return [(word, term_of(word))]


def _pairs(chars: str) -> list[Pair]:
    """The overlapping character pairs of an unspaced script, or a single character."""
    pairs = [chars[i : i + 2] for i in range(len(chars) - 1)] or [chars]
    return [(pair, pair) for pair in pairs]
