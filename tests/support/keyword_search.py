"""Keyword indexes and search engines without vectors, for tests of the keyword arm."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import NamedTuple

from repertory.catalogue.item import Item, Kind, item_key
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.parts import Part, as_keys, merged
from repertory.index.keywords.segment import Segment
from repertory.index.keywords.snapshot import packing
from repertory.search.engine import SearchEngine
from tests.support.builders import no_model


class Packed(NamedTuple):
    """A snapshot as bytes: its head, and its segments by name."""

    head: bytes
    segments: Mapping[str, bytes]


def pack(index: KeywordIndex, revision: int, position: str = "") -> Packed:
    """A snapshot as bytes."""
    head, segments = packing(index, revision, position)
    return Packed(head, {name: segment() for name, segment in segments.items()})


@cache
def reader() -> ThreadPoolExecutor:
    """An executor with one thread, shared by all searches."""
    return ThreadPoolExecutor(1)


def content(index: KeywordIndex) -> Packed:
    """The content of an index in canonical form, independent of the changes that led to it."""
    return pack(KeywordIndex([Part(merged(index.parts))]), 1)


def row_of(index: KeywordIndex, item: str) -> int:
    """The row of an indexed item."""
    row = index.row_of(item)
    assert row is not None
    return row


def in_segments(items: Iterable[Item]) -> KeywordIndex:
    """An index of some items in two segments, each of which also has a deleted item."""
    held = list({item.id: item for item in items}.values())
    gone = [Item(id=f"~gone/{at}", kind=Kind.SKILL, name=f"gone {at}", source="s") for at in (0, 1)]
    parts = [Part(Segment.of([*held[at::2], gone[at]])) for at in (0, 1)]
    rows = [part.places_of(as_keys([item_key(gone[at].id)]))[1] for at, part in enumerate(parts)]
    return KeywordIndex(part.without(row) for part, row in zip(parts, rows, strict=True))


def keyword_engine(items: Iterable[Item], precedence: Sequence[str] = ()) -> SearchEngine:
    """A search engine over some items, with the keyword arm only."""
    return SearchEngine(
        keywords=in_segments(items),
        collection=None,
        embedding=no_model,
        reader=reader(),
        degraded=["There is no model."],
        precedence=precedence,
    )
