"""Recognises forms of one word, such as ``invoice``, ``invoices`` and ``invoicing``.

A stem is not enough, because different words may share one: ``customs`` and ``customers``,
``object`` and ``objective``.
"""

import re
from functools import lru_cache

_PLURAL = re.compile(r"(?<=ss|ch|sh)es$|(?<=[xz])es$|(?<=[^sux])s$")
_ENDING = re.compile(r"(?<=[a-z])(?:ing|ed|ment)$")
_VOWEL = re.compile("[aeiouy]")
_DOUBLED = re.compile(r"([a-z])\1$")


def are_forms(word: str, other: str) -> bool:
    """Whether two words in lower case are forms of one word."""
    return not _bases_of(word).isdisjoint(_bases_of(other))


@lru_cache(maxsize=256)
def _bases_of(word: str) -> frozenset[str]:
    """The bases that a word shares with its forms. They need not be words.

    A word with -ing has two: ``reading`` is a form of ``read``, and the singular of ``readings``.
    But ``readings`` is only a form of ``reading``.
    """
    one = _PLURAL.sub("", word)
    if not one.endswith("ing"):
        return frozenset((_base(one),))
    return frozenset((one,) if one != word else (one, _base(one)))


def _base(word: str) -> str:
    """The base of a word in the singular."""
    rest = _ENDING.sub("", word)
    base = rest if _VOWEL.search(rest) else word  # the "ing" of "string" is not an ending
    base = base.rstrip("e")
    if base.endswith("i") and base != word:  # copied, copies; but not "pypi"
        base = base[:-1] + "y"
    return _DOUBLED.sub(r"\1", base)
