"""The behaviour of a Qdrant server that Repertory relies on, tested on a real one or the stand-in.

The other contract tests are only as strict as their server. So these tests state, in plain HTTP,
where Qdrant refuses requests or does more than expected.
"""

import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.waiting import until

Json = dict[str, Any]
SIZE = 4
POINTS = 2_000  # building a graph of them takes longer than answering a request


class Server:
    """A client of the server, with collections that only one test uses."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(
            base_url=url, timeout=60, headers={"Accept-Encoding": "identity"}, trust_env=False
        )
        self.made: list[str] = []

    def name(self) -> str:
        """An unused name for a collection or an alias."""
        return f"repertory-contract-{uuid.uuid4().hex[:12]}"

    def ask(self, method: str, path: str, body: Json | None = None) -> httpx.Response:
        """Send a request."""
        return self.http.request(method, path, json=body)

    def result(self, method: str, path: str, body: Json | None = None) -> Any:  # noqa: ANN401 - JSON
        """The result of a request, which must succeed."""
        response = self.ask(method, path, body)
        assert response.status_code == 200, response.text
        answer: Json = response.json()
        assert answer["status"] == "ok"
        return answer["result"]

    def create(self, **settings: Any) -> str:  # noqa: ANN401 - JSON
        """Make a collection; returns its path."""
        name = self.name()
        body = {"vectors": {"size": SIZE, "distance": "Cosine"}} | settings
        self.result("PUT", f"/collections/{name}", body)
        self.made.append(name)
        return f"/collections/{name}"

    def aliases(self, *actions: Json) -> httpx.Response:
        """Change aliases."""
        return self.ask("POST", "/collections/aliases", {"actions": list(actions)})

    def targets(self) -> dict[str, str]:
        """The collection of each alias."""
        found = self.result("GET", "/aliases")["aliases"]
        return {one["alias_name"]: one["collection_name"] for one in found}

    def write(self, path: str, *points: Json, **more: Any) -> httpx.Response:  # noqa: ANN401 - JSON
        """Write points, and wait until they are written."""
        return self.ask("PUT", f"{path}/points?wait=true", {"points": list(points)} | more)

    def close(self) -> None:
        """Delete the collections that were created."""
        for name in self.made:
            self.ask("DELETE", f"/collections/{name}")
        self.http.close()


@pytest.fixture
def server(qdrant_url: str) -> Iterator[Server]:
    """A client, whose collections are deleted after the test."""
    made = Server(qdrant_url)
    yield made
    made.close()


def point(number: int, **payload: Any) -> Json:  # noqa: ANN401 - JSON
    """A point with an arbitrary vector."""
    return {"id": number, "vector": [1.0, number % 7, number % 11, 1.0], "payload": payload}


def made(alias: str, path: str) -> Json:
    """The action that points an alias at a collection."""
    name = path.rpartition("/")[2]
    return {"create_alias": {"alias_name": alias, "collection_name": name}}


def filtered(key: str, *values: str) -> Json:
    """A filter for points with one of these values."""
    return {"must": [{"key": key, "match": {"any": list(values)}}]}


def test_alias_actions_are_not_atomic(server: Server) -> None:
    """If an action fails, the actions before it stay done."""
    one, alias = server.create(), server.name()
    assert server.aliases(made(alias, one)).status_code == 200
    gone = {"delete_alias": {"alias_name": alias}}
    assert server.aliases(gone, made(alias, server.name())).status_code == 404
    assert alias not in server.targets()


def test_an_alias_is_replaced_without_deleting_it(server: Server) -> None:
    """Creating an existing alias points it at the other collection."""
    one, two, alias = server.create(), server.create(), server.name()
    for path in (one, two):
        assert server.aliases(made(alias, path)).status_code == 200
    assert f"/collections/{server.targets()[alias]}" == two


def test_an_alias_cannot_have_the_name_of_a_collection(server: Server) -> None:
    """An alias with the name of a collection is refused, and is not created."""
    one, two = server.create(), server.create()
    assert server.aliases(made(one.rpartition("/")[2], two)).status_code == 409
    assert one.rpartition("/")[2] not in server.targets()


def test_aliases_are_deleted_with_their_collection(server: Server) -> None:
    """Deleting a collection deletes its aliases; deleting it again is no error."""
    path, alias = server.create(), server.name()
    assert server.aliases(made(alias, path)).status_code == 200
    assert server.result("DELETE", path) is True
    assert alias not in server.targets()
    assert server.result("DELETE", path) is False


def test_a_collection_is_created_once(server: Server) -> None:
    """Creating an existing collection is refused, also with the same settings."""
    path = server.create()
    again = {"vectors": {"size": SIZE, "distance": "Cosine"}}
    refused = server.ask("PUT", path, again)
    assert refused.status_code == 409
    assert "already exists" in refused.text


def test_a_conditional_write_replaces_only_matching_points(server: Server) -> None:
    """A write with a condition replaces only matching points, and creates missing ones."""
    path = server.create()
    assert server.write(path, point(1, revision=5), point(2, revision=1)).status_code == 200
    older = {"must_not": [{"key": "revision", "range": {"gte": 3}}]}
    written = server.write(path, *(point(n, revision=3) for n in (1, 2, 3)), update_filter=older)
    assert written.status_code == 200
    found = server.result("POST", f"{path}/points", {"ids": [1, 2, 3], "with_payload": True})
    revisions = {int(one["id"]): one["payload"]["revision"] for one in found}
    assert revisions == {1: 5, 2: 3, 3: 3}


def test_an_answer_is_compressed_on_request(server: Server) -> None:
    """A compressed answer has no Content-Length; an uncompressed one has."""
    path = server.create()
    server.write(path, *(point(number, text="w" * 200) for number in range(200)))
    page = {"limit": 200, "with_payload": True}
    for accepts in ("gzip", "identity"):
        headers = {"Accept-Encoding": accepts}
        answer = server.http.post(f"{path}/points/scroll", json=page, headers=headers)
        assert answer.status_code == 200
        is_compressed = accepts == "gzip"
        assert ("content-encoding" in answer.headers) == is_compressed
        assert ("content-length" in answer.headers) != is_compressed


def test_a_request_has_a_limited_size(server: Server) -> None:
    """A request of 32 MB is refused, and nothing is written."""
    path = server.create()
    refused = server.write(path, point(1, text="w" * (32 * 2**20)))
    assert refused.status_code in (400, 413)
    assert "larger than allowed" in refused.text
    assert server.result("POST", f"{path}/points/count", {"exact": True})["count"] == 0


@pytest.mark.parametrize(
    ("vector", "limit", "status"),
    [([1.0] * (SIZE + 1), 1, 400), ([1.0] * SIZE, 0, 422)],
    ids=["dimension", "limit"],
)
def test_an_invalid_search_is_refused(
    server: Server, vector: list[float], limit: int, status: int
) -> None:
    """A wrong dimension is refused with status 400, a wrong limit with 422."""
    path = server.create()
    body = {"query": vector, "limit": limit}
    assert server.ask("POST", f"{path}/points/query", body).status_code == status


def test_a_vector_of_another_dimension_is_refused(server: Server) -> None:
    """A point of another dimension is not written; other points of the request may be."""
    path = server.create()
    wrong = point(1) | {"vector": [1.0] * (SIZE + 1)}
    assert server.write(path, point(2), wrong).status_code == 400
    assert server.result("POST", f"{path}/points", {"ids": [1], "with_payload": True}) == []


@pytest.mark.parametrize(
    ("method", "rest", "body"),
    [
        ("GET", "", None),
        ("PUT", "/points?wait=true", {"points": [point(1)]}),
        ("POST", "/points", {"ids": [1], "with_payload": True}),
        ("POST", "/points/query", {"query": [1.0] * SIZE, "limit": 1}),
        ("POST", "/points/query/batch", {"searches": [{"query": [1.0] * SIZE, "limit": 1}]}),
        ("POST", "/points/scroll", {"limit": 1, "with_payload": True}),
        ("POST", "/points/count", {"exact": True}),
        ("POST", "/points/delete?wait=true", {"filter": filtered("a", "b")}),
    ],
)
def test_a_missing_collection_is_not_found(
    server: Server, method: str, rest: str, body: Json | None
) -> None:
    """Every request to a missing collection gets status 404."""
    refused = server.ask(method, f"/collections/{server.name()}{rest}", body)
    assert refused.status_code == 404
    assert "doesn't exist" in refused.text


def test_payload_indexes_are_listed(server: Server) -> None:
    """The description of a collection lists payload indexes with type and parameters."""
    path = server.create()
    schema = {"type": "keyword", "on_disk": True}
    body = {"field_name": "item", "field_schema": schema}
    server.result("PUT", f"{path}/index?wait=true", body)
    (found,) = server.result("GET", path)["payload_schema"].items()
    assert found[0] == "item"
    assert found[1]["data_type"] == "keyword"
    assert found[1]["params"] == schema


STRICT: list[tuple[Json, str, str, Json]] = [
    ({"upsert_max_batchsize": 1}, "PUT", "/points?wait=true", {"points": [point(1), point(2)]}),
    ({"max_query_limit": 5}, "POST", "/points/query", {"query": [1.0] * SIZE, "limit": 6}),
    ({"max_query_limit": 5}, "POST", "/points/scroll", {"limit": 6, "with_payload": True}),
    ({"max_timeout": 2}, "POST", "/points/query?timeout=3", {"query": [1.0] * SIZE, "limit": 1}),
    (
        {"search_allow_exact": False},
        "POST",
        "/points/query",
        {"query": [1.0] * SIZE, "limit": 1, "params": {"exact": True}},
    ),
    (
        {"search_max_hnsw_ef": 8},
        "POST",
        "/points/query",
        {"query": [1.0] * SIZE, "limit": 1, "params": {"hnsw_ef": 9}},
    ),
    (
        {"search_max_oversampling": 1.5},
        "POST",
        "/points/query",
        {
            "query": [1.0] * SIZE,
            "limit": 1,
            "params": {"quantization": {"oversampling": 2.0}},
        },
    ),
    (
        {"unindexed_filtering_retrieve": False},
        "POST",
        "/points/query",
        {"query": [1.0] * SIZE, "limit": 1, "filter": filtered("kind", "tool")},
    ),
    (
        {"unindexed_filtering_update": False},
        "POST",
        "/points/delete?wait=true",
        {"filter": filtered("kind", "tool")},
    ),
    (
        {"filter_max_conditions": 1},
        "POST",
        "/points/count",
        {"exact": True, "filter": {"must": 2 * filtered("kind", "tool")["must"]}},
    ),
    (
        {"condition_max_size": 1},
        "POST",
        "/points/count",
        {"exact": True, "filter": filtered("kind", "tool", "skill")},
    ),
    (
        {"max_payload_index_count": 0},
        "PUT",
        "/index?wait=true",
        {"field_name": "item", "field_schema": {"type": "keyword"}},
    ),
]


@pytest.mark.parametrize(
    ("limit", "method", "rest", "body"), STRICT, ids=[f"{next(iter(one[0]))}" for one in STRICT]
)
def test_a_strict_collection_refuses_requests_above_its_limits(
    server: Server, limit: Json, method: str, rest: str, body: Json
) -> None:
    """Strict mode refuses requests above its limits, which other collections accept."""
    assert server.ask(method, f"{server.create()}{rest}", body).status_code == 200
    strict = server.create(strict_mode_config={"enabled": True} | limit)
    refused = server.ask(method, f"{strict}{rest}", body)
    assert refused.status_code == 400
    assert "Help:" in refused.text


def test_a_collection_is_green_when_its_graph_is_built(server: Server) -> None:
    """Until its graph is built, a collection is yellow or grey; its points count at once."""
    path = server.create(
        hnsw_config={"m": 4, "full_scan_threshold": 10},
        optimizers_config={"indexing_threshold": 10},
    )
    written = server.write(path, *(point(number) for number in range(POINTS)))
    assert written.status_code == 200
    seen: list[str] = []

    def is_green() -> bool:
        found = server.result("GET", path)
        assert found["points_count"] == POINTS
        assert found["optimizer_status"] == "ok"
        seen.append(found["status"])
        return bool(found["status"] == "green")

    until(is_green)
    assert {*seen} <= {"green", "yellow", "grey"}
    assert seen[0] != "green", "the graph was there before it could be"
