"""Recently shown items are read from a cache unless they have changed."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from repertory.catalogue.item import Item
from repertory.index.keywords.document import entry
from repertory.index.keywords.index import KeywordIndex
from repertory.search.engine import SearchEngine
from repertory.search.item_cache import BESIDE_TEXT, ItemCache
from repertory.search.query import Query
from tests.support.builders import skill, tool
from tests.support.hybrid_search import Points, WordCounts
from tests.support.keyword_search import reader

BODY = "# Kneading\nKnead the dough.\n# Oven\nSteam makes a crust.\n"
BREAD = skill("bread", "Bakes loaves of flour", BODY)
TEXT = "steam for a crust of bread"


class Counted(Points):
    """Points that count how many items were read."""

    read = 0

    @override
    def records(self, keys: Sequence[int]) -> dict[str, dict[str, Any]]:
        self.read += len(keys)
        return super().records(keys)


def engine_of(points: Counted, item: Item, cache: ItemCache) -> SearchEngine:
    """A search engine over one item."""
    return SearchEngine(
        keywords=KeywordIndex.empty().updated((), [item]),
        collection=points,
        embedding=WordCounts,
        reader=reader(),
        item_cache=cache,
    )


def test_an_item_is_read_once() -> None:
    """Engines of later saves share the cache, and their hits are the same."""
    cache, points = ItemCache(), Counted([BREAD], WordCounts())
    first, *others = (
        engine_of(points, BREAD, cache).search(Query(text=TEXT, threshold=0.0)) for _ in range(3)
    )
    assert points.read == 1
    assert first.hits[0].matched_in == "# Oven"
    assert [answer.hits for answer in others] == [first.hits, first.hits]


def test_a_changed_item_is_read_again() -> None:
    """The cached item does not match the new hash."""
    cache, counts = ItemCache(), WordCounts()
    before, changed = (
        Counted([BREAD], counts),
        skill("bread", "Bakes", BODY.replace("Oven", "Fire")),
    )
    engine_of(before, BREAD, cache).search(Query(text=TEXT, threshold=0.0))
    after = Counted([changed], counts)
    answer = engine_of(after, changed, cache).search(Query(text=TEXT, threshold=0.0))
    assert after.read == 1
    assert answer.hits[0].matched_in == "# Fire"


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1_500)), max_size=40),
    st.integers(BESIDE_TEXT, 6 * BESIDE_TEXT),
)
def test_the_size_of_the_cached_texts_is_bounded(kept: list[tuple[int, int]], most: int) -> None:
    """The most recently used items stay; an item that is larger than the cache is not stored."""
    cache = ItemCache(most)
    for number, length in kept:
        item = tool(f"s__t{number}", "d" * length)
        cache.keep([item])
        fits = BESIDE_TEXT + len(item.name) + length <= most
        assert cache.get([entry(item)]) == ({item.id: item} if fits else {})
    held = [item for item in map(_item, {*kept}) if cache.get([entry(item)])]
    assert sum(BESIDE_TEXT + len(one.name) + len(one.description) for one in held) <= most


def _item(given: tuple[int, int]) -> Item:
    number, length = given
    return tool(f"s__t{number}", "d" * length)
