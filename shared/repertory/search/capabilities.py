"""The table of jobs and of the capabilities that can do them if no tool does them directly.

The table is ``capabilities.toml``, which explains how its words are compared.
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

MIN_SHARE = 0.65  # of a query's words that must belong to an intent for inference
TYPO_FACTOR = 0.8  # the share that a misspelt word counts of that
MIN_TYPO_LENGTH = 5  # characters; shorter words are too often one edit from another word
DESCRIBED = 0.9  # the certainty of a capability that only the description of a tool has

_SENTENCE_END = re.compile(r"(?<=[.!?;:])\s")

Words = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
Phrases = tuple[frozenset[str], ...]


class Capability(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An ability of tools beyond their purpose.

    Attributes:
        words: Words and phrases of tools that have it.
        unless: Words of tools that do not have it despite these.
    """

    words: Words
    unless: tuple[str, ...] = ()


class Intent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of job.

    Attributes:
        label: Its name in reasons.
        words: Words and phrases that ask for it.
        beside: Words that belong to it, but do not ask for it alone.
        by: The capabilities that can do it, the likeliest first.
    """

    label: str
    words: Words
    by: Words
    beside: tuple[str, ...] = ()


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table as it is written.

    Raises:
        ValueError: An intent names an unknown capability.
    """

    plain: Words
    capability: dict[str, Capability]
    intent: tuple[Intent, ...]

    def __post_init__(self) -> None:
        named = {name for intent in self.intent for name in intent.by}
        if unknown := sorted(named - self.capability.keys()):
            raise ValueError(f"an intent names unknown capabilities: {unknown}")


class Inference(msgspec.Struct, frozen=True):
    """A capability that can do a query's job, and its place among these."""

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
    """The intents of a query, those with the largest share of its words first."""
    return [intent for _, intent in _asked(query)]


def inferences(query: str) -> list[Inference]:
    """The capabilities for the clear intents of a query, once each, the likeliest first."""
    ways = [
        Inference(capability, intent.label, way)
        for share, intent in _asked(query)
        if share >= MIN_SHARE
        for way, capability in enumerate(intent.by)
    ]
    best: dict[str, Inference] = {}
    for one in sorted(ways, key=lambda one: one.way):
        best.setdefault(one.capability, one)
    return list(best.values())


@lru_cache(maxsize=10_000)
def offered(capability: str, name: str, description: str, server: str) -> float:
    """The certainty, 0…1, that a tool has a capability: 1 by its name, less by its description."""
    single, unless = _single(capability)
    named, around = words(name), words(server)
    if any(word in unless for word, _ in named + around):
        return 0.0
    described = named + words(_SENTENCE_END.split(description, maxsplit=1)[0])
    for text, written, sure in ((named, named, 1.0), (described, described + around, DESCRIBED)):
        stems = {term for _, term in text}
        if any(word in single for word, _ in written) or any(
            len(phrase) > 1 and phrase <= stems for phrase in phrases(capability)
        ):
            return sure
    return 0.0


@cache
def phrases(capability: str) -> Phrases:
    """The stems of the words and phrases of a capability."""
    return tuple(frozenset(terms(text)) for text in table().capability[capability].words)


@cache
def asking(intent: Intent) -> Phrases:
    """The stems of the words and phrases that ask for an intent."""
    return tuple(frozenset(terms(text)) for text in intent.words)


@cache
def _single(capability: str) -> tuple[frozenset[str], frozenset[str]]:
    """The single words of a capability, and those that exclude it, as written."""
    of = table().capability[capability]
    written = [[word for word, _ in words(text)] for text in of.words]
    excluding = [word for text in of.unless for word, _ in words(text)]
    return frozenset(text[0] for text in written if len(text) == 1), frozenset(excluding)


@cache
def _asking() -> tuple[tuple[Intent, Phrases, frozenset[str]], ...]:
    """Each intent with the stems of its words, and of those beside them."""
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
    """The places in ``_asking`` of the intents by one stem of each of their phrases."""
    filed: defaultdict[str, list[int]] = defaultdict(list)
    for number, (_, phrases, _) in enumerate(_asking()):
        for stem in {min(phrase) for phrase in phrases}:
            filed[stem].append(number)
    return dict(filed)


@lru_cache(maxsize=256)
def _asked(query: str) -> list[tuple[float, Intent]]:
    """The intents of a query with their shares of its words, the largest first.

    Words of any request, numbers and single letters do not count.
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
    """The stems of a query, with words of the table corrected, and the factor of each."""
    stem_of, near = _spelling()
    known = _known()
    stems: dict[str, float] = {}
    for word, term in words(query):
        spellings = () if term in known else dict.fromkeys((word, word.removesuffix("s")))
        others = next(filter(None, map(near.near, spellings)), ())
        right = {stem_of[other] for other in others}
        if len(right) == 1:
            stems.setdefault(right.pop(), TYPO_FACTOR)
        else:
            stems[term] = 1.0
    return stems


@cache
def _spelling() -> tuple[dict[str, str], OneEdit]:
    """The words that ask for an intent with their stems, and the index that corrects them."""
    asking = [text for intent in table().intent for text in intent.words]
    stem_of = dict(pair for text in asking for pair in words(text))
    return stem_of, OneEdit(stem_of, MIN_TYPO_LENGTH)


@cache
def _known() -> frozenset[str]:
    """All stems of intents and requests, which are never corrected."""
    return _plain().union(*(beside.union(*phrases) for _, phrases, beside in _asking()))


@cache
def _plain() -> frozenset[str]:
    return frozenset(term for word in table().plain for term in terms(word))
