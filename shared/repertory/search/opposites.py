"""Which names are the opposite of what a query asks for."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from repertory.catalogue.actions import SWITCHING, wanted
from repertory.catalogue.names import split_name
from repertory.index.keywords.document import Entry
from repertory.index.keywords.query_words import plain
from repertory.index.keywords.tokens import ENGLISH

MIN_REVERSED = 3  # characters of a word that a prefix reverses
ARTICLES = frozenset({"a", "an", "the", "my", "our", "your", "this", "that", "all", "some"})

# Words after a verb that make two verbs of it, and prefixes that reverse one.
_PARTICLES = {"on": "off", "off": "on", "in": "out", "out": "in", "up": "down", "down": "up"}
_REVERSING = ("un", "dis", "de")
_SWITCHED = ("on", "off")
_NONE: Mapping[str, Iterable[str]] = {}
_TO, _FROM = ("to", "into", "2"), "from"  # of conversions: pdf to text, text from pdf


def opposed(
    text: str, entries: Sequence[Entry], corrected: Mapping[str, Iterable[str]] = _NONE
) -> NDArray[np.bool_]:
    """Which entries have a name that is the opposite of what a query asks for.

    ``turn_on_light`` is for "switch the light off", ``ban_player`` for "unban a player", and
    ``csv_to_json`` for "csv from json". A prefix reverses only the verb of a query, of which
    ``corrected`` has the words that may be meant: "remove duplicate rows" asks for
    ``deduplicate_rows``.
    """
    typed = split_name(plain(text)).split()
    verb = next((word for word in wanted(plain(text)) if word not in ENGLISH), "")
    verbs = frozenset({verb, *corrected.get(verb, ())})
    asked, conversions = verbs.union(typed), _conversions(typed)
    opposites = {one: other for one, other in _PARTICLES.items() if other in asked}
    opposites |= {one: word for word in verbs for one in _reversed(word)}
    found = [
        all(
            _is_opposed(name, asked, opposites, verbs) or _is_backwards(name, conversions)
            for name in (split_name(name).split() for name in entry.names)
        )
        for entry in entries
    ]
    return np.array(found, np.bool_)


def reverses(word: str, other: str) -> bool:
    """Whether a word is another one with a prefix that reverses it: ``unban``, ``ban``."""
    return other in _reversed(word)


def _reversed(word: str) -> Sequence[str]:
    """What a word reverses by its prefix; nothing, as a rule."""
    if not word.startswith(_REVERSING):  # asked of each word of each name
        return ()
    return [
        word.removeprefix(prefix)
        for prefix in _REVERSING
        if word.startswith(prefix) and len(word) >= len(prefix) + MIN_REVERSED
    ]


def _is_opposed(
    name: Sequence[str], asked: frozenset[str], opposites: Mapping[str, str], verbs: frozenset[str]
) -> bool:
    """Whether a name has the opposite of a verb, or of a verb's particle, that was asked for."""
    for before, word in zip(("", *name), name, strict=False):
        other = opposites.get(word) or next((one for one in _reversed(word) if one in verbs), None)
        if other is None or word in asked or other in name:
            continue
        if word not in _PARTICLES or before in asked or _is_switched(word, name, asked):
            return True
    return False


def _is_switched(particle: str, name: Sequence[str], asked: frozenset[str]) -> bool:
    """Whether both a name and a query switch something, in whatever words: ``turn``, ``switch``."""
    is_switch = particle in _SWITCHED and not SWITCHING.isdisjoint(name)
    return is_switch and not SWITCHING.isdisjoint(asked)


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
