"""The contract of ``VectorStore``, tested on the embedded engine and a Qdrant server.

Without a real server, a stand-in on the same engine is used; see ``qdrant_url``.
"""

import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from repertory.catalogue.item import item_key
from repertory.catalogue.views import LEAD
from repertory.embedding.engine import unit
from repertory.errors import StoreError
from repertory.index import layout
from repertory.index.edge import EdgeStore
from repertory.index.qdrant import QdrantStore
from repertory.index.vectors import (
    NO_FILTER,
    Collection,
    Filter,
    Point,
    State,
    VectorQuery,
    VectorStore,
)
from tests.support.points import DIMENSION, direction, item_of, point


@pytest.fixture(params=["edge", "qdrant"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VectorStore]:
    """Each adapter in turn; collections left on a server are deleted afterwards."""
    if request.param == "edge":
        yield EdgeStore(tmp_path / "data", timeout=0.1)
        return
    server: VectorStore = QdrantStore(request.getfixturevalue("qdrant_url"))
    before = set(server.collections())
    yield server
    for name in set(server.collections()) - before:
        server.drop(name)


@pytest.fixture
def name() -> str:
    """An unused name of a collection."""
    return f"repertory_{uuid.uuid4().hex[:16]}_bge-small-en-v1.5_g1"


@pytest.fixture
def collection(store: VectorStore, name: str) -> Iterator[Collection]:
    """An empty collection."""
    with store.create(name, DIMENSION) as made:
        yield made


def found(collection: Collection, where: Filter = NO_FILTER) -> set[str]:
    """The items that a search with any vector finds."""
    return {item_of(match) for match in collection.search(direction(1, 1, 1, 1), 100, where)}


def scores(
    collection: Collection, vector: NDArray[np.float32], items: Sequence[str]
) -> dict[str, float]:
    """The cosines of a vector with some items."""
    keys = {item_key(item): item for item in items}
    nothing = Filter(kinds=("no such kind",))
    query = VectorQuery(vector=vector, limit=1, where=nothing, keys=[*keys])
    (answer,) = collection.query([query])
    assert not answer.matches
    return {keys[key]: score for key, score in answer.scores.items()}


def test_an_empty_collection_has_nothing(collection: Collection, name: str) -> None:
    """Every read returns nothing, without an error."""
    assert collection.name == name
    assert collection.count() == 0
    assert collection.count_items() == 0
    assert collection.page(0, 10) == []
    assert list(collection.states()) == []
    assert list(collection.states(["a"])) == []
    assert list(collection.scan()) == []
    assert collection.records([item_key(one) for one in ["a"]]) == {}
    assert collection.search(direction(1), 10) == []
    assert scores(collection, direction(1), ["a"]) == {}


def test_empty_and_unknown_input_changes_nothing(collection: Collection) -> None:
    """Empty sequences and unknown items are ignored."""
    collection.upsert([point("a")])
    collection.upsert([])
    collection.delete_items([], before=9)
    collection.delete_items(["unknown"], before=9)
    assert collection.records([]) == {}
    assert list(collection.states([])) == []
    assert collection.records([item_key(one) for one in ["unknown", "a"]]) == {
        "a": {"id": "a", "revision": 1}
    }
    assert scores(collection, direction(1), []) == {}
    assert collection.count() == 1


def test_search_gives_the_nearest_first_with_their_cosine(collection: Collection) -> None:
    """Matches come best first, up to the limit, with the plain cosine."""
    near, middle, far = direction(1, 0.1), direction(1, 1), direction(-1, 0.2)
    collection.upsert([point("far", far), point("near", near), point("middle", middle)])
    matches = collection.search(direction(1), 2)
    assert [item_of(match) for match in matches] == ["near", "middle"]
    assert [match.score for match in matches] == pytest.approx(
        [float(near[0]), float(middle[0])], abs=1e-5
    )
    assert collection.search(direction(1), 10)[-1].score == pytest.approx(float(far[0]), abs=1e-5)


def test_sections_are_found_beside_their_item(collection: Collection) -> None:
    """Only a search returns sections; states, records, scans and scores have only items."""
    collection.upsert(
        [
            point("guide", direction(1)),
            point("guide", direction(0, 1), section=0, record={"heading": "## Setup"}),
            point("guide", direction(0, 0, 1), section=1, record={"heading": "## Use"}),
        ]
    )
    assert collection.count() == 3
    best = collection.search(direction(0, 0, 1), 1)[0]
    assert (item_of(best), best.section) == ("guide", 1)
    assert collection.search(direction(1), 1)[0].section is None
    assert [state.item for state in collection.states()] == ["guide"]
    assert list(collection.scan()) == [{"id": "guide", "revision": 1}]
    assert collection.records([item_key(one) for one in ["guide"]]) == {
        "guide": {"id": "guide", "revision": 1}
    }
    assert scores(collection, direction(0, 0, 1), ["guide"]) == pytest.approx({"guide": 0.0})


def test_scores_are_cosines_of_the_given_items(collection: Collection) -> None:
    """Every given item that exists gets its cosine, also if it is no match."""
    vectors = {"a": direction(1), "b": direction(1, 1), "c": direction(-1), "d": direction(0, 1)}
    collection.upsert([point(item, vector) for item, vector in vectors.items()])
    query = direction(0.6, 0.8)
    expected = {item: float(vectors[item] @ query) for item in ("a", "b", "c")}
    found = scores(collection, query, ["a", "b", "c", "unknown"])
    assert found == pytest.approx(expected, abs=1e-5)


def test_the_score_of_an_item_is_the_maximum_of_its_own_and_its_leads(
    collection: Collection,
) -> None:
    """An item's lead counts like its own point; a section does not."""
    collection.upsert(
        [
            *(point("a", direction(0, 1)), point("a", direction(1), section=LEAD)),
            *(point("b", direction(1)), point("b", direction(0, 1), section=LEAD)),
            *(point("c", direction(0, 1)), point("c", direction(1), section=LEAD - 1)),
        ]
    )
    found = scores(collection, direction(1), ["a", "b", "c"])
    assert found == pytest.approx({"a": 1.0, "b": 1.0, "c": 0.0})


def test_a_state_has_source_hashes_and_revision(collection: Collection) -> None:
    """A state has the item's source, hashes and revision."""
    collection.upsert([point("a", source="team", revision=7)])
    assert list(collection.states()) == [
        State(
            item="a",
            source="team",
            content_hash="content 7",
            metadata_hash="metadata 7",
            revision=7,
        )
    ]


def test_states_are_returned_for_given_items(collection: Collection) -> None:
    """Each given item that exists has one state, also if it is given twice."""
    items = [f"item {number}" for number in range(1_201)]
    collection.upsert([point(item) for item in items])
    collection.upsert([point("item 7", revision=2), point("item 7", section=0)])
    collection.upsert([point("no item", section=0)])
    asked = ["item 7", "unknown", "no item", "item 3", "item 7"]
    assert {state.item: state.revision for state in collection.states(asked)} == {
        "item 3": 1,
        "item 7": 2,
    }
    assert len(list(collection.states(asked))) == 2
    assert sorted(state.item for state in collection.states(items)) == sorted(items)


def test_states_are_returned_in_pages(collection: Collection) -> None:
    """A page holds the states from a key on, ordered by key and without sections."""
    items = sorted((f"item {number}" for number in range(40)), key=item_key)
    for item in items:
        collection.upsert([point(item), point(item, section=0)])
    collection.upsert([point(items[7], revision=5), point(items[30], revision=6)])
    assert collection.count_items() == 40
    assert [state.item for state in collection.page(0, 100)] == items
    first = collection.page(0, 15)
    assert [state.item for state in first] == items[:15]
    after = item_key(first[-1].item) + 1
    assert [state.item for state in collection.page(after, 15)] == items[15:30]
    assert [state.item for state in collection.page(item_key(items[39]), 15)] == items[39:]
    assert collection.page(item_key(items[39]) + 1, 15) == []
    assert [state.item for state in collection.page(0, 15, since=5)] == [items[7], items[30]]
    assert [state.item for state in collection.page(after, 15, since=5)] == [items[30]]
    assert collection.page(0, 15, since=7) == []


def test_records_are_unchanged(collection: Collection) -> None:
    """Nesting, nulls, huge and small numbers and any characters are unchanged."""
    record: dict[str, Any] = {
        "id": "a",
        "body": "línea\n\0 😀 \ud800",
        "schema": {"minimum": -(2**70), "default": None, "enum": [1, 1.5, True, []], "": {}},
    }
    collection.upsert([point("a", record=record)])
    assert collection.records([item_key(one) for one in ["a"]]) == {"a": record}
    assert list(collection.scan()) == [record]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (NO_FILTER, {"read", "grep", "commit", "guide"}),
        (Filter(kinds=("document",)), {"guide"}),
        (Filter(kinds=("document", "tool")), {"read", "grep", "commit", "guide"}),
        (Filter(sources=("mcp",)), {"read", "grep", "commit"}),
        (Filter(servers=("git",)), {"commit"}),
        (Filter(servers=("git", "files")), {"read", "grep", "commit"}),
        (Filter(tags=("text",)), {"grep", "guide"}),
        (Filter(tags=("text", "io")), {"read", "grep", "guide"}),
        (Filter(servers=("files",), tags=("text",)), {"grep"}),
        (
            Filter(kinds=("tool",), sources=("mcp",), servers=("files",), tags=("io",)),
            {"read", "grep"},
        ),
        (Filter(kinds=("document",), servers=("git",)), set()),
        (Filter(tags=("unknown",)), set()),
    ],
)
def test_all_fields_of_a_filter_must_match(
    collection: Collection, where: Filter, expected: set[str]
) -> None:
    """Each field of a filter must match one of its values."""
    collection.upsert(
        [
            point("read", source="mcp", server="files", tags=("io",)),
            point("grep", source="mcp", server="files", tags=("io", "text")),
            point("commit", source="mcp", server="git"),
            point("guide", kind="document", tags=("text",)),
        ]
    )
    assert found(collection, where) == expected


def test_points_are_returned_as_written(collection: Collection) -> None:
    """``points`` returns points with all fields and vectors, ordered by id."""
    written = [
        point("a", direction(1, 2), tags=("x", "y"), server="s", record={"deep": [1, {"b": None}]}),
        point("a", direction(2, 1), section=0, record={"heading": "h"}),
        *(point(f"item {number}", direction(number, 1)) for number in range(300)),
    ]
    collection.upsert(written)
    found = list(collection.points())
    assert [one.id for one in found] == sorted(one.id for one in written)
    expected = {one.id: one for one in written}
    for one in found:
        wanted = expected[one.id]
        assert one.vector.dtype == np.float32
        np.testing.assert_allclose(one.vector, wanted.vector, atol=1e-6)
        fields = set(Point.__struct_fields__) - {"vector"}
        assert all(getattr(one, name) == getattr(wanted, name) for name in fields)


def test_aliases_are_listed(store: VectorStore, collection: Collection, name: str) -> None:
    """All aliases, or the given ones that exist, are listed with their collections."""
    store.set_alias(f"{name}_one", collection.name)
    store.set_alias(f"{name}_two", collection.name)
    found = {one: at for one, at in store.aliases().items() if one.startswith(name)}
    assert found == {f"{name}_one": collection.name, f"{name}_two": collection.name}
    some = store.aliases([f"{name}_two", f"{name}_three"])
    assert some == {f"{name}_two": collection.name}


def test_a_filter_is_applied_before_the_limit(collection: Collection) -> None:
    """The nearest matching items are found, however many nearer ones do not match."""
    collection.upsert([point(f"near {n}", direction(1), source="a") for n in range(50)])
    collection.upsert([point("far", direction(-1), source="b")])
    matches = collection.search(direction(1), 1, Filter(sources=("b",)))
    assert [item_of(match) for match in matches] == ["far"]


def test_an_older_write_never_replaces_a_newer_one(collection: Collection) -> None:
    """Lower and equal revisions are ignored, higher ones replace; also within one call."""
    collection.upsert([point("a", direction(1), revision=5)])
    collection.upsert([point("a", direction(0, 1), revision=4), point("b", revision=4)])
    collection.upsert([point("a", direction(0, 1), revision=5)])
    assert {state.item: state.revision for state in collection.states()} == {"a": 5, "b": 4}
    assert scores(collection, direction(1), ["a"])["a"] == pytest.approx(1, abs=1e-5)
    collection.upsert([point("a", direction(0, 1), revision=9), point("a", revision=8)])
    assert {state.item: state.revision for state in collection.states()} == {"a": 9, "b": 4}
    assert scores(collection, direction(1), ["a"])["a"] == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize(
    "damage",
    [{"metadata_hash": None}, {"revision": "none"}, {"record": "{"}, {"item": None}],
    ids=["hash", "revision", "record", "item"],
)
def test_a_damaged_point_hides_no_other(
    collection: Collection, monkeypatch: pytest.MonkeyPatch, damage: dict[str, object]
) -> None:
    """A damaged point has no valid state, so its item is written again, which repairs it."""
    items = sorted((f"item {number}" for number in range(9)), key=item_key)
    collection.upsert([point(item) for item in items])
    bad = items[3]
    with monkeypatch.context() as damaging:
        payload = layout.payload
        damaging.setattr(layout, "payload", lambda one: payload(one) | damage)
        collection.upsert([point(bad, revision=2), point(bad, section=0, revision=2)])
    for states in (collection.states(), collection.states(items), collection.page(0, 9)):
        hashes = {state.item: state.metadata_hash for state in states}
        assert hashes.keys() - {bad} == {*items} - {bad}
        assert "record" in damage or hashes.get(bad) not in {"metadata 1", "metadata 2"}
    some = collection.page(0, 5)
    assert len(some) == 5
    rest = collection.page(item_key(some[-1].item) + 1, 5)
    assert {*items} - {bad} <= {state.item for state in [*some, *rest]}
    keys = [item_key(item) for item in items]
    assert collection.records(keys).keys() >= {*items} - {bad}
    query = VectorQuery(vector=direction(1), limit=20, likely=keys)
    assert collection.query([query])[0].matches
    collection.upsert([point(bad, revision=3), point(bad, section=0, revision=3)])
    assert {state.item for state in collection.page(0, 20)} == {*items}
    assert collection.records(keys)[bad]["revision"] == 3
    collection.delete_items([bad], before=4)
    assert collection.count() == collection.count_items() == 8


def test_sections_can_be_deleted_without_their_item(collection: Collection) -> None:
    """Older sections are deleted; newer ones and the item's own point of any age stay."""
    collection.upsert([point("a", revision=1), point("a", section=0, revision=1)])
    collection.upsert([point("a", section=1, revision=2), point("b", section=0, revision=1)])
    collection.delete_sections(["a", "unknown"], before=2)
    matches = collection.search(direction(1), 10)
    assert {(item_of(m), m.section) for m in matches} == {("a", None), ("a", 1), ("b", 0)}
    collection.delete_sections([], before=9)
    assert collection.count() == 3


def test_a_deletion_removes_all_older_points_of_an_item(collection: Collection) -> None:
    """An item is deleted with its sections; points written at or after ``before`` stay."""
    collection.upsert([point("a", revision=1), point("a", section=0, revision=1)])
    collection.upsert([point("b", revision=1), point("c", revision=1)])
    collection.upsert([point("b", revision=2), point("b", section=0, revision=1)])
    collection.delete_items(["a", "b"], before=2)
    assert {item_of(match) for match in collection.search(direction(1), 10)} == {"b", "c"}
    assert collection.count() == 2


def test_more_points_than_one_write_or_one_page_takes(collection: Collection) -> None:
    """A thousand items and more are written, listed and deleted, each once."""
    items = [f"item {number}" for number in range(1_201)]
    collection.upsert([point(item, direction(1, n)) for n, item in enumerate(items)])
    assert sorted(state.item for state in collection.states()) == sorted(items)
    assert sorted(record["id"] for record in collection.scan()) == sorted(items)
    assert len(collection.records([item_key(one) for one in items])) == len(items)
    collection.delete_items(items[1:], before=2)
    assert collection.count() == 1


def test_reading_continues_during_writes(collection: Collection) -> None:
    """An upsert during a listing succeeds, and the listing is complete."""
    collection.upsert([point(f"item {number}") for number in range(1_100)])
    states = collection.states()
    first = next(states).item
    collection.upsert([point("new")])
    assert len({first, *(state.item for state in states)} - {"new"}) == 1_100


def test_more_text_than_one_request_takes(collection: Collection) -> None:
    """A server takes 32 MB, of which text in JSON within JSON can be half."""
    body = '\\"' * 500_000
    collection.upsert([point(f"item {n}", record={"body": body}) for n in range(40)])
    assert collection.records([item_key("item 39")]) == {"item 39": {"body": body}}
    assert collection.count() == 40


SHARES = {"three-quarters": 0.75, "half": 0.5, "quarter": 0.25, "tenth": 0.1, "fiftieth": 0.02}
GRAPH_FROM_KB = 100  # a graph is built from this size of the vectors on: 800 points


@pytest.mark.parametrize("points", [600, 4_000])
def test_filtered_searches_agree_with_exact_ones(
    store: VectorStore, name: str, points: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Filtered searches find 99% of the nearest points, with and without a graph.

    A graph is built only from a minimum number of points on.
    """
    monkeypatch.setattr(layout, "GRAPH_FROM", GRAPH_FROM_KB)
    chosen = np.random.default_rng(7)
    vectors = unit(chosen.normal(size=(points, 32)).astype(np.float32))
    queries = unit(chosen.normal(size=(60, 32)).astype(np.float32))
    draw = chosen.random(points)
    tags = [tuple(tag for tag, share in SHARES.items() if one < share) for one in draw.tolist()]
    items = [f"item {number}" for number in range(points)]
    row_of = {item_key(item): row for row, item in enumerate(items)}
    with store.create(name, 32) as collection:
        collection.upsert(
            [
                point(item, vector, tags=own, kind="document" if row % 2 else "tool")
                for row, (item, vector, own) in enumerate(zip(items, vectors, tags, strict=True))
            ]
        )
        collection.optimize()
        assert collection.is_ready()
        for tag in (None, *SHARES):
            for kinds in ((), ("tool",)):
                where = Filter(tags=(tag,) if tag else (), kinds=kinds)
                is_allowed = np.array([not tag or tag in own for own in tags])
                is_allowed &= (np.arange(points) % 2 == 0) | (not kinds)
                cosines = np.where(is_allowed, queries @ vectors.T, -2)
                wanted = np.argsort(-cosines, axis=1)[:, : min(15, int(is_allowed.sum()))]
                hits = 0
                for query, best in zip(queries, wanted.tolist(), strict=True):
                    matches = collection.search(query, 15, where)
                    hits += len({row_of[match.key] for match in matches}.intersection(best))
                assert hits / wanted.size >= 0.99, (tag, kinds)


def test_several_queries_are_answered_in_one_call(collection: Collection) -> None:
    """Each query gets its own matches, and the cosines of its keys that did not match."""
    vectors = {"a": direction(1), "b": direction(1, 1), "c": direction(0, 1)}
    collection.upsert([point(item, vector, tags=(item,)) for item, vector in vectors.items()])
    keys = [item_key(item) for item in "abcd"]
    first, second, third = collection.query(
        [
            VectorQuery(vector=direction(1), limit=1, keys=keys),
            VectorQuery(vector=direction(0, 1), limit=9, where=Filter(tags=("b",))),
            VectorQuery(vector=direction(1), limit=2, keys=keys[:1]),
        ]
    )
    assert [item_of(match) for match in first.matches] == ["a"]
    assert first.scores == pytest.approx({keys[1]: 0.5**0.5, keys[2]: 0.0}, abs=1e-5)
    assert [item_of(match) for match in second.matches] == ["b"]
    assert second.scores == {}
    assert [item_of(match) for match in third.matches] == ["a", "b"]
    assert third.scores == {}
    assert collection.query([]) == []


def test_records_of_likely_items_come_along(store: VectorStore, collection: Collection) -> None:
    """A query of a server returns all records of the likely items, to save a request.

    The embedded engine returns none, because reading them needs no request.
    """
    collection.upsert([point(item, direction(1)) for item in "abc"])
    collection.upsert([point("a", direction(1), section=0, record={"id": "not the item's own"})])
    likely = [item_key(item) for item in "adb"]
    first, second = collection.query(
        [
            VectorQuery(vector=direction(1), limit=1, likely=likely),
            VectorQuery(vector=direction(0, 1), limit=9, keys=likely[:1]),
        ]
    )
    records = {item: json.loads(record) for item, record in first.records.items()}
    own = collection.records(likely)
    assert own.keys() == {"a", "b"}
    assert records == ({} if isinstance(store, EdgeStore) else own)
    assert len(first.matches) == 1
    assert second.records == {}


Write = tuple[str, int | None, int]
WRITES = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from([None, 0, 1]), st.integers(1, 4)),
    max_size=8,
)
DELETION = st.tuples(st.lists(st.sampled_from("abcd"), max_size=3), st.integers(1, 5))


def write(item: str, section: int | None, revision: int) -> Point:
    """A point whose vector encodes its revision."""
    return point(item, direction(1, revision), section=section, revision=revision)


def contents(collection: Collection) -> dict[tuple[str, int | None], int]:
    """Every point's revision, decoded from its vector, for points made by ``write``."""
    matches = collection.search(direction(1), 100)
    return {(item_of(m), m.section): round((m.score**-2 - 1) ** 0.5) for m in matches}


def example(store: VectorStore, run: Callable[[Collection], None]) -> None:
    """Run one example of a law on its own collection."""
    name = f"law_{uuid.uuid4().hex}"
    with store.create(name, DIMENSION) as collection:
        run(collection)
    store.drop(name)


@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # each example makes its own
)
@given(writes=WRITES, data=st.data())
def test_writes_converge(store: VectorStore, writes: list[Write], data: st.DataObject) -> None:
    """In any order, batching and repetition of writes, the highest revisions win."""
    model: dict[tuple[str, int | None], int] = {}
    for item, section, revision in writes:
        model[item, section] = max(revision, model.get((item, section), 0))
    repeated = data.draw(st.permutations([*writes, *writes[: len(writes) // 2]]))
    cut = data.draw(st.integers(0, len(repeated)))

    def run(collection: Collection) -> None:
        for batch in (repeated[:cut], repeated[cut:]):
            collection.upsert([write(*one) for one in batch])
        assert contents(collection) == model
        assert collection.count() == len(model)

    example(store, run)


@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # each example makes its own
)
@given(steps=st.lists(WRITES | DELETION, max_size=6))
def test_writes_and_deletions_equal_those_of_a_dictionary(
    store: VectorStore, steps: list[list[Write] | tuple[list[str], int]]
) -> None:
    """Any series of upserts and deletions has the same result as in a dictionary."""

    def run(collection: Collection) -> None:
        model: dict[tuple[str, int | None], int] = {}
        for step in steps:
            if isinstance(step, tuple):
                items, before = step
                collection.delete_items(items, before)
                model = {k: r for k, r in model.items() if k[0] not in items or r >= before}
            else:
                collection.upsert([write(*one) for one in step])
                for item, section, revision in step:
                    model[item, section] = max(revision, model.get((item, section), 0))
        own = {item: revision for (item, section), revision in model.items() if section is None}
        assert {state.item: state.revision for state in collection.states()} == own
        assert contents(collection) == model

    example(store, run)


def test_an_invalid_vector_is_refused(collection: Collection) -> None:
    """Another length, infinity and NaN raise StoreError and change nothing."""
    collection.upsert([point("a")])
    for wrong in (np.ones(3, np.float32), np.full(DIMENSION, np.nan, np.float32)):
        with pytest.raises(StoreError):
            collection.upsert([point("a", wrong, revision=2)])
        with pytest.raises(StoreError):
            collection.search(wrong, 10)
    assert [state.revision for state in collection.states()] == [1]


def test_writes_survive_reopening(store: VectorStore, name: str) -> None:
    """Closing twice is allowed; a closed collection raises an error; opening finds everything."""
    collection = store.create(name, DIMENSION)
    collection.upsert([point("a", revision=3), point("a", section=0, revision=3)])
    collection.close()
    collection.close()
    with pytest.raises(StoreError, match="closed"):
        collection.count()
    with store.open(name) as again:
        assert again.count() == 2
        assert [state.revision for state in again.states()] == [3]
        again.upsert([point("a", revision=2)])
        assert [state.revision for state in again.states()] == [3]


def test_a_free_collection_is_opened_without_waiting(store: VectorStore, name: str) -> None:
    """A collection that no other process holds is opened without waiting."""
    with store.waiting(0.0), store.create(name, DIMENSION) as first, store.open(name) as second:
        first.upsert([point("a")])
        assert found(second) == {"a"}


def test_one_store_opens_a_collection_more_than_once(store: VectorStore, name: str) -> None:
    """Handles of one collection see each other's writes at once and are closed separately."""
    with store.create(name, DIMENSION) as first:
        with store.open(name) as second, store.open(name) as third:
            first.upsert([point("a")])
            second.upsert([point("b")])
            assert found(third) == {"a", "b"}
            first.close()
            assert found(second) == {"a", "b"}
        for closed in (first, second, third):
            with pytest.raises(StoreError, match="closed"):
                closed.count()
    with store.open(name) as again:
        assert again.count() == 2


def test_an_open_collection_cannot_be_created_again(
    store: VectorStore, collection: Collection
) -> None:
    """Creating it again is refused, and does not affect the open collection."""
    with pytest.raises(StoreError, match="already"):
        store.create(collection.name, DIMENSION)
    collection.upsert([point("a")])
    assert collection.count() == 1


def test_threads_share_a_collection(store: VectorStore, collection: Collection) -> None:
    """Threads that open, write, read and close concurrently lose nothing."""

    def work(thread: int) -> None:
        for number in range(10):
            item = f"{thread} {number}"
            with store.open(collection.name) as mine:
                mine.upsert([point(item)])
                assert [state.item for state in mine.states([item])] == [item]
            collection.search(direction(1), 3)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(6)))
    assert collection.count() == 60


def test_optimizing_loses_nothing(collection: Collection) -> None:
    """After optimizing, all points are still found."""
    collection.upsert([point(f"item {n}", direction(1, n)) for n in range(300)])
    collection.delete_items([f"item {n}" for n in range(200)], before=2)
    collection.optimize()
    assert len(found(collection)) == 100


def test_collections_are_listed_created_once_and_dropped(store: VectorStore, name: str) -> None:
    """A name is taken once; a missing collection cannot be opened; dropping twice is allowed."""
    with pytest.raises(StoreError, match="no collection"):
        store.open(name)
    with store.create(name, DIMENSION) as collection:
        collection.upsert([point("a")])
    assert name in store.collections()
    assert store.collections() == sorted(store.collections())
    with pytest.raises(StoreError, match="already"):
        store.create(name, DIMENSION)
    with store.open(name) as collection:
        assert collection.count() == 1
    store.drop(name)
    store.drop(name)
    assert name not in store.collections()
    with store.create(name, DIMENSION) as collection:
        assert collection.count() == 0


@pytest.mark.parametrize("wrong", ["", "../x", "a/b", ".hidden", "a\0b", "x" * 300])
def test_a_name_that_could_leave_the_store_is_refused(store: VectorStore, wrong: str) -> None:
    """Names are file names and parts of URLs; other names are refused."""
    with pytest.raises(StoreError, match="cannot name"):
        store.create(wrong, DIMENSION)
    with pytest.raises(StoreError, match="cannot name"):
        store.set_alias(wrong, "x")


def test_an_alias_switches_at_once(store: VectorStore, name: str) -> None:
    """An alias points to one collection, then to another; a failed switch changes nothing."""
    alias, second = f"alias_{name}", f"{name}2"
    store.create(name, DIMENSION).close()
    store.create(second, DIMENSION).close()
    assert store.alias(alias) is None
    store.set_alias(alias, name)
    assert store.alias(alias) == name
    store.set_alias(alias, second)
    assert store.alias(alias) == second
    with pytest.raises(StoreError, match="no collection"):
        store.set_alias(alias, f"{name}3")
    assert store.alias(alias) == second
    store.drop(name)
    assert store.alias(alias) == second


def test_an_alias_is_deleted_with_its_collection(store: VectorStore, name: str) -> None:
    """The alias stays deleted if a collection of the same name is created again."""
    alias = f"alias_{name}"
    store.create(name, DIMENSION).close()
    store.set_alias(alias, name)
    store.drop(name)
    assert store.alias(alias) is None
    store.create(name, DIMENSION).close()
    assert store.alias(alias) is None
