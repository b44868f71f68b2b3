"""Search engines without vectors and without a model, for tests of the keyword arm."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from repertory.catalogue.item import Item
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.segment import Part, Segment
from repertory.index.keywords.snapshot import Packed, pack
from repertory.search.engine import SearchEngine
from tests.support.builders import no_model


@cache
def reader() -> ThreadPoolExecutor:
    """One thread for all searches."""
    return ThreadPoolExecutor(1)


def content(index: KeywordIndex) -> Packed:
    """All that an index holds, whatever changes it was made by."""
    return pack(KeywordIndex([Part(Segment.merged(index.parts))]), 1)


def row_of(index: KeywordIndex, item: str) -> int:
    """The row of an item that an index has."""
    row = index.row_of(item)
    assert row is not None
    return row


def keyword_engine(items: Iterable[Item], precedence: Sequence[str] = ()) -> SearchEngine:
    """A search engine over some items with the keyword arm alone."""
    return SearchEngine(
        keywords=KeywordIndex.empty().updated((), items),
        collection=None,
        embedding=no_model,
        reader=reader(),
        degraded=["There is no model."],
        precedence=precedence,
    )
