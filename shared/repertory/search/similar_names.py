"""How similar a query is to a name, and which similar names mean something else."""

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
# Different words look similar if they share this many last letters, or if one ends with the other.
SAME_END = 4
# Forms of a word share at least this many first letters, and this share of the shorter form.
SAME_BEGINNING = 3
SAME_SHARE = 0.6

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")


def similarities(text: str, index: KeywordIndex, rows: Sequence[int]) -> NDArray[np.float32]:
    """How similar a query is to each row's name, 0…1; 0 if the query is too long for a name."""
    typed = _typed(text)
    if not 0 < len(typed.split()) <= MAX_NAME_WORDS:  # skip reading the entries
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
    """Whether a name differs from the query by a whole word, such as ``hire`` for ``fire``."""
    return _has_another_word(_typed(text), split_name(name))


def _typed(text: str) -> str:
    """The words of a query, normalised like those of names."""
    return split_name(DOTNETS.sub(DOTNET, plain(text)))


def _alike(asked: str, typed: str, names: Sequence[str]) -> Sequence[str]:
    """The names with the same signs as the query, because C# is neither C nor F#; else ``[""]``.

    A query without signs also matches a name with signs that has more words than the query.
    """
    if not asked and not any("#" in name or "++" in name for name in names):
        return names
    found = (signs(name) == asked or not (asked or split_name(name) == typed) for name in names)
    return [name for name, is_alike in zip(names, found, strict=True) if is_alike] or [""]


def _ratio(typed: str, name: str, server: str) -> float:
    """How similar a name is to the typed one, 0…100; 0 if it has a different number or word.

    Words of the server's name are ignored, because all tools of the server share them.
    """
    number = digits(typed)
    if number and digits(name) not in ("", number):
        return 0.0
    # A server's name as a prefix of its tools' names does not lower their similarity.
    ratio = max(fuzz.ratio(typed, one) for one in {name, name.removeprefix(f"{server} ")})
    is_near = ratio >= 100 * MIN_SIMILARITY
    return 0.0 if is_near and _has_another_word(typed, name, server.split()) else ratio


def _has_another_word(typed: str, name: str, aside: Sequence[str] = ()) -> bool:
    """Whether a typed word only looks like a word of the name: ``fire``, ``hire``.

    An unknown typed word may be a typo and does not count. If the name has more words than were
    typed, only words with the same end count: ``remove``, ``move``. Articles and the words
    ``aside`` are ignored.
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
    """The words missing from ``others``; two words also match their compound: ``autoimport``."""
    joined = {one + other for one, other in pairwise(others)}
    divided = {word for pair in pairwise(words) if "".join(pair) in others for word in pair}
    return [word for word in words if word not in {*others, *joined, *divided}]


def _has_another_sign(typed: str, name: str) -> bool:
    """Whether each name has a Han character that the other lacks: 解密文件, 加密文件."""
    asked, named = ({*_HAN.findall(one)} for one in (typed, name))
    return bool(asked - named) and bool(named - asked)


def _does_another_thing(typed: str, alone: Sequence[str], left: Sequence[str]) -> bool:
    """Whether a longer query and a name each have a word with no counterpart in the other.

    ``start`` is a counterpart of "switch on", because both ask for the same action.
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
    """Whether a word is spelt correctly. A known stem is not enough, as typos may share it."""
    if len(word) > SAME_BEGINNING:
        return is_english(word) or is_common(word, term_of(word))
    return len(word) == 1 or word in STOP_WORDS or is_known(word)


def may_be_one(word: str, other: str) -> bool:
    """Whether a word may be a form of another, or a typo with the right first letter.

    A short word that is spelt correctly is no typo with a replaced letter: ``ceo`` is not ``cfo``.
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
