"""The training data: queries, each with the item that it was written for."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import msgspec

from repertory.catalogue.views import views

T = TypeVar("T")

DATA = Path(__file__).with_name("data")
SET = ("corpus.jsonl", "queries.jsonl", "qrels.jsonl")  # the files of a labelled set


class Part(StrEnum):
    """The part of the data that an item and its queries belong to."""

    TRAIN = "train"
    VALIDATION = "validation"
    TEST = "test"


class Item(msgspec.Struct, frozen=True):
    """A tool or a skill, its origin, and its part of the data."""

    id: str
    kind: str
    server: str
    name: str
    description: str
    licence: str
    provenance: str
    part: Part

    @property
    def group(self) -> str:
        """The server of a tool, or the repository of a skill."""
        return self.server or self.provenance.partition("@")[0]

    def texts(self) -> list[str]:
        """The texts that Repertory embeds: the item itself, and its first sentence."""
        return [view.text for view in views(self.name, self.server, self.description, "")]


class Query(msgspec.Struct, frozen=True):
    """A query, its style, its item's id, and the round in which it was written."""

    text: str
    style: str
    item: str
    origin: str


def items() -> dict[str, Item]:
    """All items by id."""
    return {item.id: item for item in _read("items.jsonl", Item)}


def queries() -> list[Query]:
    """All queries."""
    return list(_read("queries.jsonl", Query))


def only(part: Part, found: Iterable[Query], of: dict[str, Item]) -> list[Query]:
    """The queries whose items belong to a part."""
    return [query for query in found if of[query.item].part is part]


def _read(name: str, kind: type[T]) -> Iterator[T]:
    decoder = msgspec.json.Decoder(kind)
    with (DATA / name).open("rb") as lines:
        for line in lines:
            yield decoder.decode(line)
