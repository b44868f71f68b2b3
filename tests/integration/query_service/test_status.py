"""What the query service tells of itself over HTTP, and what it does when told."""

import asyncio
import threading
import time
from pathlib import Path

import msgspec
import pytest
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

from repertory.catalogue.item import Item, Kind
from repertory.coordination.failures import Failure
from repertory.indexing.collections import next_alias
from repertory.indexing.job import jobs
from repertory.search.engine import SearchEngine
from repertory.server_state import Lengths, Rebuild, Stats
from repertory_query.app import create_app
from repertory_query.pool import Pool
from repertory_query.service import Service
from tests.support.query_service import RunningService, metrics, problem, skill


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
        stats = msgspec.json.decode(client.get("/stats").content, type=Stats)
        assert stats.items == 0
        assert "watch service" in stats.problems[0].message
        assert metrics(client)["repertory_items"] == 0


def test_stats_tell_what_is_indexed_and_what_goes_on(client: TestClient) -> None:
    """Items, sources, the collection and its model, the queue, and the counters."""
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


def test_failed_jobs_are_shown_and_tried_again(server: RunningService, client: TestClient) -> None:
    """What is retried is taken off the list; its item was written before, so nothing changes."""
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
        assert msgspec.json.decode(begun.content, type=Rebuild).generation == 2
        deadline = time.monotonic() + 60
        configuration = begun.json()["configuration"]
        target = next_alias(running.parts.active, configuration)
        while not (running.parts.store.alias(target) or "").endswith("_g2"):
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
