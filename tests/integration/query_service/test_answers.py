"""Answers of the query service over HTTP, from a real index."""

import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from starlette.datastructures import QueryParams
from starlette.testclient import TestClient

from repertory.errors import ModelError
from repertory.formats.rendering import Format
from repertory.project import defaults
from repertory.search.answer import Answer
from repertory.search.engine import SearchEngine
from repertory.search.query import Query
from repertory_query.app import create_app
from repertory_query.backend.service import Service
from tests.support.builders import write_skill
from tests.support.query_service import RunningService, metrics, problem
from tests.support.waiting import TIMEOUT_S

JSON = {"Content-Type": "application/json"}


def test_callers_are_told_the_public_url(server: RunningService) -> None:
    """A proxy with TLS asks the server over plain HTTP, but answers name the public URL."""
    public = "https://repertory.example.org"
    client = server.client(public_url=public + "/")
    assert f"{public}/mcp" in client.get("/connect", headers={"Accept": "text/html"}).text
    assert f'url: "{public}"' in client.get("/v1/runtime/tools.ts").text
    types = client.get("/v1/search", params={"q": "read", "threshold": 0, "format": "types"}).text
    for text in (types, client.get("/api", headers={"Accept": "text/html"}).text):
        assert "http://localhost" not in text


def test_a_search_has_the_agreed_form(client: TestClient) -> None:
    """The best hit comes first, and the answer says how it was made."""
    answer = client.get("/search", params={"q": "replace our API keys"}).json()
    assert answer["results"][0]["toolId"] == "project/key-rotation"
    assert (answer["mode"], answer["degraded"]) == ("hybrid", "")
    assert answer["totalResults"] == len(answer["results"])
    assert answer["indexVersion"] > 0


def test_search_settings_follow_the_configuration_without_a_restart(
    server: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTP and MCP follow; while the file is invalid, the last valid settings apply."""
    monkeypatch.setattr(defaults, "CHECK_INTERVAL_S", 0.0)
    client = server.client()
    file = server.project / "repertory.toml"
    before = file.read_text("utf-8") if file.exists() else None

    def limits() -> tuple[int, int]:
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        accept = {"Accept": "application/json, text/event-stream"}
        tools = client.post("/mcp", json=call, headers=accept).json()["result"]["tools"]
        found = client.get("/search", params={"q": "write", "threshold": 0}).json()["results"]
        return len(found), tools[0]["inputSchema"]["properties"]["limit"]["default"]

    with client:
        try:
            file.write_text("[search]\nlimit = 1\n", "utf-8")
            assert limits() == (1, 1)
            file.write_text("[search]\nlimit = 2\n", "utf-8")
            assert limits() == (2, 2)
            file.write_text("[search\n", "utf-8")
            assert limits() == (2, 2)
        finally:
            if before is None:
                file.unlink()
            else:
                file.write_text(before, "utf-8")
        assert limits() == (3, 3)


def test_a_search_takes_filters_and_limits(client: TestClient) -> None:
    """Filters can be repeated, and an unknown value of a filter is an error."""
    everything: dict[str, Any] = {"q": "write", "threshold": 0, "limit": 100}

    def found(**more: Any) -> list[str]:  # noqa: ANN401 - what httpx takes
        hits = client.get("/search", params=everything | more).json()["results"]
        return [hit["toolId"] for hit in hits]

    assert "documents/README.md" not in found(kind="skill")
    assert set(found(kind=["skill", "document"])) >= set(found(kind="document"))
    assert found(source="documents") == found(kind="document")
    for unknown in ({"server": "unknown"}, {"tag": "none"}, {"source": "skills"}):
        assert "There is no " in problem(client.get("/search", params=everything | unknown), 404)
        assert "There is no " in problem(client.get("/items", params=unknown), 404)
    assert len(found(limit=1)) == 1


def test_a_batch_is_answered_in_order(client: TestClient) -> None:
    """Each query is answered as if it were sent alone."""
    words = ["rotate keys", "release notes", "incident", "checkout"] * 10
    together = client.post("/search", json={"queries": [{"q": word} for word in words]}).json()
    alone = [client.get("/search", params={"q": word}).json() for word in words]
    assert together["answers"] == alone


def test_large_batches_leave_threads_for_others(
    server: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their searches may take seconds; a server on one core answers another search meanwhile."""
    monkeypatch.setattr("repertory_query.app.cores", lambda: 1)
    client, gate, search = server.client(), threading.Event(), SearchEngine.search

    def slow(engine: SearchEngine, query: Query) -> Answer:
        if query.text.startswith("slow"):
            assert gate.wait(TIMEOUT_S)
        return search(engine, query)

    monkeypatch.setattr(SearchEngine, "search", slow)
    batches = [{"queries": [{"q": f"slow {one} {n}"} for n in range(20)]} for one in "ab"]
    with ThreadPoolExecutor(2) as threads:
        waiting = [threads.submit(client.post, "/search", json=one) for one in batches]
        try:
            for number in range(5):
                assert client.get(f"/search?q=bread {number}").status_code == 200
            assert not any(one.done() for one in waiting)
        finally:
            gate.set()
        assert [len(one.result().json()["answers"]) for one in waiting] == [20, 20]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"q": " "}, "query is empty"),
        ({"q": "x" * 32_001}, "32,000 is the limit"),
        ({"q": "x", "limit": 0}, "limit: use a number of at least 1."),
        ({"q": "x", "limit": 101}, "limit: use a number of at most 100."),
        ({"q": "x", "limit": "many"}, "limit: use a whole number."),
        ({"q": "x", "alpha": 1.1}, "alpha: use a number of at most 1."),
        ({"q": "x", "threshold": "nan"}, "threshold"),
        ({"q": "x", "kind": "spell"}, "kind[0]: use one of 'document', 'skill'"),
        ({"q": "x", "name_weight": 0.1}, "name_weight: unknown; since release 0.2, it is called "),
        ({"q": "x", "weight": 0.1}, "weight: unknown."),
        ({}, "q: required"),
    ],
)
def test_an_invalid_query_is_refused(client: TestClient, query: dict[str, Any], words: str) -> None:
    """One invalid query in a batch refuses the whole batch."""
    assert words in problem(client.get("/search", params=query), 422)
    if "kind" in query:
        query = {"q": "x", "kinds": [query["kind"]]}
        words = words.replace("kind", "kinds")
    others = {"queries": [{"q": "fine"}, query]}
    assert words in problem(client.post("/search", json=others), 422)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b"[]", 422),
        (b'{"queries": []}', 422),
        (b'{"queries": [{"q": "x", "surprise": 1}]}', 422),
        (b'{"queries": [{"q": "\xff\xfe"}]}', 400),
        (b'{"queries": [{"q": "\\ud8"}]}', 422),
        (b'{"queries": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
        (b'{"queries": [{"q": "x", "limit": ' + b"9" * 5_000 + b"}]}", 422),
        (json.dumps({"queries": [{"q": "x"}] * 101}).encode(), 422),
    ],
)
def test_an_invalid_body_is_refused(client: TestClient, body: bytes, status: int) -> None:
    """The error is short, because it quotes nothing from the body."""
    response = client.post("/search", content=body, headers=JSON)
    assert len(problem(response, status)) < 500


def test_a_field_in_the_wrong_place_is_unknown(client: TestClient) -> None:
    """It was not renamed: the queries of a batch have a field of this name."""
    refused = problem(client.post("/search", json={"q": "x"}), 422)
    assert refused == "The request cannot be read: q: unknown."


def test_items_are_listed_in_pages(client: TestClient) -> None:
    """Pages are ordered by id, can be filtered, and give the total."""
    everything = client.get("/items").json()
    ids = [item["id"] for item in everything["items"]]
    assert ids == sorted(ids)
    assert everything["total"] == 4
    page = client.get("/items", params={"offset": 1, "limit": 2}).json()
    assert [item["id"] for item in page["items"]] == ids[1:3]
    assert page["total"] == 4
    assert client.get("/items", params={"kind": "document"}).json()["total"] == 1
    assert "offset" in problem(client.get("/items", params={"offset": -1}), 422)


def test_an_item_is_complete_and_an_unknown_item_is_an_error(client: TestClient) -> None:
    """An item has its full text; the error for an unknown id suggests a similar one."""
    item = client.get("/items/project/key-rotation").json()
    assert item["body"].startswith("Steps follow")
    assert "project/key-rotation" in problem(client.get("/items/key-rotatoin"), 404)
    assert problem(client.get("/items/%00%01/..%2F"), 404)


def test_unknown_addresses_and_methods_are_errors(client: TestClient) -> None:
    """The error points to the OpenAPI document."""
    assert "/openapi.json" in problem(client.get("/nothing"), 404)
    refused = client.delete("/search")
    assert "/openapi.json" in problem(refused, 405)
    assert refused.headers["allow"] == "GET, HEAD, POST"
    assert problem(client.get("/search/", params={"q": "x"}), 404)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/search?q=rotate&threshold=0",
        "/v1/search?q=read_fil&alpha=1",
        "/v1/explain?q=rotate&item=key-rotation",
        "/v1/explain?q=rotate&item=documents/README.md&kind=skill",
        "/v1/items",
        "/v1/items/documents/README.md",
        "/v1/stats",
        "/v1/queue",
        "/readyz",
        "/healthz",
    ],
)
def test_answers_match_the_openapi_document(client: TestClient, path: str) -> None:
    """Every key of an answer is described, and no key has an underscore."""
    document = client.get("/openapi.json").json()
    known = {one.replace("{item_id}", "documents/README.md"): one for one in document["paths"]}
    operation = document["paths"][known[path.partition("?")[0]]]["get"]
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    schema = schema.get("anyOf", [schema])[0]  # the second schema is for other formats
    answer = client.get(path).json()
    jsonschema.validate(answer, schema | {"components": _closed(document["components"])})
    assert "_" not in "".join(_keys({key: answer[key] for key in answer if key != "counters"}))


def _closed(components: Any) -> Any:  # noqa: ANN401 - JSON
    """The same schemas, with undescribed keys forbidden."""
    for schema in components["schemas"].values():
        if "properties" in schema:
            schema["additionalProperties"] = False
    return components


def _keys(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        yield from node
        for value in node.values():
            yield from _keys(value)
    elif isinstance(node, list):
        for value in node:
            yield from _keys(value)


def test_every_reference_in_the_openapi_document_has_a_target(client: TestClient) -> None:
    """Client generators follow every reference."""
    document = client.get("/openapi.json").json()

    def check(part: Any) -> None:  # noqa: ANN401 - JSON
        if isinstance(part, dict):
            if "$ref" in part:
                target = document
                for name in part["$ref"].removeprefix("#/").split("/"):
                    target = target[name]
            part = list(part.values())
        for one in part if isinstance(part, list) else ():
            check(one)

    check(document)


def test_the_openapi_document_and_its_examples_are_valid(client: TestClient) -> None:
    """Every example matches its schema."""
    document = client.get("/openapi.json").json()
    checked = 0

    def check(node: object) -> None:
        nonlocal checked
        if isinstance(node, dict):
            for example in (
                node.get("examples", []) if isinstance(node.get("examples"), list) else ()
            ):
                jsonschema.validate(example, node | {"components": document["components"]})
                checked += 1
            for value in node.values():
                check(value)
        elif isinstance(node, list):
            for value in node:
                check(value)

    check(document)
    assert checked >= 4
    paths = document["paths"]
    api = {"/v1/search", "/v1/items", "/v1/stats", "/v1/rebuild", "/v1/queue"}
    assert set(paths) >= {*api, "/readyz"}
    parameters = {one["name"]: one for one in paths["/v1/search"]["get"]["parameters"]}
    assert parameters["q"]["examples"]
    for operations in paths.values():
        for operation in operations.values():
            assert operation["summary"]
            content = operation["responses"]["default"]["content"]
            assert list(content) == ["application/problem+json"]


def test_the_openapi_document_suits_client_generators(client: TestClient) -> None:
    """Operations have unique names, answers list all fields, and fields have descriptions."""
    document = client.get("/openapi.json").json()
    ids = [one["operationId"] for path in document["paths"].values() for one in path.values()]
    assert {"search", "searchMany", "getItem", "callTool", "listJobs"} <= set(ids)
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch("[a-z][A-Za-z_]*", one) for one in ids)
    schemas = document["components"]["schemas"]
    assert schemas["Answer"]["required"] == [*schemas["Answer"]["properties"]]
    assert schemas["Item"]["required"] == [
        "id",
        "kind",
        "name",
        "source",
    ]  # its defaults are omitted
    assert schemas["Search"]["required"] == ["q"]
    assert schemas["Item"]["properties"]["body"]["description"].startswith("The whole text")
    assert "Attributes:" not in json.dumps(document)
    arguments = document["paths"]["/v1/tools/{tool_id}"]["post"]["requestBody"]["content"]
    assert arguments["application/json"]["schema"]["additionalProperties"] is True


def test_every_format_matches_its_description(client: TestClient) -> None:
    """Each answer has the described media type, and its JSON matches the schema."""
    document = client.get("/openapi.json").json()
    content = document["paths"]["/v1/search"]["get"]["responses"]["200"]["content"]
    for form in Format:
        response = client.get("/search", params={"q": "rotate keys", "format": form.value})
        media_type = response.headers["content-type"].partition(";")[0]
        schema = content[media_type]["schema"]
        sent = response.json() if media_type == "application/json" else response.text
        jsonschema.validate(sent, schema | {"components": document["components"]})
        if form in (Format.MCP, Format.ANTHROPIC, Format.OPENAI):
            jsonschema.validate(sent, document["components"]["schemas"][f"{form.title()}Answer"])


def test_only_pages_and_probes_accept_unknown_parameters(client: TestClient) -> None:
    """All other operations refuse them."""
    for target in ("/?utm_source=mail", "/healthz?probe=1", "/readyz?x=1", "/metrics?x=1"):
        assert client.get(target).status_code == 200, target
    for target in ("/items?kinds=skill", "/runtime/tools.ts?filters=x", "/explain?q=x&item=x&k=1"):
        assert ": unknown" in problem(client.get(target), 422)
    for target in ("/stats?x=1", "/v1/contents?kind=tool", "/items/x?section=y", "/functions?x=1"):
        assert ": unknown" in problem(client.get(target), 422)
    for target in ("/search?limit=1", "/v1/rebuild?now=1", "/functions/search?threshold=1"):
        body = {"queries": [{"q": "keys"}]} if target.startswith("/search") else {}
        assert ": unknown" in problem(client.post(target, json=body), 422)


def test_unknown_parameters_are_not_looked_up(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look-up scans all parameters, and an address can hold tens of thousands."""
    looked_up: list[str] = []
    getlist = QueryParams.getlist

    def noted(given: QueryParams, name: str) -> list[str]:
        looked_up.append(name)
        return getlist(given, name)

    monkeypatch.setattr(QueryParams, "getlist", noted)
    unknown = "&".join(f"x{number}" for number in range(100))
    for path in ("/", "/catalogue", "/status", "/why"):
        assert client.get(f"{path}?item=x&hours=6&{unknown}").status_code == 200, path
    assert {*looked_up} == {"item", "hours"}


def test_an_operation_without_a_body_refuses_one(client: TestClient) -> None:
    """An empty JSON object is accepted."""
    assert ": unknown" in problem(client.post("/v1/rebuild", json={"source": "docs"}), 422)
    assert "JSON object" in problem(client.post("/v1/rebuild", json=5), 422)
    assert client.post("/v1/rebuild", json={}).status_code == 202


def test_answers_are_cached_until_the_index_changes(tmp_path: Path) -> None:
    """The cache key is the whole query and the index version."""
    project = tmp_path / "project"
    write_skill(project, "key-rotation", "Rotate API keys without downtime")
    with RunningService(project) as running:
        running.scan()
        client = running.client()

        def cached() -> float:
            return metrics(client)["repertory_cached_answers_total"]

        first = client.get("/search", params={"q": "rotate", "threshold": 0}).json()
        assert client.get("/search", params={"q": "rotate", "threshold": 0}).json() == first
        assert cached() == 1
        for other in ("rotate&limit=1", "rotate&alpha=0", "rotate&kind=tool", "rotate%20"):
            client.get(f"/search?threshold=0&q={other}")
        assert cached() == 1

        write_skill(project, "log-rotation", "Rotate logs before the disk is full")
        running.scan()
        second = client.get("/search", params={"q": "rotate", "threshold": 0}).json()
        assert second["totalResults"] == first["totalResults"] + 1
        assert second["indexVersion"] > first["indexVersion"]
        assert cached() == 1


def test_a_late_answer_evicts_no_newer_one(tmp_path: Path) -> None:
    """A search that began before an index change does not clear the answers cached since."""
    project = tmp_path / "project"
    write_skill(project, "key-rotation", "Rotate API keys without downtime")
    with RunningService(project) as running:
        running.scan()
        client = running.client()
        search, change = Service.search, [lambda: write_skill(project, "logs", "Rotate logs")]

        def changed_meanwhile(self: Service, query: Query) -> Answer:
            found = search(self, query)
            while change:
                change.pop()()
                running.scan()
                client.get("/search", params={"q": "logs"})
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Service, "search", changed_meanwhile)
            client.get("/search", params={"q": "rotate"})
        client.get("/search", params={"q": "logs"})
        assert metrics(client)["repertory_cached_answers_total"] == 1


class WithoutModel(Service):
    """A server whose model fails."""

    @property
    def engine(self) -> SearchEngine:
        """The active engine without its model."""
        engine = super().engine

        def failing() -> Any:  # noqa: ANN401 - it gives none
            raise ModelError("The model is away.")

        vars(engine)["_embedding"] = failing
        return engine


def test_a_degraded_answer_is_not_cached(tmp_path: Path) -> None:
    """Keyword answers that replace a failed model are computed each time."""
    project = tmp_path / "project"
    write_skill(project, "key-rotation", "Rotate API keys without downtime")
    with RunningService(project) as running:
        running.scan()
        original_model = vars(running.live.engine)["_embedding"]
        without = WithoutModel(running.parts, running.live, running.queue)
        app = create_app(without, running.settings)
        client = TestClient(app, "http://localhost", client=("::1", 1))
        for _ in range(2):
            answer = client.get("/search", params={"q": "rotate"}).json()
            assert (answer["mode"], answer["degraded"]) == ("keyword", "The model is away.")
        found = metrics(client)
        assert found["repertory_cached_answers_total"] == 0
        assert found['repertory_searches_total{"mode": "keyword"}'] == 2
        vars(running.live.engine)["_embedding"] = original_model
