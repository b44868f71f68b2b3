"""Status, metrics and maintenance of the query service over HTTP."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

from repertory.catalogue.item import Item, Kind
from repertory.coordination.deltas import MemoryDeltas
from repertory.coordination.failures import Failure
from repertory.errors import StoreError
from repertory.indexing.collection_names import next_alias
from repertory.indexing.job import Job, jobs
from repertory.live_search import verification
from repertory.search.engine import SearchEngine
from repertory.sources.source import error
from repertory.stats import Lengths, Rebuild, Stats
from repertory.watch_status import WatchStatus, report_watch
from repertory_query.app import create_app
from repertory_query.backend import served_index
from repertory_query.backend.pool import Pool
from repertory_query.backend.service import Service
from tests.support.builders import write_skill
from tests.support.query_service import RunningService, metrics, problem
from tests.support.waiting import until


def test_without_an_index_the_server_is_alive_but_not_ready(tmp_path: Path) -> None:
    """Errors name the missing index; statistics and metrics still work."""
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
        stats = msgspec.json.decode(client.get("/stats").content, type=Stats)
        assert stats.items == 0
        assert "watch service" in stats.problems[0].message
        assert metrics(client)["repertory_items"] == 0


def test_an_unreadable_configuration_is_one_problem(tmp_path: Path) -> None:
    """If it was discovered, everything else is adopted, and the report lists it as a problem."""
    (tmp_path / "project").mkdir()
    with RunningService(tmp_path / "project") as running:
        board, service = running.parts.coordination.status, running.service
        report = WatchStatus(at=1.0, configuration_error="It is no TOML.")
        report_watch(board, report)
        said = [one.message for one in service.stats().problems]
        assert said[-1] == "It is no TOML. The last valid configuration stays active."
        report_watch(board, replace(report, problems=[error("", "It is no TOML.")], errors=1))
        stats = service.stats()
        assert [one.message for one in stats.problems] == [*said[:-1], "It is no TOML."]
        assert stats.errors == len(stats.problems)


def test_a_search_waits_for_the_first_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first caller need not retry."""
    monkeypatch.setattr(served_index, "FIRST_INDEX_S", 60.0)  # for a busy machine
    write_skill(tmp_path / "project", "bread", "Bake bread")
    with RunningService(tmp_path / "project") as running, ThreadPoolExecutor(1) as thread:
        client = running.client()
        waiting = thread.submit(client.get, "/search?q=bread")
        assert client.get("/readyz").status_code == 503
        running.scan()
        response = waiting.result()
    assert response.status_code == 200, response.json()
    assert response.json()["results"][0]["toolId"] == "project/bread"


def test_stats_describe_the_index_and_the_queue(client: TestClient) -> None:
    """They have the items, sources, collection, model, queue and counters."""
    stats = msgspec.json.decode(client.get("/stats").content, type=Stats)
    assert stats.items == 4
    assert stats.model == "all-minilm-l6-v2"
    assert stats.collection.startswith(f"repertory_{stats.configuration}_")
    assert {source.name: source.items for source in stats.sources} == {
        "project": 3,
        "documents": 1,
    }
    assert stats.missing == {}
    assert stats.queue == Lengths(saves=0, builds=0, failed=0)
    assert stats.counters["written"] == 4
    assert stats.watch


def test_repairs_of_a_verification_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statistics and metrics have the time of the verification and the number of repaired items."""
    for name in ("INTERVAL_S", "MIN_AGE_S"):
        monkeypatch.setattr(verification, name, 0.1)
    write_skill(tmp_path, "bread", "Bake bread")
    with RunningService(tmp_path) as running:
        running.scan()
        client, parts = running.client(), running.parts
        item = Item(id="project/missed", kind=Kind.SKILL, name="missed", source="project")
        name = parts.store.alias(parts.active) or ""
        with monkeypatch.context() as dying, closing(parts.writer()) as writer:
            dying.setattr(MemoryDeltas, "announce", lambda *_: None)
            writer.write([Job(id="1", collection=name, revision=2**50, items=(item,))])
        assert until(lambda: client.get("/stats").json()["verification"]["repaired"]) == 1
        assert client.get("/items/project/missed").status_code == 200
        assert client.get("/stats").json()["verification"]["at"] > 0
        assert metrics(client)["repertory_repaired_items_total"] == 1


@pytest.mark.parametrize("path", ["/stats", "/metrics"])
def test_the_status_waits_for_a_silent_redis_only_once(
    server: RunningService, client: TestClient, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Each read would wait for its timeout, and Prometheus would not wait for all of them."""
    service, reads = server.service, []

    def silent() -> None:
        reads.append("one")
        raise StoreError("The Redis cannot be reached.")

    coordination = service.parts.coordination
    for part, name in (
        (coordination.status, "reports"),
        (coordination.status, "counters"),
        (coordination.failures, "count"),
        (coordination.lease, "holders"),
        (service._queue, "waiting"),
        (service._queue, "taken"),
    ):
        monkeypatch.setattr(part, name, silent)
    assert client.get(path).status_code == 200
    assert reads == ["one"]


def test_metrics_have_the_prometheus_format(client: TestClient) -> None:
    """Unknown addresses and methods create no series of their own."""
    client.get("/search", params={"q": "rotate keys"})
    for number in range(5):
        client.request(f"X{number}", f"/strange/{number}")
        client.get(f"/strange/{number}")
    found = metrics(client)
    assert found["repertory_items"] == 4
    assert found["repertory_index_version"] > 0
    assert found['repertory_searches_total{"mode": "hybrid"}'] == 1
    assert found['repertory_queue_waiting{"queue": "saves"}'] == 0
    assert found["repertory_failed_jobs"] == 0
    assert found['repertory_source_items{"source": "project"}'] == 3
    assert found['repertory_source_failing{"source": "project"}'] == 0
    assert found["repertory_watch_age_seconds"] >= 0
    assert found['repertory_events_total{"event": "written"}'] == 4
    counts = {name for name in found if name.startswith("repertory_request_duration_seconds_count")}
    assert len(counts) == 3
    openmetrics = client.get("/metrics", headers={"Accept": "application/openmetrics-text"})
    assert openmetrics.headers["content-type"].startswith("application/openmetrics-text")


def test_failed_jobs_are_listed_and_retried(server: RunningService, client: TestClient) -> None:
    """A retried job leaves the list."""
    stats = client.get("/stats").json()
    item = Item(id="project/poison", kind=Kind.SKILL, name="poison", source="project")
    failures = server.parts.coordination.failures
    for job in (*jobs(stats["collection"], 1, [], ["gone"]), *jobs("elsewhere", 1, [item], [])):
        failures.add(
            Failure(
                id=job.id,
                collection=job.collection,
                items={one.id: one.metadata_hash() for one in job.items},
                error="It cannot be embedded.",
                at=time.time(),
                attempts=3,
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


def test_retries_of_workers_are_reported(server: RunningService, client: TestClient) -> None:
    """Jobs that wait for a store are counted, and the statistics say why."""
    error = "The Qdrant server at http://qdrant:6333 cannot be reached."
    board = server.parts.coordination.status
    board.report("worker:a:1", {"error": error, "jobs": 3})
    board.report("worker:a:2", {"error": ""})
    queue = server.service._queue
    queue.taken = lambda: 2  # type: ignore[method-assign] # nothing blocks this queue's worker
    try:
        stats = msgspec.json.decode(client.get("/stats").content, type=Stats)
        assert stats.queue == Lengths(saves=0, builds=0, taken=2, failed=0)
        assert stats.troubles == [f"A worker waits: {error}"]
        assert client.get("/queue").json()["taken"] == 2
        found = metrics(client)
        assert found["repertory_queue_taken"] == 2
        assert found['repertory_worker_waits{"worker": "worker:a:1"}'] == 1
        assert found['repertory_worker_waits{"worker": "worker:a:2"}'] == 0
        page = client.get("/status", headers={"Accept": "text/html"}).text
        assert "A worker waits" in page
        assert "Taken by workers</dt><dd>2</dd>" in page
    finally:
        del queue.taken


def test_a_stopped_worker_runs_no_job(
    server: RunningService, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last report of a killed worker is kept for minutes, with what it did then."""
    server.parts.coordination.status.report("worker:a:1", {"busy": {"task": "write"}})
    assert [one["worker"] for one in client.get("/queue").json()["running"]] == ["worker:a:1"]
    monkeypatch.setattr("repertory_query.backend.service.SILENCE_S", -1.0)
    assert client.get("/queue").json()["running"] == []


def test_workers_with_different_models_are_named(
    server: RunningService, client: TestClient
) -> None:
    """A worker whose model is not loaded yet is ignored."""
    board = server.parts.coordination.status
    board.report("worker:a:1", {"model": "one"})
    board.report("worker:a:2", {"model": ""})
    assert msgspec.json.decode(client.get("/stats").content, type=Stats).troubles == []
    board.report("worker:b:1", {"model": "other"})
    stats = msgspec.json.decode(client.get("/stats").content, type=Stats)
    assert stats.troubles == [
        "The workers have different models (one, other): give all of them the same `search.model`."
    ]


def test_a_rebuild_starts_once(tmp_path: Path) -> None:
    """A second request returns the running rebuild, and searches continue meanwhile."""
    project = tmp_path / "project"
    write_skill(project, "key-rotation", "Rotate API keys without downtime")
    with RunningService(project) as running:
        running.scan()
        client = running.client()
        begun = client.post("/rebuild")
        assert begun.status_code == 202
        assert msgspec.json.decode(begun.content, type=Rebuild).generation == 2
        configuration = begun.json()["configuration"]
        target = next_alias(running.parts.active, configuration)
        until(lambda: (running.parts.store.alias(target) or "").endswith("_g2"))
        assert client.post("/rebuild").json() == begun.json()

        def is_searched() -> bool:
            assert client.get("/search", params={"q": "rotate"}).json()["totalResults"] == 1
            running.tick()
            return bool(client.get("/stats").json()["collection"].endswith("_g2"))

        until(is_searched)
        assert client.post("/rebuild").json()["generation"] == 3


def test_a_rebuild_without_a_configuration_is_refused(tmp_path: Path) -> None:
    """Without sources, it would never end."""
    with RunningService(tmp_path / "project") as running:
        assert "nothing to rebuild" in problem(running.client().post("/rebuild"), 503)
        running.tick()
        assert "nothing to rebuild" in problem(running.client().post("/rebuild"), 503)


@pytest.mark.parametrize("wrong", [{"limit": True}, {"alpha": False}, {"threshold": "0.5"}])
def test_numbers_are_not_converted_from_other_types(
    client: TestClient, wrong: dict[str, object]
) -> None:
    """Booleans and strings are refused."""
    body = {"queries": [{"q": "rotate"} | wrong]}
    assert next(iter(wrong)) in problem(client.post("/search", json=body), 422)


class Broken(Service):
    """A server whose search raises an unexpected error."""

    @property
    def engine(self) -> SearchEngine:
        """Raise an unexpected error."""
        raise RuntimeError("a secret of the inside")


def test_an_unexpected_error_is_only_logged(
    server: RunningService, caplog: pytest.LogCaptureFixture
) -> None:
    """The client gets only a reference to the log entry."""
    broken = Broken(server.parts, server.live, server.queue)
    client = TestClient(create_app(broken, server.settings), "http://localhost")
    with caplog.at_level("INFO", "repertory_query"):
        words = problem(client.get("/search", params={"q": "x"}), 500)
    assert "secret" not in words
    (failed,) = (one for one in caplog.records if one.message == "request_failed")
    assert vars(failed)["incident"] in words
    (record,) = (one for one in caplog.records if one.message == "request")
    assert (vars(record)["route"], vars(record)["status"]) == ("/search", 500)
    assert "q=x" not in str(vars(record))


def test_health_checks_are_not_logged_by_default(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    """They arrive every second and would fill the log."""
    with caplog.at_level("INFO", "repertory_query"):
        client.get("/healthz")
        client.get("/readyz")
        client.get("/stats")
    routes = [vars(one)["route"] for one in caplog.records if one.message == "request"]
    assert routes == ["/stats"]


def test_calls_are_refused_while_the_queue_is_full() -> None:
    """One call runs, one waits, and a third is refused until there is room again."""

    async def scenario() -> tuple[int, dict[str, str], list[str]]:
        pool = Pool("test", threads=1, max_waiting=1)
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


def test_an_abandoned_call_still_counts() -> None:
    """Callers that give up cannot make more calls run than the limit allows."""

    async def scenario() -> int:
        pool = Pool("test", threads=1, max_waiting=0)
        gate = threading.Event()
        given_up = asyncio.create_task(pool.run(gate.wait))
        await asyncio.sleep(0.05)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        with pytest.raises(HTTPException) as refused:
            await pool.run(gate.wait)
        gate.set()
        return refused.value.status_code

    assert asyncio.run(scenario()) == 503
