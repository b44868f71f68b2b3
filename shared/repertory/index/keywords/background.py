"""The background table: how rare words are in texts about tools and skills in general.

A catalogue's own frequencies would make a confidence depend on its other items, and those of a
small catalogue are unreliable.
"""

import math
from functools import cache
from importlib.resources import files

MIN_RARITY = 0.1  # the rarity of the most common word
VERSION_RARITY = 0.7  # the rarity of a number with dots, such as 3.12
SHORT_RARITY = 0.25  # the rarity of a single letter, or of a number of one or two digits

# A common word occurs in at least this many texts, if it has up to three, four, or more letters.
COMMON = (60, 20, 5)


@cache
def _table() -> tuple[int, dict[str, int]]:
    """The number of texts, and how many of them have each known term."""
    text = files("repertory.index.keywords").joinpath("background.txt").read_text("ascii")
    count, *rows = text.split()
    return int(count), dict(zip(rows[::2], map(int, rows[1::2]), strict=True))


@cache
def _english() -> frozenset[str]:
    """The whole words of four letters or more in the vocabulary of bert-base-uncased."""
    text = files("repertory.index.keywords").joinpath("english.txt").read_text("ascii")
    return frozenset(text.split())


@cache
def longest() -> int:
    """The length of the longest known term, in characters."""
    return max(map(len, _table()[1]))


def is_word(word: str, term: str) -> bool:
    """Whether a word in lower case, given with its term, is known or common in English."""
    return is_known(term) or is_english(word)


def is_english(word: str) -> bool:
    """Whether a word in lower case is a common English word of four letters or more."""
    return word in _english()


def is_known(term: str) -> bool:
    """Whether a term is in the background table, and so not a typo or an unfinished word."""
    return term in _table()[1]


def is_common(word: str, term: str) -> bool:
    """Whether a word, given with its term, is common enough to be part of compounds."""
    return _table()[1].get(term, 0) >= least_texts(word)


def least_texts(word: str) -> int:
    """The minimum number of texts that have a common word of this length."""
    return COMMON[min(max(len(word) - 3, 0), 2)]


def frequency(term: str) -> float:
    """The share of texts that have a term, 0…1."""
    texts, known = _table()
    return known.get(term, 0) / texts


def rarity(term: str) -> float:
    """How rare a term is, from ``MIN_RARITY`` to 1: its inverse document frequency, scaled."""
    if len(term) == 1 or (term.isdigit() and len(term) < 3):
        return SHORT_RARITY
    if "." in term:
        return VERSION_RARITY
    texts, known = _table()
    return max(math.log(texts / (known.get(term, 0) + 1)) / math.log(texts), MIN_RARITY)
