"""Which names are the opposite of what a query asks for."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from repertory.catalogue.actions import SWITCHING, endings, of_name, wanted
from repertory.catalogue.names import split_name
from repertory.index.keywords.background import is_known
from repertory.index.keywords.document import Entry
from repertory.index.keywords.query_words import plain
from repertory.index.keywords.tokens import ENGLISH, term_of

MIN_REVERSED = 3  # characters of a word that a prefix reverses, or a particle
ARTICLES = frozenset({"a", "an", "the", "my", "our", "your", "this", "that", "all", "some"})

# Particles that give a verb opposite meanings, and prefixes that reverse a verb.
_PARTICLES = {"on": "off", "off": "on", "in": "out", "out": "in", "up": "down", "down": "up"}
_REVERSING = ("un", "dis", "de")
_SWITCHED = ("on", "off")
_NONE: Mapping[str, Iterable[str]] = {}
_TO, _FROM = ("to", "into", "2"), "from"  # words of conversions: pdf to text, text from pdf


def opposed(
    text: str, entries: Sequence[Entry], corrected: Mapping[str, Iterable[str]] = _NONE
) -> NDArray[np.bool_]:
    """Which entries have a name that is the opposite of a query's request.

    Examples: ``turn_on_light`` for "switch the light off", ``ban_player`` for "unban a player",
    and ``csv_to_json`` for "csv from json". A prefix reverses only the verb of the query, because
    ``deduplicate_rows`` does fit "remove duplicate rows". ``corrected`` has the corrections of
    typed words.
    """
    typed = split_name(plain(text)).split()
    verb = next((word for word in wanted(plain(text)) if word not in ENGLISH), "")
    spelt = filter(None, (verb, *corrected.get(verb, ())))
    verbs = frozenset(form for one in spelt for form in _with_gerunds(one))
    asked, conversions = verbs.union(typed, _apart(typed)), _conversions(typed)
    opposites = {one: other for one, other in _PARTICLES.items() if other in asked}
    opposites |= {one: word for word in verbs for one in _reversed(word)}
    found = [
        all(
            _is_opposed(_apart(name), asked, opposites, verbs) or _is_backwards(name, conversions)
            for name in (split_name(name).split() for name in entry.names)
        )
        for entry in entries
    ]
    return np.array(found, np.bool_)


def reverses(word: str, other: str) -> bool:
    """Whether a word is ``other`` with a reversing prefix: ``unban`` and ``ban``, ``banning``."""
    return any(other in _with_gerunds(one) for one in _reversed(word))


def _with_gerunds(verb: str) -> list[str]:
    """A verb and the spellings of its form in names such as ``installing-skills``."""
    return [verb, *endings(verb, "ing")]


def _apart(words: Iterable[str]) -> list[str]:
    """The words, of which a known word with a particle becomes two: ``login``."""
    found = list[str]()
    for word in words:
        particle = next((one for one in _PARTICLES if word.endswith(one)), "")
        rest = word.removesuffix(particle)
        is_known_verb = particle and len(rest) >= MIN_REVERSED and is_known(term_of(rest))
        found += (rest, particle) if is_known_verb else (word,)
    return found


def _reversed(word: str) -> Sequence[str]:
    """The word without a reversing prefix; usually empty."""
    if not word.startswith(_REVERSING):  # fast path: called for each word of each name
        return ()
    return [
        word.removeprefix(prefix)
        for prefix in _REVERSING
        if word.startswith(prefix) and len(word) >= len(prefix) + MIN_REVERSED
    ]


def _is_opposed(
    name: Sequence[str], asked: frozenset[str], opposites: Mapping[str, str], verbs: frozenset[str]
) -> bool:
    """Whether a name has the opposite of the requested verb or of its particle."""
    for before, word in zip(("", *name), name, strict=False):
        other = opposites.get(word) or next((one for one in _reversed(word) if one in verbs), None)
        if other is None or word in asked or other in name:
            continue
        if word not in _PARTICLES or before in asked or _is_switched(word, name, asked):
            return True
    return False


def _is_switched(particle: str, name: Sequence[str], asked: frozenset[str]) -> bool:
    """Whether the name and the query both switch something: ``turn``, ``switch``."""
    is_switch = particle in _SWITCHED and not SWITCHING.isdisjoint(name)
    return is_switch and not SWITCHING.isdisjoint(asked)


def _conversions(words: Sequence[str]) -> set[tuple[str, str]]:
    """The conversions that words describe, as pairs of what is converted and the result."""
    found = set()
    words = [word for word in words if word not in ARTICLES]
    for one, link, other in zip(words, words[1:], words[2:], strict=False):
        if link in _TO:
            found.add((one, other))
        elif link == _FROM:
            found.add((other, one))
    return found


def _is_backwards(name: Sequence[str], asked: set[tuple[str, str]]) -> bool:
    """Whether a name is the reverse of a requested conversion, or converts the requested result."""
    found = _conversions(name) if asked else set()
    results = {result for source, result in asked if source not in ENGLISH}
    results -= {source for source, _ in asked}
    return any(
        (result, source) in asked or (source in results and not of_name(source))
        for source, result in found - asked
    )
