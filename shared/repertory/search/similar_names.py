"""How similar a query is to a name, and which similar names are of something else."""

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz
from rapidfuzz.distance import OSA, Prefix

from repertory.catalogue.actions import of_name, of_request
from repertory.catalogue.names import digits, signs, split_name
from repertory.index.keywords.background import is_common, is_english, is_known, is_word
from repertory.index.keywords.document import Entry
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.query_words import plain
from repertory.index.keywords.tokens import DOTNET, DOTNETS, STOP_WORDS, term_of
from repertory.search.opposites import ARTICLES, reverses

MAX_NAME_WORDS = 4  # a longer query is a sentence, not a name
MIN_SIMILARITY = 0.65  # names that are less similar to the query do not count
SAME_END = 4  # letters, or a whole shorter word, that make words similar that mean something else
SAME_BEGINNING = 3  # letters with which forms of a word begin alike, and
SAME_SHARE = 0.6  # how much of the shorter one they are at least

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")

# How close a name is that is one edit away and has another word; beside those of ``NameIndex``.
OTHER = 0.8125


def similarities(text: str, index: KeywordIndex, rows: Sequence[int]) -> NDArray[np.float32]:
    """How similar a query is to the name of each row's item, 0…1; 0 for a long query."""
    typed = _typed(text)
    if not 0 < len(typed.split()) <= MAX_NAME_WORDS:  # the entries need not be read
        return np.zeros(len(rows), np.float32)
    asked = signs(text)
    ratios = [
        max(
            _ratio(typed, split_name(name), split_name(entry.server))
            for name in _alike(asked, typed, entry.names)
        )
        for entry in index.entries(rows)
    ]
    return np.array(ratios, np.float32) / np.float32(100)


def closest_name(text: str, entry: Entry) -> str:
    """The name or alias of an entry that is most similar to a part of a query."""
    if not entry.aliases:
        return entry.name
    typed = _typed(text)
    return max(entry.names, key=lambda name: fuzz.partial_ratio(typed, split_name(name)))


def is_other(text: str, name: str) -> bool:
    """Whether a name has another word in the place of one of a query: ``fire`` and ``hire``."""
    return _has_another_word(_typed(text), split_name(name))


def _typed(text: str) -> str:
    """The words of a query, as those of names are written."""
    return split_name(DOTNETS.sub(DOTNET, plain(text)))


def _alike(asked: str, typed: str, names: Sequence[str]) -> Sequence[str]:
    """The names with the signs of the typed one, or an empty one: C# is neither C nor F#.

    Of a longer name, not all of it need be typed.
    """
    if not asked and not any("#" in name or "++" in name for name in names):
        return names
    found = (signs(name) == asked or not (asked or split_name(name) == typed) for name in names)
    return [name for name, is_alike in zip(names, found, strict=True) if is_alike] or [""]


def _ratio(typed: str, name: str, server: str) -> float:
    """How similar a name is to the typed one, 0…100; one with another number or word is not.

    The words of the tool's server tell no two of its tools apart.
    """
    number = digits(typed)
    if number and digits(name) not in ("", number):
        return 0.0
    # A server that repeats its name in those of its tools does not lose to one that does not.
    ratio = max(fuzz.ratio(typed, one) for one in {name, name.removeprefix(f"{server} ")})
    is_near = ratio >= 100 * MIN_SIMILARITY
    return 0.0 if is_near and _has_another_word(typed, name, server.split()) else ratio


def _has_another_word(typed: str, name: str, aside: Sequence[str] = ()) -> bool:
    """Whether the typed name has a word that only looks like one of the name: ``fire``, ``hire``.

    A word that is none may be a misspelt one. Of a name with more words than were typed, only one
    that ends alike counts: ``remove``, ``move``. Articles and the words ``aside`` do not count.
    """
    if not typed.isascii() and _has_another_sign(typed, name):
        return True
    ignored = {*ARTICLES, *aside}
    asked, named = ([one for one in text.split() if one not in ignored] for text in (typed, name))
    left, typed_alone = _alone(named, asked), _alone(asked, named)
    if not left:
        return False
    if len(asked) == len(named) and any(
        not any(may_be_one(word, other) for other in left)
        for word in typed_alone
        if _is_right(word) or any(reverses(word, other) for other in left)
    ):
        return True
    if len(asked) > len(named) and _does_another_thing(typed, typed_alone, left):
        return True
    return any(
        _end_alike(word, other)
        for word in typed_alone
        if is_word(word, term_of(word))
        for other in left
    )


def _alone(words: Sequence[str], others: Sequence[str]) -> list[str]:
    """The words that others lack; two neighbours may be one word: ``auto import``."""
    joined = {one + other for one, other in pairwise(others)}
    divided = {word for pair in pairwise(words) if "".join(pair) in others for word in pair}
    return [word for word in words if word not in {*others, *joined, *divided}]


def _has_another_sign(typed: str, name: str) -> bool:
    """Whether the typed name has a sign of Han in the place of another: 解密文件, 加密文件."""
    asked, named = ({*_HAN.findall(one)} for one in (typed, name))
    return bool(asked - named) and bool(named - asked)


def _does_another_thing(typed: str, alone: Sequence[str], left: Sequence[str]) -> bool:
    """Whether both the words of a longer query alone and those of a name have another one.

    ``start``, for "switch on", is none: it does the same.
    """
    is_another = any(
        _is_right(word)
        and word not in STOP_WORDS
        and not any(may_be_one(word, other) for other in left)
        for word in alone
    )
    asked = of_request(typed) if is_another else frozenset()
    return is_another and any(
        asked.isdisjoint(of_name(other)) and not any(may_be_one(word, other) for word in alone)
        for other in left
    )


def _is_right(word: str) -> bool:
    """Whether a word is spelt right: a stem is known also of words that are not."""
    if len(word) > SAME_BEGINNING:
        return is_english(word) or is_common(word, term_of(word))
    return len(word) == 1 or word in STOP_WORDS or is_known(word)


def may_be_one(word: str, other: str) -> bool:
    """Whether a word may be a form of another, or misspelt; few misspell the first letter.

    A short word that is right has no letter in the place of another: ``ceo`` is no ``cfo``.
    """
    is_near = word[0] == other[0] and OSA.distance(word, other, score_cutoff=1) <= 1
    is_replaced = len(word) == len(other) and sorted(word) != sorted(other)
    if is_near and not (is_replaced and len(word) <= SAME_BEGINNING and _is_right(word)):
        return True
    same = Prefix.similarity(word, other)
    return same >= max(SAME_BEGINNING, SAME_SHARE * min(len(word), len(other)))


def _end_alike(word: str, other: str) -> bool:
    end = min(SAME_END, len(word), len(other))
    return word[0] != other[0] and word[-end:] == other[-end:]
