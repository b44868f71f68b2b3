"""The memory of a replaced index is freed at once."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from repertory.catalogue.policy import Policy
from repertory.search.query import Query
from tests.support.builders import tool
from tests.support.keyword_search import keyword_engine

ITEMS = [
    tool("mail__read", "Read a mail", policy=Policy(pin=("my post",))),
    tool("mail__get", "Read a mail, the old way", policy=Policy(deprecated_by="mail__read")),
    tool("mail__send", "Send a mail"),
]


@pytest.fixture
def no_collections() -> Iterator[None]:
    """Turn the cycle collector off: it runs rarely in a server, which then keeps old indexes."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collections")
def test_a_replaced_index_is_freed_without_the_cycle_collector() -> None:
    """This includes an index that was searched and whose lookup tables were built."""
    engine = keyword_engine(ITEMS)
    engine.keywords.prepare()
    assert engine.search(Query(text="read my post", threshold=0.0)).hits
    kept = weakref.ref(engine.keywords)
    engine = engine.over(
        engine.keywords.updated(["mail__send"], ()),
        None,
        precedence=(),
        stale=(),
        notices=(),
        hides=False,
    )
    assert engine.search(Query(text="read my post", threshold=0.0)).hits
    assert kept() is None
