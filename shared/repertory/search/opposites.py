"""Which names are the opposite of what a query asks for."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from repertory.catalogue.names import split_name
from repertory.index.keywords.document import Entry
from repertory.index.keywords.query_words import plain

MIN_REVERSED = 3  # characters of a word that a prefix reverses
ARTICLES = frozenset({"a", "an", "the", "my", "our", "your", "this", "that", "all", "some"})

# Words after a verb that make two verbs of it, and prefixes that reverse one.
_PARTICLES = {"on": "off", "off": "on", "in": "out", "out": "in", "up": "down", "down": "up"}
_REVERSING = ("un", "dis", "de")
_TO, _FROM = ("to", "into", "2"), "from"  # of conversions: pdf to text, text from pdf


def opposed(text: str, entries: Sequence[Entry]) -> NDArray[np.bool_]:
    """Which entries have a name that is the opposite of what a query asks for.

    ``turn_on_light`` is for "turn the light off", ``ban_player`` for "unban a player", and
    ``csv_to_json`` for "csv from json".
    """
    typed = split_name(plain(text)).split()
    asked, conversions = frozenset(typed), _conversions(typed)
    opposites = {one: other for one, other in _PARTICLES.items() if other in asked}
    opposites |= {one: word for word in asked for one in _reversed(word)}
    found = [
        all(
            _is_opposed(name, asked, opposites) or _is_backwards(name, conversions)
            for name in (split_name(name).split() for name in entry.names)
        )
        for entry in entries
    ]
    return np.array(found, np.bool_)


def reverses(word: str, other: str) -> bool:
    """Whether a word is another one with a prefix that reverses it: ``unban``, ``ban``."""
    return other in _reversed(word)


def _reversed(word: str) -> Iterator[str]:
    """What a word reverses by its prefix; nothing, as a rule."""
    for prefix in _REVERSING:
        if word.startswith(prefix) and len(word) >= len(prefix) + MIN_REVERSED:
            yield word.removeprefix(prefix)


def _is_opposed(name: Sequence[str], asked: frozenset[str], opposites: Mapping[str, str]) -> bool:
    """Whether a name has the opposite of a word, or of a verb's particle, that was asked for."""
    for before, word in zip(("", *name), name, strict=False):
        other = opposites.get(word) or next((one for one in _reversed(word) if one in asked), None)
        if other is None or word in asked or other in name:
            continue
        if word not in _PARTICLES or before in asked:
            return True
    return False


def _conversions(words: Sequence[str]) -> set[tuple[str, str]]:
    """What some words convert, and into what."""
    found = set()
    words = [word for word in words if word not in ARTICLES]
    for one, link, other in zip(words, words[1:], words[2:], strict=False):
        if link in _TO:
            found.add((one, other))
        elif link == _FROM:
            found.add((other, one))
    return found


def _is_backwards(name: Sequence[str], asked: set[tuple[str, str]]) -> bool:
    """Whether a name is of the reverse of a conversion that was asked for."""
    found = _conversions(name) if asked else set()
    return any((other, one) in asked for one, other in found - asked)
