"""Hidden items with vectors in the embedded store and on a Qdrant server."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from repertory.catalogue.item import Item, item_key, point_id
from repertory.index.edge import EdgeStore
from repertory.index.keywords.index import KeywordIndex
from repertory.index.qdrant import QdrantStore
from repertory.index.vectors import Filter, VectorStore
from repertory.search.engine import SearchEngine
from repertory.search.query import Query
from tests.support.builders import skill, tool
from tests.support.hybrid_search import DIMENSION, WordCounts, points_of
from tests.support.keyword_search import reader
from tests.support.qdrant_server import QdrantStandIn
from tests.support.visibility import hidden, is_hidden, seen

VISIBLE = [
    skill("bread", "Bakes bread of flour", "# Kneading\nKnead the dough.\n# Oven\nSteam it.\n"),
    skill(
        "all", "What is there for all of us to do about it"
    ),  # only stop words, so keywords cannot find it
    skill("old-roses", "Grows roses", deprecated_by="roses"),
    skill("roses", "Cuts and waters them"),
    tool("files__read_file", "Read the contents of a file from disk"),
]
HIDDEN = [
    *(hidden(item, number) for item in VISIBLE for number in range(3)),
    *(
        hidden(skill(f"crowd{number}", "What is there for all of us to do"), number)
        for number in range(80)
    ),
]
QUERIES = [
    Query(text="what is there for all of us to do", threshold=0.0, limit=50),
    Query(text="how do I bake a bread of flour?", threshold=0.0, limit=50),
    Query(text="grows roses", threshold=0.0),
    Query(text="read_file", where=Filter(kinds=("tool",))),
    Query(text="Knead the dough. Then read the file. Then grow roses.", threshold=0.1),
    Query(text="bread", where=Filter(sources=("team", "secret-team"))),
    Query(text="bread", where=Filter(sources=("secret-team",))),
]

EngineOf = Callable[[Sequence[Item]], SearchEngine]


@pytest.fixture(scope="module")
def server() -> Iterator[QdrantStandIn]:
    """A stand-in for a Qdrant server."""
    with QdrantStandIn() as running:
        yield running


@pytest.fixture(scope="module", params=["embedded", "server"])
def engine_of(
    request: pytest.FixtureRequest,
    server: QdrantStandIn,
    tmp_path_factory: pytest.TempPathFactory,
) -> EngineOf:
    """Make search engines over some items, with their points in a store."""
    is_embedded = request.param == "embedded"
    path = tmp_path_factory.mktemp("store")
    store: VectorStore = EdgeStore(Path(path)) if is_embedded else QdrantStore(server.url)
    counts = WordCounts()

    def made(items: Sequence[Item]) -> SearchEngine:
        collection = store.create(f"c{len(items)}", DIMENSION)
        collection.upsert([point for item in items for point in points_of(item, counts)])
        return SearchEngine(
            keywords=KeywordIndex.empty().updated((), items),
            collection=collection,
            embedding=lambda: counts,
            reader=reader(),
        )

    return made


def test_answers_equal_those_of_a_store_without_hidden_items(engine_of: EngineOf) -> None:
    """This holds although 80 hidden points are nearer than any visible point."""
    catalogue = [*VISIBLE, *HIDDEN]
    subset, lacking = seen(engine_of(catalogue), catalogue), seen(engine_of(VISIBLE), VISIBLE)
    for query in QUERIES:
        assert subset.search(query) == lacking.search(query)
    first = subset.search(QUERIES[0]).hits[0]
    assert (first.id, first.evidence.keyword_rank) == ("team/all", None)  # vectors alone find it
    assert not any(is_hidden(item) for item in subset.items([one.id for one in catalogue]).values())
    assert subset.items([HIDDEN[0].id]) == lacking.items([HIDDEN[0].id]) == {}


def test_a_search_of_a_subset_takes_one_request(
    server: QdrantStandIn,
) -> None:
    """The request filters only if items are hidden, and reads the records of the shown items."""
    counts = WordCounts()
    with QdrantStore(server.url).create("counted", DIMENSION) as collection:
        catalogue = [*VISIBLE, *HIDDEN[:3]]
        collection.upsert([point for item in catalogue for point in points_of(item, counts)])
        whole = SearchEngine(
            keywords=KeywordIndex.empty().updated((), catalogue),
            collection=collection,
            embedding=lambda: counts,
            reader=reader(),
        )
        open_to_all = [item for item in catalogue if not is_hidden(item)]
        for subset, wanted in ((seen(whole, catalogue), ["files", "team"]), (whole, None)):
            server.requests.clear()
            subset.search(Query(text="bread"))
            asked = [one.path.removeprefix("/collections/counted") for one in server.requests]
            assert asked == ["/points/query/batch"]
            first, *_, last = server.requests[0].body["searches"]
            assert last["with_payload"] == ["item", "record"]
            own = {str(point_id(item_key(item.id))) for item in open_to_all}
            assert wanted is None or own.issuperset(last["filter"]["must"][0]["has_id"])
            found = [one["match"]["any"] for one in first.get("filter", {}).get("must", [])]
            assert found == ([] if wanted is None else [wanted])
        shared = whole.over(
            KeywordIndex.empty().updated((), open_to_all),
            collection,
            precedence=(),
            stale=(),
            notices=(),
            hides=False,
        )
        server.requests.clear()
        seen(shared, open_to_all).search(Query(text="bread"))
        assert "filter" not in server.requests[0].body["searches"][0]
        server.requests.clear()
        hidden_item, missing_item = HIDDEN[0].id, "no/item"
        subset = seen(whole, catalogue)
        assert subset.items([hidden_item]) == subset.items([missing_item]) == {}
        assert server.requests == []  # neither costs a request
