"""The order of the candidates of one text."""

from itertools import permutations

import pytest

from repertory.catalogue.item import Item
from repertory.search.query import Query
from tests.support.builders import tool
from tests.support.keyword_search import keyword_engine

EQUAL = [tool(f"{server}__read_mail", "Read a mail") for server in "abc"]


@pytest.mark.parametrize("order", [*permutations(EQUAL)])
def test_equal_items_come_by_id_whichever_segment_they_are_of(order: tuple[Item, ...]) -> None:
    """Rows are in the order of the segments: the first and the third item, then the second."""
    hits = keyword_engine(order).search(Query(text="read mail", limit=3, threshold=0.0)).hits
    assert [hit.confidence for hit in hits] == [hits[0].confidence] * 3
    assert [hit.id for hit in hits] == [item.id for item in EQUAL]
