"""The training data: queries, each with the one item that it was written for."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from repertory.catalogue.views import views

T = TypeVar("T")

DATA = Path(__file__).with_name("data")

# Left out of training: these servers as a whole, and every fifth skill of the set `written`.
TEST_SERVERS = frozenset({"brave-search", "kubernetes", "pdf", "trello"})
TEST_SKILLS = 5
# Every so many of the other items are left out too; the share of the base model is chosen on them.
VALIDATION = 40


class Item(msgspec.Struct, frozen=True):
    """A tool or a skill, and where it is from."""

    id: str
    kind: str
    server: str
    name: str
    description: str
    licence: str
    provenance: str

    def texts(self) -> list[str]:
        """The texts by which Repertory finds it: the item itself, and its first sentence."""
        return [view.text for view in views(self.name, self.server, self.description, "")]


class Query(msgspec.Struct, frozen=True):
    """A query, its style, its item's id, and its origin: the set `written`, or this one."""

    text: str
    style: str
    item: str
    origin: str


class Split(msgspec.Struct, frozen=True):
    """The queries by their use; no item is in two of them."""

    train: list[Query]
    validation: list[Query]
    test: list[Query]


def items() -> dict[str, Item]:
    """All items by id."""
    return {item.id: item for item in _read("items.jsonl", Item)}


def queries() -> list[Query]:
    """All queries."""
    return list(_read("queries.jsonl", Query))


def split(found: Iterable[Query], of: dict[str, Item]) -> Split:
    """Divide queries by their items."""
    found = list(found)
    skills = sorted({q.item for q in found if q.origin == "written" and of[q.item].kind == "skill"})
    test = {*skills[::TEST_SKILLS]}
    test |= {item.id for item in of.values() if item.server in TEST_SERVERS}
    rest = sorted({query.item for query in found} - test)
    validation = {*rest[::VALIDATION]}
    return Split(
        train=[query for query in found if query.item not in test | validation],
        validation=[query for query in found if query.item in validation],
        test=[query for query in found if query.item in test],
    )


def _read(name: str, kind: type[T]) -> Iterator[T]:
    decoder = msgspec.json.Decoder(kind)
    with (DATA / name).open("rb") as lines:
        for line in lines:
            yield decoder.decode(line)
