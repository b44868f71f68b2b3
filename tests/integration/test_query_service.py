"""The query service over HTTP, on a real index: answers, keys, limits, and what it tells."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import uvicorn
from fastapi import HTTPException
from prometheus_client.parser import text_string_to_metric_families
from pydantic import BaseModel
from starlette.testclient import TestClient

from repertory.catalogue.item import Item, Kind
from repertory.coordination.failures import Failure
from repertory.errors import ModelError, UsageError
from repertory.keys import Keys, Scope
from repertory.live.job import jobs
from repertory.pipeline.collections import next_alias
from repertory.search.engine import SearchEngine
from repertory_query import schemas
from repertory_query.app import create_app
from repertory_query.pool import Pool
from repertory_query.run import configuration, listening
from repertory_query.service import Service
from tests.support.query_service import RunningService, settings_of, skill

JSON = {"Content-Type": "application/json"}
ADMIN_CALLS = (("/rebuild", None), ("/queue/retry", {"ids": None}))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with nothing in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield Path.home()


@pytest.fixture(scope="module")
def server(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A server of three skills and a document."""
    project = tmp_path_factory.mktemp("served") / "project"
    skill(project, "key-rotation", "Rotate API keys without downtime")
    skill(project, "release-notes", "Write release notes from merged pull requests")
    skill(project, "postmortem", "Write up an incident: timeline, causes, actions")
    (project / "README.md").write_text("# Shop\n\nThe web shop and its checkout.\n")
    with RunningService(project) as running:
        running.look()
        yield running


@pytest.fixture
def client(server: RunningService) -> TestClient:
    """A client on the same machine, of a server without keys."""
    return server.client()


def problem(response: Any, status: int) -> str:  # noqa: ANN401 - of httpx or httpx2
    """The words of a problem, which is told as one."""
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    told = response.json()
    assert schemas.Refusal.model_validate(told).status == status
    assert told["detail"].endswith((".", "?"))
    return str(told["detail"])


def metrics(client: TestClient, **headers: str) -> dict[str, float]:
    """The values of all metrics, by name and labels."""
    text = client.get("/metrics", headers=headers).text
    return {
        f"{sample.name}{json.dumps(sample.labels) if sample.labels else ''}": sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_search_is_answered_in_the_contracts_form(client: TestClient) -> None:
    """The best first, with confidence, reason, and what is known of the answer."""
    answer = client.get("/search", params={"q": "change our API credentials"}).json()
    assert answer["results"][0]["toolId"] == "project/key-rotation"
    assert (answer["mode"], answer["degraded"]) == ("hybrid", "")
    assert answer["totalResults"] == len(answer["results"])
    assert answer["indexVersion"] > 0


def test_a_search_can_be_filtered_and_bounded(client: TestClient) -> None:
    """Filters repeat; limit, threshold and alpha are those of the command line."""
    everything: dict[str, Any] = {"q": "write", "threshold": 0, "limit": 100}

    def found(**more: Any) -> list[str]:  # noqa: ANN401 - what httpx takes
        hits = client.get("/search", params=everything | more).json()["results"]
        return [hit["id"] for hit in hits]

    assert "documents/README.md" not in found(kind="skill")
    assert set(found(kind=["skill", "document"])) >= set(found(kind="document"))
    assert found(source="documents") == found(kind="document")
    assert found(server="nobody") == found(tag="none") == []
    assert len(found(limit=1)) == 1


def test_many_searches_are_answered_in_their_order(client: TestClient) -> None:
    """Each as if it had been asked alone."""
    words = ["rotate keys", "release notes", "incident", "checkout"] * 10
    together = client.post("/search", json={"queries": [{"q": word} for word in words]}).json()
    alone = [client.get("/search", params={"q": word}).json() for word in words]
    assert together["answers"] == alone


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"q": " "}, "query is empty"),
        ({"q": "x" * 4_001}, "4,000 is the limit"),
        ({"q": "x", "limit": 0}, "limit: Input should be greater"),
        ({"q": "x", "limit": 101}, "limit: Input should be less"),
        ({"q": "x", "limit": "many"}, "limit: Input should be a valid integer"),
        ({"q": "x", "alpha": 1.1}, "alpha: Input should be less"),
        ({"q": "x", "threshold": "nan"}, "threshold"),
        ({"q": "x", "kind": "spell"}, "kind.0: Input should be 'skill'"),
        ({}, "q: Field required"),
    ],
)
def test_a_query_that_cannot_be_is_refused_in_words(
    client: TestClient, query: dict[str, Any], words: str
) -> None:
    """One by one and among others, which it refuses too."""
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
        (b'{"queries": [{"q": "\\ud800"}]}', 422),
        (b'{"queries": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
        (b'{"queries": [{"q": "x", "limit": ' + b"9" * 5_000 + b"}]}", 400),
        (json.dumps({"queries": [{"q": "x"}] * 101}).encode(), 422),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_in_words(
    client: TestClient, body: bytes, status: int
) -> None:
    """Whatever it is, and nothing of it is sent back."""
    response = client.post("/search", content=body, headers=JSON)
    assert len(problem(response, status)) < 500


def test_items_are_listed_page_by_page(client: TestClient) -> None:
    """By id, filtered, with the number of all."""
    everything = client.get("/items").json()
    ids = [item["id"] for item in everything["items"]]
    assert ids == sorted(ids)
    assert everything["total"] == 4
    page = client.get("/items", params={"offset": 1, "limit": 2}).json()
    assert [item["id"] for item in page["items"]] == ids[1:3]
    assert page["total"] == 4
    assert client.get("/items", params={"kind": "document"}).json()["total"] == 1
    assert "offset" in problem(client.get("/items", params={"offset": -1}), 422)


def test_an_item_is_shown_whole_and_an_unknown_one_said_to_be(client: TestClient) -> None:
    """With its text; a name that is nearly right is suggested."""
    item = client.get("/items/project/key-rotation").json()
    assert item["body"].startswith("Steps follow")
    assert "project/key-rotation" in problem(client.get("/items/key-rotatoin"), 404)
    assert problem(client.get("/items/%00%01/..%2F"), 404)


def test_what_is_not_there_is_said_so(client: TestClient) -> None:
    """Addresses and methods."""
    assert "/openapi.json" in problem(client.get("/nothing"), 404)
    refused = client.delete("/search")
    assert "/openapi.json" in problem(refused, 405)
    assert refused.headers["allow"] == "GET, HEAD, POST"
    assert problem(client.get("/search/", params={"q": "x"}), 404)


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/search?q=rotate&threshold=0", schemas.Answer),
        ("/search?q=read_fil&alpha=1", schemas.Answer),
        ("/explain?q=rotate&item=key-rotation", schemas.Explanation),
        ("/explain?q=rotate&item=documents/README.md&kind=skill", schemas.Explanation),
        ("/items", schemas.Items),
        ("/items/documents/README.md", schemas.Item),
        ("/stats", schemas.Stats),
        ("/queue", schemas.Queue),
        ("/readyz", schemas.Ready),
        ("/healthz", schemas.Alive),
    ],
)
def test_answers_are_what_the_description_says(
    client: TestClient, path: str, model: type[BaseModel]
) -> None:
    """They are written without the models that describe them, so this is where both meet."""
    model.model_validate_json(client.get(path).content, strict=True)


def test_the_description_is_valid_and_so_are_its_examples(client: TestClient) -> None:
    """Every example fits the schema that it stands in."""
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
    assert set(paths) >= {"/search", "/items", "/stats", "/rebuild", "/queue", "/readyz"}
    parameters = {one["name"]: one for one in paths["/search"]["get"]["parameters"]}
    assert parameters["q"]["examples"]
    for operations in paths.values():
        for operation in operations.values():
            assert operation["summary"]
            told = operation["responses"]["default"]["content"]
            assert list(told) == ["application/problem+json"]


# Who may call


def test_without_keys_anybody_reads_and_this_machine_does_all(server: RunningService) -> None:
    """From elsewhere, what changes something takes a key."""
    near, far = server.client(), server.client(address="192.0.2.7")
    assert far.get("/search", params={"q": "x"}).status_code == 200
    for path, body in ADMIN_CALLS:
        response = far.post(path, json=body)
        assert "repertory keys create" in problem(response, 403)
        assert response.headers["www-authenticate"].startswith("Bearer")
    assert near.post("/queue/retry", json={"ids": None}).json() == {"retried": 0}
    assert (
        server.client(address="::ffff:127.0.0.1").post("/queue/retry", json={"ids": []}).is_success
    )


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:7700", 200),
        ("127.0.0.1", 200),
        ("[::1]:7700", 200),
        ("query:7700", 200),
        ("repertory.example.org", 200),
        ("REPERTORY.example.org.:80", 200),
        ("attacker.example", 403),
        ("localhost.attacker.example", 403),
        ("127.0.0.1.attacker.example", 403),
        ("[::1", 403),
        ("", 403),
    ],
)
def test_without_keys_a_strangers_name_is_refused(
    server: RunningService, host: str, status: int
) -> None:
    """A web page whose name was bound to this machine's address gets nothing."""
    app = create_app(server.service, settings_of(server.project, host="repertory.example.org"))
    response = TestClient(app).get("/items", headers={"Host": host})
    assert response.status_code == status


def test_without_keys_a_page_of_another_site_is_refused(client: TestClient) -> None:
    """It may be open in a browser on this machine, where everything is allowed."""
    for origin in ("https://attacker.example", "null", "http://localhost:1", "http://[::1"):
        response = client.post("/rebuild", headers={"Origin": origin})
        assert "another site" in problem(response, 403)
        assert "www-authenticate" not in response.headers  # no key would help
    same = client.get("/items", headers={"Origin": "http://localhost"})
    assert same.status_code == 200


@pytest.mark.parametrize(
    ("site", "destination", "status"),
    [
        ("cross-site", "image", 403),
        ("same-site", "script", 403),
        ("cross-site", "iframe", 403),
        ("same-site", "empty", 403),
        ("cross-site", "document", 200),
        ("same-origin", "empty", 200),
        ("none", "document", 200),
    ],
)
def test_a_page_of_another_site_may_only_link_here(
    client: TestClient, site: str, destination: str, status: int
) -> None:
    """What it loads would make searches, though browsers name no origin for that."""
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Dest": destination}
    assert client.get("/search?q=x", headers=headers).status_code == status


def test_answers_are_kept_nowhere_and_are_for_no_other_site(client: TestClient) -> None:
    """They are for whoever has the key; a proxy or a browser might give them to the next."""
    for path in ("/search?q=x", "/items", "/stats", "/openapi.json", "/no"):
        headers = client.get(path).headers
        assert headers["cache-control"] == "no-store"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"


def test_with_keys_every_call_takes_one(server: RunningService, tmp_path: Path) -> None:
    """But for those that only say whether the server lives."""
    file = tmp_path / "keys.json"
    keys = Keys(file)
    reader = {"Authorization": f"Bearer {keys.create('reader', Scope.READ)}"}
    boss = {"Authorization": f"bearer {keys.create('boss', Scope.ADMIN)}"}
    client = server.client(host="anything.example", address="192.0.2.7", keys=str(file))

    for path in ("/search?q=x", "/items", "/stats", "/metrics", "/queue", "/openapi.json", "/no"):
        response = client.get(path)
        assert "Authorization: Bearer" in problem(response, 401)
        assert response.headers["www-authenticate"] == 'Bearer realm="repertory"'
        if path != "/no":
            assert client.get(path, headers=reader).status_code == 200
    for path in ("/healthz", "/readyz"):
        assert client.get(path).status_code == 200
    for wrong in ("Bearer rpt_wrong", "Bearer ", "Basic eDp5", "rpt", "Bearer \xff"):
        response = client.get("/items", headers={b"Authorization": wrong.encode("latin-1")})
        assert problem(response, 401)
    for path, body in ADMIN_CALLS:
        response = client.post(path, json=body, headers=reader)
        assert "scope admin" in problem(response, 403)
        assert 'scope="admin"' in response.headers["www-authenticate"]
    assert client.post("/queue/retry", json={"ids": []}, headers=boss).status_code == 200


def test_calling_a_tool_takes_the_scope_for_it(server: RunningService, tmp_path: Path) -> None:
    """To read is not enough; who may call is told what else is in the way."""
    response = server.client(address="192.0.2.7").post("/tools/any__tool", json={})
    assert "repertory keys create" in problem(response, 403)
    keys = Keys(tmp_path / "keys.json")
    client = server.client(keys=str(tmp_path / "keys.json"))
    for scope, words in ((Scope.READ, "scope call"), (Scope.CALL, "Calling tools is off here")):
        headers = {"Authorization": f"Bearer {keys.create(scope, scope)}"}
        assert words in problem(client.post("/tools/any__tool", headers=headers), 403)


def test_a_key_is_replaced_without_a_restart(server: RunningService, tmp_path: Path) -> None:
    """Both are valid for a while; the one that was revoked is not from then on."""
    file = tmp_path / "keys.json"
    client = server.client(keys=str(file))
    assert client.get("/items").status_code == 200
    keys = Keys(file)
    old, new = keys.create("old", Scope.READ), keys.create("new", Scope.READ)

    def status(token: str) -> int:
        return client.get("/items", headers={"Authorization": f"Bearer {token}"}).status_code

    assert client.get("/items").status_code == 401
    assert (status(old), status(new)) == (200, 200)
    keys.revoke("old")
    assert (status(old), status(new)) == (401, 200)


# How much may be asked


def test_requests_a_minute_are_limited_for_each_key(server: RunningService, tmp_path: Path) -> None:
    """Whoever asks too often is told when to go on; others are not held up."""
    keys = Keys(tmp_path / "keys.json")
    tokens = [keys.create(name, Scope.READ) for name in ("eager", "calm")]
    eager, calm = ({"Authorization": f"Bearer {token}"} for token in tokens)
    client = server.client(keys=str(tmp_path / "keys.json"), requests_per_minute=5)
    statuses = [client.get("/items", headers=eager).status_code for _ in range(5)]
    refused = client.get("/items", headers=eager)
    assert statuses == [200] * 5
    assert "5 requests a minute" in problem(refused, 429)
    assert 1 <= int(refused.headers["retry-after"]) <= 120
    assert client.get("/items", headers=calm).status_code == 200
    assert client.get("/healthz", headers=eager).status_code == 200


def test_requests_a_minute_are_limited_for_each_address(server: RunningService) -> None:
    """Where there are no keys."""
    app = create_app(server.service, settings_of(server.project, requests_per_minute=2))
    one, other = (TestClient(app, "http://localhost", client=(at, 1)) for at in ("::1", "::2"))
    assert [one.get("/items").status_code for _ in range(3)] == [200, 200, 429]
    assert other.get("/items").status_code == 200


def test_a_body_is_bounded_whether_or_not_it_says_its_length(client: TestClient) -> None:
    """One megabyte is read, and no byte more."""
    fits = b'{"queries": [{"q": "x"}]' + b" " * 900_000 + b"}"
    assert client.post("/search", content=fits, headers=JSON).status_code == 200
    assert "1,000,000 bytes" in problem(client.post("/search", content=b" " * 1_000_001), 413)
    sent = 0

    def chunks() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(100):
            sent += 100_000
            yield b" " * 100_000

    assert "1,000,000 bytes" in problem(client.post("/search", content=chunks()), 413)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/search?q=" + "x" * 64_500, 414),
        ("/search?q=%ff%fe", 400),
        ("/search?q=x&%ff=1", 400),
        ("/items/%ff", 400),
        ("/search?q=%00%01%1b[31m", 200),
        ("/search?q=%ef%bf%bd%f0%9f%8c%8d", 200),
        ("/search?q=x&q=y", 200),
        ("/search?" + "&".join(f"tag={number}" for number in range(200)) + "&q=x", 422),
        ("/search?q=" + "%E7%8E%8B" * 4_000, 200),
    ],
)
def test_an_address_is_bounded_and_utf_8(client: TestClient, path: str, status: int) -> None:
    """Control characters do no harm; a query of the greatest length fits."""
    response = client.get(path)
    assert response.status_code == status
    if status >= 400:
        assert problem(response, status)


# What is known already


def test_a_query_is_searched_once_until_the_index_changes(home: Path, tmp_path: Path) -> None:
    """The whole query counts; another version of the index knows nothing of the last one."""
    project = tmp_path / "project"
    skill(project, "key-rotation", "Rotate API keys without downtime")
    with RunningService(project) as running:
        running.look()
        client = running.client()

        def cached() -> float:
            return metrics(client)["repertory_cached_answers_total"]

        first = client.get("/search", params={"q": "rotate", "threshold": 0}).json()
        assert client.get("/search", params={"q": "rotate", "threshold": 0}).json() == first
        assert cached() == 1
        for other in ("rotate&limit=1", "rotate&alpha=0", "rotate&kind=tool", "rotate%20"):
            client.get(f"/search?threshold=0&q={other}")
        assert cached() == 1

        skill(project, "log-rotation", "Rotate logs before the disk is full")
        running.look()
        second = client.get("/search", params={"q": "rotate", "threshold": 0}).json()
        assert second["totalResults"] == first["totalResults"] + 1
        assert second["indexVersion"] > first["indexVersion"]
        assert cached() == 1


class WithoutModel(Service):
    """A server whose model fails."""

    @property
    def engine(self) -> SearchEngine:
        """The engine in force, but for the model."""
        engine = super().engine

        def failing() -> Any:  # noqa: ANN401 - it gives none
            raise ModelError("The model is away.")

        vars(engine)["_embedding"] = failing
        return engine


def test_an_answer_that_lacks_something_is_not_kept(home: Path, tmp_path: Path) -> None:
    """Words answer while the model is away; as soon as it is back, so does the meaning."""
    project = tmp_path / "project"
    skill(project, "key-rotation", "Rotate API keys without downtime")
    with RunningService(project) as running:
        running.look()
        whole = vars(running.live.engine)["_embedding"]
        without = WithoutModel(running.parts, running.live, running.parts.in_process_queue())
        app = create_app(without, running.settings)
        client = TestClient(app, "http://localhost", client=("::1", 1))
        for _ in range(2):
            answer = client.get("/search", params={"q": "rotate"}).json()
            assert (answer["mode"], answer["degraded"]) == ("keyword", "The model is away.")
        found = metrics(client)
        assert found["repertory_cached_answers_total"] == 0
        assert found['repertory_searches_total{"mode": "keyword"}'] == 2
        vars(running.live.engine)["_embedding"] = whole


# What it says of itself


def test_before_there_is_an_index_it_says_what_is_missing(home: Path, tmp_path: Path) -> None:
    """It lives, is not ready, and tells why in words; nothing fails otherwise."""
    (tmp_path / "project").mkdir()
    with RunningService(tmp_path / "project") as running:
        client = running.client()
        assert client.get("/healthz").status_code == 200
        ready = client.get("/readyz")
        assert ready.status_code == 503
        assert ready.json()["ready"] is False
        assert "index" in ready.json()["missing"]
        for path in ("/search?q=x", "/items", "/items/x"):
            response = client.get(path)
            assert "index" in problem(response, 503)
            assert int(response.headers["retry-after"]) >= 1
        assert "watch service" in problem(client.post("/rebuild"), 503)
        stats = schemas.Stats.model_validate(client.get("/stats").json())
        assert stats.items == 0
        assert "watch service" in stats.problems[0].message
        assert metrics(client)["repertory_items"] == 0


def test_stats_tell_what_is_indexed_and_what_goes_on(client: TestClient) -> None:
    """Items, sources, the collection and its model, the queue, and the counters."""
    stats = schemas.Stats.model_validate(client.get("/stats").json())
    assert stats.items == 4
    assert stats.model == "all-minilm-l6-v2"
    assert stats.collection.startswith(f"repertory_{stats.configuration}_")
    assert {source.name: source.items for source in stats.sources} == {
        "project": 3,
        "documents": 1,
    }
    assert stats.missing == {}
    assert stats.queue == schemas.Lengths(saves=0, builds=0, failed=0)
    assert stats.counters["written"] == 4
    assert stats.watch


def test_metrics_can_be_read_by_prometheus(client: TestClient) -> None:
    """In its format; addresses and methods that are not ours make no series of their own."""
    client.get("/search", params={"q": "rotate keys"})
    for number in range(5):
        client.request(f"X{number}", f"/strange/{number}")
        client.get(f"/strange/{number}")
    found = metrics(client)
    assert found["repertory_items"] == 4
    assert found["repertory_index_version"] > 0
    assert found['repertory_searches_total{"mode": "hybrid"}'] == 1
    assert found['repertory_queue_waiting{"lane": "saves"}'] == 0
    assert found["repertory_failed_jobs"] == 0
    assert found['repertory_source_items{"source": "project"}'] == 3
    assert found['repertory_source_failing{"source": "project"}'] == 0
    assert found["repertory_watch_age_seconds"] >= 0
    assert found['repertory_events_total{"event": "written"}'] == 4
    counts = {name for name in found if name.startswith("repertory_request_duration_seconds_count")}
    assert len(counts) == 3
    openmetrics = client.get("/metrics", headers={"Accept": "application/openmetrics-text"})
    assert openmetrics.headers["content-type"].startswith("application/openmetrics-text")


def test_failed_jobs_are_shown_and_tried_again(server: RunningService, client: TestClient) -> None:
    """What is retried is taken off the list; its item was written before, so nothing changes."""
    stats = client.get("/stats").json()
    item = Item(id="project/poison", kind=Kind.SKILL, name="poison", source="project")
    failures = server.parts.adapters.failures
    for job in (*jobs(stats["collection"], 1, [], ["gone"]), *jobs("elsewhere", 1, [item], [])):
        failures.add(
            Failure(
                id=job.id,
                collection=job.collection,
                items={one.id: one.metadata_hash() for one in job.items},
                error="It cannot be embedded.",
                at=time.time(),
                attempts=3,
                job=job.plain(),
            )
        )
    failed = client.get("/queue").json()["failed"]
    assert [one["items"] for one in failed] == [[], ["project/poison"]]
    assert failed[1]["error"] == "It cannot be embedded."
    assert client.get("/stats").json()["queue"]["failed"] == 2
    retried = client.post("/queue/retry", json={"ids": [failed[1]["id"], "unknown"]})
    assert retried.json() == {"retried": 1}
    assert client.post("/queue/retry", json={"ids": None}).json() == {"retried": 1}
    assert client.get("/queue").json()["failed"] == []


def test_a_rebuild_is_begun_once(home: Path, tmp_path: Path) -> None:
    """Asked again while it is under way, the same one is answered; search goes on meanwhile."""
    project = tmp_path / "project"
    skill(project, "key-rotation", "Rotate API keys without downtime")
    with RunningService(project) as running:
        running.look()
        client = running.client()
        begun = client.post("/rebuild")
        assert begun.status_code == 202
        assert schemas.Rebuild.model_validate(begun.json()).generation == 2
        deadline = time.monotonic() + 60
        configuration = begun.json()["configuration"]
        while not (running.parts.store.alias(next_alias(configuration)) or "").endswith("_g2"):
            assert time.monotonic() < deadline
        assert client.post("/rebuild").json() == begun.json()
        while not client.get("/stats").json()["collection"].endswith("_g2"):
            assert time.monotonic() < deadline
            assert client.get("/search", params={"q": "rotate"}).json()["totalResults"] == 1
            running.tick()
        assert client.post("/rebuild").json()["generation"] == 3


def test_nothing_is_rebuilt_before_the_watch_service_has_a_configuration(
    home: Path, tmp_path: Path
) -> None:
    """It is said in words; what is built of no sources would be there for ever."""
    with RunningService(tmp_path / "project") as running:
        assert "nothing to rebuild" in problem(running.client().post("/rebuild"), 503)
        running.tick()
        assert "nothing to rebuild" in problem(running.client().post("/rebuild"), 503)


@pytest.mark.parametrize("wrong", [{"limit": True}, {"alpha": False}, {"threshold": "0.5"}])
def test_a_number_is_a_number(client: TestClient, wrong: dict[str, object]) -> None:
    """And nothing that could be taken for one."""
    body = {"queries": [{"q": "rotate"} | wrong]}
    assert next(iter(wrong)) in problem(client.post("/search", json=body), 422)


class Broken(Service):
    """A server with a fault."""

    @property
    def engine(self) -> SearchEngine:
        """Nothing: it fails."""
        raise RuntimeError("a secret of the inside")


def test_what_nobody_foresaw_is_told_to_the_log_alone(
    server: RunningService, caplog: pytest.LogCaptureFixture
) -> None:
    """The client learns where to look it up."""
    broken = Broken(server.parts, server.live, server.parts.in_process_queue())
    client = TestClient(create_app(broken, server.settings), "http://localhost")
    with caplog.at_level("INFO", "repertory_query"):
        words = problem(client.get("/search", params={"q": "x"}), 500)
    assert "secret" not in words
    (failed,) = (one for one in caplog.records if one.message == "request_failed")
    assert vars(failed)["incident"] in words
    (told,) = (one for one in caplog.records if one.message == "request")
    assert (vars(told)["route"], vars(told)["status"]) == ("/search", 500)
    assert "q=x" not in str(vars(told))


def test_questions_of_machines_are_not_logged_by_default(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever asks every second whether the server lives would fill the log."""
    with caplog.at_level("INFO", "repertory_query"):
        client.get("/healthz")
        client.get("/readyz")
        client.get("/stats")
    told = [vars(one)["route"] for one in caplog.records if one.message == "request"]
    assert told == ["/stats"]


def test_calls_beyond_what_can_wait_are_refused_and_the_loop_goes_on() -> None:
    """One runs, one waits, the third is told to come again; then there is room once more."""

    async def scenario() -> tuple[int, dict[str, str], list[str]]:
        pool = Pool("test", threads=1, most_waiting=1)
        gate = threading.Event()

        def wait() -> str:
            gate.wait()
            return "done"

        first, second = asyncio.create_task(pool.run(wait)), asyncio.create_task(pool.run(wait))
        await asyncio.sleep(0)
        with pytest.raises(HTTPException) as refused:
            await pool.run(wait)
        gate.set()
        done = [await first, await second, await pool.run(wait)]
        return refused.value.status_code, dict(refused.value.headers or {}), done

    status, headers, done = asyncio.run(scenario())
    assert (status, headers) == (503, {"Retry-After": "1"})
    assert done == ["done"] * 3


# On a real socket


@pytest.fixture(scope="module")
def address(server: RunningService) -> Iterator[tuple[str, int]]:
    """Where the service listens, as it is run."""
    listener = listening(settings_of(server.project, port=0))
    running = uvicorn.Server(configuration(create_app(server.service, server.settings)))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
    thread.start()
    yield listener.getsockname()
    running.should_exit = True
    thread.join()
    listener.close()


def said(address: tuple[str, int], *parts: bytes) -> bytes:
    """What the server says to some bytes, until it says no more."""
    answer = b""
    with socket.create_connection(address, timeout=30) as connection:
        # It may hang up while it is still being talked to.
        with contextlib.suppress(ConnectionError):
            for part in parts:
                connection.sendall(part)
        with contextlib.suppress(ConnectionError):
            while chunk := connection.recv(65_536):
                answer += chunk
    return answer


def test_ten_megabytes_are_refused_without_being_read(address: tuple[str, int]) -> None:
    """The answer is there although the body never comes."""
    head = b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n\r\n"
    answer = said(address, head)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"application/problem+json" in answer


def test_ten_megabytes_in_chunks_are_read_as_far_as_allowed(address: tuple[str, int]) -> None:
    """The server hangs up long before the end."""
    head = b"POST /search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"186a0\r\n" + b" " * 100_000 + b"\r\n"
    assert said(address, head, *[chunk] * 11).startswith(b"HTTP/1.1 413")


def test_an_address_of_ten_megabytes_is_refused(address: tuple[str, int]) -> None:
    """Whether or not there is an end of it."""
    answer = said(address, b"GET /search?q=" + b"x" * 10_000_000)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert b"200" in said(address, b"GET /healthz HTTP/1.0\r\n\r\n")


@pytest.mark.parametrize(
    "request_bytes",
    [b"\xff\xfe\x00\r\n\r\n", b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET\r\n\r\n"],
)
def test_what_is_not_http_is_refused(address: tuple[str, int], request_bytes: bytes) -> None:
    """And does the server no harm."""
    assert said(address, request_bytes).startswith(b"HTTP/1.1 400")
    assert b"200" in said(address, b"GET /healthz HTTP/1.0\r\n\r\n")


def test_a_body_of_two_lengths_is_refused(address: tuple[str, int]) -> None:
    """A proxy before it may have taken the rest for another request."""
    head = b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
    answer = said(address, head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /stats HTTP/1.1")
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_a_head_is_a_get_without_its_body(address: tuple[str, int]) -> None:
    """As those who only ask whether a server is there expect it."""
    head, _, body = said(
        address, b"HEAD /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    ).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert (b"content-length: 14" in head, body) == (True, b"")


@pytest.mark.parametrize(
    "some",
    [
        b"",
        b"GET /hea",
        b"POST /search HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{",
    ],
)
def test_a_request_that_does_not_come_is_not_waited_for(
    address: tuple[str, int], some: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a few thousand of them would be all that the server can hold."""
    monkeypatch.setattr("repertory_query.connection.PATIENCE", 0.1)
    said(address, some)  # fails after its own patience if the server does not hang up


def test_answers_that_are_not_taken_are_not_kept(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server hangs up on who asks and does not read, for each answer takes its memory."""
    monkeypatch.setattr("repertory_query.connection.PATIENCE", 0.1)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.settimeout(30)
        connection.connect(address)
        asked = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with pytest.raises(ConnectionError):
            connection.sendall(asked * 200_000)


def test_an_answer_is_not_held_back_for_the_client_to_acknowledge_its_head(tmp_path: Path) -> None:
    """Connections send at once what is written to them."""
    with listening(settings_of(tmp_path, port=0)) as listener:
        client = socket.create_connection(listener.getsockname())
        connection, _ = listener.accept()
        with client, connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_an_address_that_is_taken_is_said_so(address: tuple[str, int], tmp_path: Path) -> None:
    """With what to do about it."""
    with pytest.raises(UsageError, match=f"port {address[1]}.*--port"):
        listening(settings_of(tmp_path, port=address[1]))
    with pytest.raises(UsageError, match=r"no\.such\.host\.invalid"):
        listening(settings_of(tmp_path, host="no.such.host.invalid"))


SERVER = """
import logging, signal, sys
from pathlib import Path
from repertory_query.app import create_app
from repertory_query.run import configuration, listening, serve
from tests.support.query_service import RunningService, settings_of
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s %(port)s")
logging.getLogger("uvicorn").setLevel(logging.ERROR)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
project = Path(sys.argv[1])
try:
    with RunningService(project) as running, listening(settings_of(project, port=0)) as listener:
        serve(create_app(running.service, running.settings), listener)
finally:
    print("left", flush=True)
"""


def test_sigterm_ends_it_in_order(tmp_path: Path) -> None:
    """Requests under way are finished, whoever called is returned to, the exit code is 0."""
    (tmp_path / "project").mkdir()
    environment = os.environ | {"HOME": str(tmp_path)}
    command = [sys.executable, "-c", SERVER, str(tmp_path / "project")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
    assert process.stdout
    event, port = process.stdout.readline().split()
    assert event == "serving"
    assert b"200" in said(("127.0.0.1", int(port)), b"GET /healthz HTTP/1.0\r\n\r\n")
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert output.splitlines()[-1] == "left"
    assert process.returncode == 0
