"""Hybrid searches on a Qdrant server."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from repertory.index.keywords.index import KeywordIndex
from repertory.index.qdrant import QdrantStore
from repertory.index.vectors import Filter
from repertory.search.answer import Mode
from repertory.search.engine import SearchEngine
from repertory.search.query import Query
from tests.support.builders import skill, tool
from tests.support.hybrid_search import DIMENSION, WordCounts, hybrid_engine, points_of
from tests.support.keyword_search import reader
from tests.support.qdrant_http import RefusedError
from tests.support.qdrant_server import QdrantStandIn

ITEMS = [
    skill("bread", "Bakes bread of flour", "# Kneading\nKnead the dough.\n# Oven\nSteam it.\n"),
    skill("old-roses", "Grows roses", deprecated_by="roses"),
    skill("roses", "Cuts and waters them"),
    tool("files__read_file", "Read the contents of a file from disk"),
    tool("box__run", "Runs it.", input_schema={"properties": {"command": {}}}),
]
QUERIES = [
    Query(text="bread"),
    Query(text="how do I bake a bread of flour?", threshold=0.0, limit=50),
    Query(text="grows roses", threshold=0.0),
    Query(text="read_file", where=Filter(kinds=("tool",))),
    Query(text="Knead the dough. Then read the file. Then grow roses.", threshold=0.1),
    Query(text="commit my changes"),
    Query(text="zxqv"),
]


@contextmanager
def engine_on(server: QdrantStandIn) -> Iterator[SearchEngine]:
    """A search engine whose vectors are on a Qdrant server."""
    counts = WordCounts()
    with QdrantStore(server.url).create("c", DIMENSION) as collection:
        collection.upsert([point for item in ITEMS for point in points_of(item, counts)])
        yield SearchEngine(
            keywords=KeywordIndex.empty().updated((), ITEMS),
            collection=collection,
            embedding=lambda: counts,
            reader=reader(),
        )


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.text[:20])
def test_a_search_makes_at_most_two_requests(query: Query) -> None:
    """One request is for all vector queries, and one for the records of the shown items."""
    with QdrantStandIn() as server, engine_on(server) as engine:
        server.requests.clear()
        answer = engine.search(query)
        asked = [request.path.removeprefix("/collections/c") for request in server.requests]
    assert answer.mode is Mode.HYBRID
    assert asked in (["/points/query/batch"], ["/points/query/batch", "/points"])
    alone = hybrid_engine(ITEMS).search(query)
    assert [hit.id for hit in answer.hits] == [hit.id for hit in alone.hits]


def test_keywords_answer_if_the_server_refuses_a_search() -> None:
    """The answer gives the reason."""
    with QdrantStandIn() as server, engine_on(server) as engine:
        server.refusals = [RefusedError(400, "Exact search disabled!")]
        answer = engine.search(Query(text="bread"))
    assert answer.mode is Mode.KEYWORD
    assert "Exact search disabled!" in answer.degraded
    assert answer.hits[0].name == "bread"
