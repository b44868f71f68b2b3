"""Splits a query into words, and its identifiers into parts, whatever their case and separators."""

import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from string import ascii_lowercase
from typing import NamedTuple

from repertory.catalogue.actions import without_courtesy
from repertory.catalogue.names import compact_name, split_name
from repertory.index.keywords.background import (
    frequency,
    is_common,
    is_english,
    is_known,
    is_word,
    longest,
)
from repertory.index.keywords.tokens import (
    ENGLISH,
    MAX_TERM_LENGTH,
    RUN,
    STOP_WORDS,
    pieces,
    runs,
    term_of,
    versions,
    word_count,
    words,
)
from repertory.text import clean, remembered

# A query of one term and at most this many words counts as one word: "get the invoice", but not
# "who is on call".
MAX_FEW = 3
MIN_PART = 2  # characters of each common word into which a rare word is divided
MIN_APART = 3  # characters of a known word that is separated from another one
LEAST = 1e-3  # the assumed frequency of stop words, which are not counted, when dividing words
AROUND = " \"'\u2018\u2019\u201c\u201d"  # quotation marks
MIN_PIECES = 3  # of an identifier that texts do not mention by the way
# Words that only hyphens join are usual English, such as end-to-end, unless they are an option.
_IDENTIFIER = re.compile(r"(?=-|[\w-]*[._])(?:-{0,2}|\.)\w+(?:[-.]\w+)*")
_CAMEL_CASE = re.compile(r"[a-z]+[A-Z][A-Za-z0-9]*|(?:[A-Z]+[a-z0-9]+){3,}")  # not HubSpot
# Verbs with which identifiers begin, but few product names.
_VERBS = """add create delete disable enable fetch get insert list remove rename send set uninstall
    update""".split()  # noqa: SIM905 -- a list of literals would be harder to read
# The ends of "client's", "they're" and "don't", and the whole of "can't" and "won't".
_CLITIC = re.compile(
    r"(?:\b(?:ca|wo|sha)|(?<=[a-z]))n['\u2019]t\b|(?<=[a-z])['\u2019](?:s|t|d|m|ll|re|ve)\b"
)
# Phrases that begin or end any request.
_OPENING = re.compile(
    r"(?:(?:how (?:can|could|do|should) (?:i|we|you)|how to|(?:i|we) (?:need|want)(?: to)?"
    r"|(?:can|could) (?:i|we|you)|please,?|a|an|the) )+"
)
_ENDING = re.compile(r" please$")


class Word(NamedTuple):
    """One word of a query.

    Attributes:
        text: The word as typed, in lower case.
        term: Its term.
        whole: The longer word, without separators, that it is part of; empty if none.
    """

    text: str
    term: str
    whole: str = ""


def query_words(text: str) -> list[Word]:
    """The words of a query without stop words, in order.

    Case is ignored, because ``anndata`` must find the same as ``AnnData``. Identifiers are divided
    at separators, then at digits, then into common words. The word of ``client's`` is ``client``.
    If all words are stop words, they are kept.
    """
    typed = runs(_CLITIC.sub("", without_courtesy(text.lower())))
    found = [word for run in typed for word in _words(run)]
    # Stop words alone may be acronyms: WHO, IT.
    return found or [Word(run, run) for run in typed if run in STOP_WORDS]


@lru_cache(maxsize=256)  # each part of a search needs it
def plain(text: str) -> str:
    """A text in lower case with identifiers divided into words, as queries are embedded.

    ``createIssue``, ``create_issue`` and ``CREATE-ISSUE`` become equal, and so do ``LaTeX`` and
    ``latex``. Versions and other words with digits stay unchanged. Outer quotation marks and
    phrases that only ask for a tool are removed.
    """
    return RUN.sub(lambda run: _plain(run[0]), without_courtesy(text.lower().strip(AROUND)))


@lru_cache(maxsize=256)
def bare(text: str) -> str:
    """A request in lower case without common openings and endings: "how do I", "please"."""
    rest = _ENDING.sub("", without_courtesy(text.lower().strip(AROUND)))
    opening = _OPENING.match(rest)
    return rest[opening.end() :] if opening else rest


def has_few_words(text: str) -> bool:
    """Whether a query has at most ``MAX_FEW`` words, where a repeated word counts once."""
    return word_count(" ".join(dict.fromkeys(plain(bare(text)).split()))) <= MAX_FEW


@lru_cache(maxsize=256)
def identifier(text: str) -> str:
    """The identifier of several parts that is the whole query, in lower case; empty if none is.

    Examples: ``tool.uv.sources``, ``get_logger()``, ``processName``, and the option ``--no-build``.
    """
    typed = _without_punctuation(text)
    if _CAMEL_CASE.fullmatch(typed):  # `homepage` is usual English, but `homePage` is not
        is_one = len(query_words(typed)) < 2  # a name: iPhone
    else:
        parts = tuple(pieces(typed.lower())) if _IDENTIFIER.fullmatch(typed) else ()
        is_one = len(parts) < 2 or _is_one_word(compact_name(typed), parts)
    is_number = not any(map(str.isalpha, typed))
    return "" if is_one or is_number else typed.lower()


@lru_cache(maxsize=256)
def is_distinct(text: str) -> bool:
    """Whether texts with a query, which is an identifier, are about it, not only mention it.

    So it is with options, constants, and identifiers of at least ``MIN_PIECES`` parts.
    """
    typed = _without_punctuation(text)
    return typed.startswith("-") or typed.isupper() or len(pieces(typed)) >= MIN_PIECES


def _without_punctuation(text: str) -> str:
    """A text without quotation marks, the signs of a variable or a call, and a question mark.

    A copied text may also have invisible characters.
    """
    around = f"{AROUND}`"
    return clean(text).strip(around).removeprefix("$").rstrip(f"{around}?!,:;").removesuffix("()")


def joined(text: str) -> str:
    """The words of a query joined without separators; a query of few words without stop words."""
    typed = without_courtesy(text.lower()).split()
    if has_few_words(text):
        typed = [word for word in typed if word not in STOP_WORDS] or typed
    return compact_name(" ".join(typed))


@remembered
def _words(text: str) -> tuple[Word, ...]:
    number = text.removeprefix("v")
    if number in (numbers := versions(number)):  # whose parts are in many other versions
        return tuple(Word(one, one) for one in numbers)
    parts, whole = _divided(text), compact_name(text)
    if len(parts) < 2:
        return tuple(Word(*pair) for pair in words(text))
    itself = (Word(text, term_of(whole)),)
    if _is_one_word(whole, parts):
        return itself
    inner = [word for part in parts for word in _words(part)]
    # The letter of c-find, the digit of utf-8 and the stop word of useEffect are not searched as
    # words, but they distinguish the identifier, so the whole is added. "get" does not.
    kept = inner if whole.isdigit() else [word for word in inner if len(word.text) > 1]
    found = tuple(word._replace(whole=word.whole or whole) for word in kept)
    has_digits = any(map(str.isdigit, text))
    is_usual = all(is_known(word.term) or word.term.isdigit() for word in found)
    is_rest = len(kept) == 1 and any(part in ENGLISH and part != "get" for part in parts)
    if is_rest or len(kept) < len(inner) or (has_digits and not is_usual):
        found += itself
    return found or itself


@remembered
def _plain(run: str) -> str:
    if run.startswith("."):  # .net
        return run
    parts, whole = _divided(run), compact_name(run)
    if any(map(str.isdigit, run)) and (_is_one_word(whole, parts) or len(pieces(run)) < 2):
        return run
    if len(parts) < 2 or _is_one_word(whole, parts):
        return whole
    return " ".join(map(_plain, parts))


@remembered
def _divided(text: str) -> tuple[str, ...]:
    """The parts of a word in lower case; the word itself if it cannot be divided."""
    by_separators = pieces(text)
    if len(by_separators) > 1:
        return tuple(by_separators)
    by_digits = split_name(text).split()
    if len(by_digits) > 1:
        return tuple(by_digits)
    return _common_words(text) or (text,)


def _common_words(word: str) -> tuple[str, ...]:
    """The likeliest common words of a rare compound such as ``createissue``; empty if none.

    The likelihood of a division is the product of its words' frequencies.
    """
    if len(word) > MAX_TERM_LENGTH or not (word.isascii() and word.isalpha()):
        return ()
    is_whole = is_common(word, term_of(word)) or any(
        map(is_english, (word, word.removesuffix("s")))  # so that "membership" stays whole
    )
    if is_whole:
        return ()
    best: dict[int, tuple[float, tuple[str, ...]]] = {0: (0.0, ())}  # by where it ends
    for end in range(MIN_PART, len(word) + 1):
        divisions = [
            (likelihood + math.log(max(frequency(term_of(part)), LEAST)), (*before, part))
            for start, (likelihood, before) in best.items()
            if end - start >= MIN_PART and _is_part(part := word[start:end])
        ]
        if divisions:
            best[end] = max(divisions)
    found = best.get(len(word), (0.0, ()))[1]
    found = found if _is_likely(found) else _verb_and_object(word)
    return found if found and not _is_misspelt(word) else ()


def _verb_and_object(word: str) -> tuple[str, ...]:
    """The words of an identifier that begins with a verb: ``deleteroom``; empty for other words.

    Unlike the words of other identifiers, the object need not be a common word.
    """
    if is_known(term_of(word)) or any(map(is_english, _without_double(word))):
        return ()
    for verb in _VERBS:
        rest = word.removeprefix(verb)
        term = term_of(rest)
        is_object = is_common(rest, term) or (len(rest) > MIN_APART and is_word(rest, term))
        if is_object and rest != word:
            return verb, rest
    return ()


def _is_likely(parts: Sequence[str]) -> bool:
    """Whether a division into parts is meant, not coincidence: "uptime" is not "up time"."""
    if not parts:
        return False
    has_short = any(part in ENGLISH and len(part) == MIN_PART for part in parts)
    return not has_short or sum(part not in ENGLISH for part in parts) > 1


def _is_misspelt(word: str) -> bool:
    """Whether a word is a common one with a letter doubled or missing: ``workspacee``, ``comand``.

    A much shorter stem does not count, as it belongs to another word: ``error`` of ``errorate``.
    """
    if len(word) > longest() + 2:  # longer than a stem with an ending and a doubled letter
        return False
    places = range(1, len(word))
    longer = (word[:at] + letter + word[at:] for at in places for letter in ascii_lowercase)
    terms = ((one, term_of(one)) for one in chain(_without_double(word), longer))
    return any(
        is_common(one, term) for one, term in terms if len(term) >= len(one) - 1 or is_english(one)
    )


def _without_double(word: str) -> Iterator[str]:
    """The word with one doubled letter removed, for each such letter: ``administer``."""
    places = range(1, len(word))
    return (word[:at] + word[at + 1 :] for at in places if word[at - 1] == word[at])


def _is_one_word(whole: str, parts: tuple[str, ...]) -> bool:
    """Whether a word of several parts is one word: a known one, or a short one with digits.

    A compound of common words must itself be common: ``java-script`` is, ``issue_type`` is not.
    """
    if any(map(str.isdigit, whole)) and all(len(part) < 3 for part in parts):
        return not whole.isdigit()  # k8s, s3
    if len(parts) == 2 and len(parts[0]) == 1 and parts[0].isalpha() and parts[1].isdigit():
        return True  # a code: e501
    term = term_of(whole)
    return is_known(term) and (is_common(whole, term) or not all(map(_may_stand_alone, parts)))


def _may_stand_alone(word: str) -> bool:
    """Whether a part of a word is a word itself, like those of ``ssh-key``."""
    is_long = len(word) >= MIN_APART and word.isalpha()
    return _is_part(word) or (is_long and is_known(term_of(word)))


def _is_part(word: str) -> bool:
    return word in ENGLISH or is_common(word, term_of(word))
