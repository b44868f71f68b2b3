"""What can do a job by another way, when nothing does it directly: the table, and what asks for it.

The table is ``capabilities.toml``, which says how its words are compared.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Annotated

import msgspec

from repertory.index.keywords.tokens import terms, words
from repertory.index.keywords.typos import OneEdit

PLAINLY = 0.65  # the share of a query's words that must be an intent's for it to be plainly asked
TYPO = 0.8  # what a misspelt word counts of that
SHORTEST_TYPO = 5  # characters; shorter words are too often one edit from another word
TOLD = 0.9  # how surely a tool has a capability that its description alone tells of

_SENTENCE_END = re.compile(r"(?<=[.!?;:])\s")

Words = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
Phrases = tuple[frozenset[str], ...]


class Capability(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What some tools can do beyond what they are made for.

    Attributes:
        words: Words and phrases by which a tool is known to have it.
        unless: Words of tools that do not have it all the same.
    """

    words: Words
    unless: tuple[str, ...] = ()


class Intent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sort of job.

    Attributes:
        label: What it is called.
        words: Words and phrases that ask for it.
        beside: Words that belong to it, but ask for nothing alone.
        by: The capabilities that can do it, the likeliest first.
    """

    label: str
    words: Words
    by: Words
    beside: tuple[str, ...] = ()


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table as it is written.

    Raises:
        ValueError: An intent names a capability that is not there.
    """

    plain: Words
    capability: dict[str, Capability]
    intent: tuple[Intent, ...]

    def __post_init__(self) -> None:
        named = {name for intent in self.intent for name in intent.by}
        if unknown := sorted(named - self.capability.keys()):
            raise ValueError(f"an intent names capabilities that are not there: {unknown}")


class Inference(msgspec.Struct, frozen=True):
    """A capability that can do what a query asks, by its name, and its place among the ways."""

    capability: str
    intent: str
    way: int

    def __str__(self) -> str:
        return f"{self.capability} → {self.intent}"


@cache
def table() -> Table:
    """The table of capabilities and intents, read once."""
    return read(files("repertory.search").joinpath("capabilities.toml").read_text("utf-8"))


def read(text: str) -> Table:
    """A table from its text.

    Raises:
        msgspec.ValidationError: A list is empty, or something is misnamed or missing.
    """
    return msgspec.convert(tomllib.loads(text), Table)


def intents(query: str) -> list[Intent]:
    """What a query asks for, what takes up most of it first."""
    return [intent for _, intent in _asked(query)]


def inferences(query: str) -> list[Inference]:
    """The capabilities that can do what a query plainly asks, once each, the likeliest first."""
    ways = [
        Inference(capability, intent.label, way)
        for share, intent in _asked(query)
        if share >= PLAINLY
        for way, capability in enumerate(intent.by)
    ]
    best: dict[str, Inference] = {}
    for one in sorted(ways, key=lambda one: one.way):
        best.setdefault(one.capability, one)
    return list(best.values())


@lru_cache(maxsize=10_000)
def offered(capability: str, name: str, description: str, server: str) -> float:
    """How surely a tool has a capability: 1 if its name says so, 0 if nothing does."""
    single, unless = _single(capability)
    named, around = words(name), words(server)
    if any(word in unless for word, _ in named + around):
        return 0.0
    told = named + words(_SENTENCE_END.split(description, maxsplit=1)[0])
    for text, written, sure in ((named, named, 1.0), (told, told + around, TOLD)):
        stems = {term for _, term in text}
        if any(word in single for word, _ in written) or any(
            len(phrase) > 1 and phrase <= stems for phrase in phrases(capability)
        ):
            return sure
    return 0.0


@cache
def phrases(capability: str) -> Phrases:
    """The stems of the words and phrases by which a capability is known."""
    return tuple(frozenset(terms(text)) for text in table().capability[capability].words)


@cache
def asking(intent: Intent) -> Phrases:
    """The stems of the words and phrases that ask for an intent."""
    return tuple(frozenset(terms(text)) for text in intent.words)


@cache
def _single(capability: str) -> tuple[frozenset[str], frozenset[str]]:
    """The single words by which a capability is known, and those that exclude it, as written."""
    of = table().capability[capability]
    written = [[word for word, _ in words(text)] for text in of.words]
    excluding = [word for text in of.unless for word, _ in words(text)]
    return frozenset(text[0] for text in written if len(text) == 1), frozenset(excluding)


@cache
def _asking() -> tuple[tuple[Intent, Phrases, frozenset[str]], ...]:
    """Each intent with the stems of what asks for it, and of what belongs to it."""
    return tuple(
        (
            intent,
            asking(intent),
            frozenset(term for word in intent.beside for term in terms(word)),
        )
        for intent in table().intent
    )


@cache
def _asked_with() -> Mapping[str, list[int]]:
    """The places in ``_asking`` of the intents with a phrase that is filed under a stem of it."""
    filed: defaultdict[str, list[int]] = defaultdict(list)
    for number, (_, phrases, _) in enumerate(_asking()):
        for stem in {min(phrase) for phrase in phrases}:
            filed[stem].append(number)
    return dict(filed)


@lru_cache(maxsize=256)
def _asked(query: str) -> list[tuple[float, Intent]]:
    """What a query asks for, each with the share of the query that its words are, largest first.

    Words of any request, numbers and single letters are no part of what is asked.
    """
    typed = _spelled(query)
    meant = {term for term in typed.keys() - _plain() if len(term) > 1 and not term.isdigit()}
    found = []
    asking = _asking()
    for number in sorted({number for term in typed for number in _asked_with().get(term, ())}):
        intent, phrases, beside = asking[number]
        if there := [phrase for phrase in phrases if phrase <= typed.keys()]:
            own = beside.union(*there)
            share = sum(typed[term] for term in meant & own) / len(meant) if meant else 1.0
            found.append((share, intent))
    return sorted(found, key=lambda pair: -pair[0])


def _spelled(query: str) -> dict[str, float]:
    """The stems of a query, misspelt words of the table put right, with what each counts."""
    stem_of, near = _spelling()
    known = _known()
    stems: dict[str, float] = {}
    for word, term in words(query):
        spellings = () if term in known else dict.fromkeys((word, word.removesuffix("s")))
        others = next(filter(None, map(near.near, spellings)), ())
        right = {stem_of[other] for other in others}
        if len(right) == 1:
            stems.setdefault(right.pop(), TYPO)
        else:
            stems[term] = 1.0
    return stems


@cache
def _spelling() -> tuple[dict[str, str], OneEdit]:
    """The words that ask for something, with their stems, and what finds them misspelt."""
    asking = [text for intent in table().intent for text in intent.words]
    stem_of = dict(pair for text in asking for pair in words(text))
    return stem_of, OneEdit(stem_of, SHORTEST_TYPO)


@cache
def _known() -> frozenset[str]:
    """All stems of intents and requests, which are no other word misspelt."""
    return _plain().union(*(beside.union(*phrases) for _, phrases, beside in _asking()))


@cache
def _plain() -> frozenset[str]:
    return frozenset(term for word in table().plain for term in terms(word))
