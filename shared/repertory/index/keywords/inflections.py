"""The forms of one word: ``invoice``, ``invoices`` and ``invoicing``.

Other words may have the same stem: ``customs`` and ``customers``, ``object`` and ``objective``.
"""

import re

_PLURAL = re.compile(r"(?<=ss|ch|sh)es$|(?<=[xz])es$|(?<=[^suix])s$")
_ENDING = re.compile(r"(?<=[a-z])(?:ing|ed|ment)$")
_VOWEL = re.compile("[aeiouy]")
_DOUBLED = re.compile(r"([a-z])\1$")


def base_of(word: str) -> str:
    """What all forms of a word in lower case have in common; it need not be a word."""
    one = _PLURAL.sub("", word)
    rest = _ENDING.sub("", one)
    if _VOWEL.search(rest):  # "string" is no form of a word
        one = rest
    one = one.rstrip("e")
    if one.endswith("i"):
        one = one[:-1] + "y"
    return _DOUBLED.sub(r"\1", one)
