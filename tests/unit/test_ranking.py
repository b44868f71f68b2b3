"""The order of equal candidates."""

from itertools import permutations

import pytest

from repertory.catalogue.item import Item
from repertory.search.query import Query
from tests.support.builders import tool
from tests.support.keyword_search import keyword_engine

EQUAL = [tool(f"{server}__read_mail", "Read a mail") for server in "abc"]


@pytest.mark.parametrize("order", [*permutations(EQUAL)])
def test_equal_items_are_ordered_by_id_in_any_segment(order: tuple[Item, ...]) -> None:
    """Ties are broken by id, although rows are in the order in which segments were built."""
    hits = keyword_engine(order).search(Query(text="read mail", limit=3, threshold=0.0)).hits
    assert [hit.confidence for hit in hits] == [hits[0].confidence] * 3
    assert [hit.id for hit in hits] == [item.id for item in EQUAL]
