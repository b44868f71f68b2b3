"""What can do a job that nothing does by name; the table is ``capabilities.toml``."""

import tomllib
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files

import msgspec

from repertory.index.keywords.tokens import terms

PLAIN = 0.4  # the share of a query's terms that must be an intent's for it to be plainly asked for


class Intent(msgspec.Struct, frozen=True):
    """A sort of job, the words that ask for it, and the capabilities that can do it."""

    label: str
    words: tuple[str, ...]
    by: tuple[str, ...]


class Table(msgspec.Struct, frozen=True):
    """The table as it is written."""

    provider: dict[str, tuple[str, ...]]
    intent: tuple[Intent, ...]


class Inference(msgspec.Struct, frozen=True):
    """A capability that can do what a query asks, and the phrases by which its items are known."""

    capability: str
    intent: str
    phrases: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.capability} → {self.intent}"


@cache
def table() -> Table:
    """The table of intents and capabilities, read once."""
    text = files("repertory.search").joinpath("capabilities.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), Table)


@cache
def _words() -> tuple[tuple[Intent, tuple[frozenset[str], ...]], ...]:
    return tuple(
        (intent, tuple(frozenset(terms(word)) for word in intent.words))
        for intent in table().intent
    )


def intents(query: str) -> list[Intent]:
    """What a query asks for, the intent with the most words in it first."""
    return [intent for _, intent in _shares(query)]


@lru_cache(maxsize=256)
def _shares(query: str) -> list[tuple[float, Intent]]:
    """The intents of a query with the share of its terms that are words of each."""
    asked = set(terms(query))
    found = []
    for intent, words in _words():
        if there := frozenset[str]().union(*(word for word in words if word <= asked)):
            found.append((len(there) / len(asked), intent))
    return sorted(found, key=lambda pair: -pair[0])


def inferences(query: str) -> Iterator[Inference]:
    """The capabilities that can do what a query asks for in so many words, the likeliest first."""
    for share, intent in _shares(query):
        if share < PLAIN:
            return
        for capability in intent.by:
            yield Inference(capability, intent.label, table().provider[capability])
