"""Celery workers as a team runs them: real processes, a real Redis, and Qdrant over HTTP."""

import contextlib
import itertools
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from kombu import Connection

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.views import RECIPE
from repertory.compose import Parts
from repertory.coordination.failures import Failure
from repertory.errors import ConfigurationError
from repertory.indexing.attempts import MAX_ATTEMPTS
from repertory.indexing.celery_queue import CeleryQueue
from repertory.indexing.collection_names import (
    configuration_of,
    generation_of,
    next_alias,
    recipe_of,
)
from repertory.indexing.job import Job, QueueName
from repertory.settings import load
from repertory_worker.app import run
from repertory_worker.consumer import RETRY_INTERVAL_S, Consumer
from repertory_worker.process import MAX_RETURNS
from tests.support.model_folders import write_model
from tests.support.qdrant import QdrantProcess
from tests.support.redis_server import RedisProcess
from tests.support.waiting import until
from tests.support.worker import WorkerProcess

POISON = "poison"  # the model of these tests fails on this word
SHORT = 2.0  # seconds: a lease for tests that wait until it expires

_numbers = itertools.count(1)


class Team:
    """A Redis, a Qdrant, a collection, and workers that a test starts.

    Attributes:
        collection: The name of a collection that is new for each test.
    """

    def __init__(self, folder: Path, redis_process: RedisProcess, qdrant: QdrantProcess) -> None:
        self._folder = folder
        self.redis = redis_process
        self.qdrant = qdrant
        model = write_model(folder / "encoder")
        tokenizer = json.loads((model / "tokenizer.json").read_text("utf-8"))
        tokenizer["model"]["vocab"][POISON] = 10_000  # beyond the model's table of vectors
        (model / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
        self._environment = {
            "REPERTORY_DATA_DIR": str(folder / "data"),
            "REPERTORY_REDIS_URL": redis_process.url,
            "REPERTORY_QDRANT_URL": qdrant.url,
            "REPERTORY_SEARCH_MODEL": str(model),
        }
        self.parts = Parts(load({}, folder, self._environment), folder)
        self.queue = CeleryQueue(redis_process.url)
        self.writer = self.parts.writer()
        self.collection = ""

    def begin(self) -> None:
        """Start a test with empty queues and a new collection."""
        self.redis.flush()
        configuration = f"{next(_numbers):016x}"
        self.writer.begin(configuration)
        self.collection = self.parts.store.alias(next_alias(self.parts.active, configuration)) or ""

    def worker(self, *, lease: float = 20.0, recipe: int = 0, model: str = "") -> WorkerProcess:
        """A worker that is not started yet; see ``WorkerProcess``."""
        folder = self._folder / f"worker-{next(_numbers)}"
        other = {"REPERTORY_SEARCH_MODEL": model} if model else {}
        return WorkerProcess(folder, self._environment | other, lease=lease, recipe=recipe)

    def submit(self, *names: str, queue_name: QueueName = QueueName.SAVES) -> Job:
        """Submit a job that writes items of these names, and return it."""
        number = next(_numbers)
        items = tuple(
            Item(id=f"s/{name}", kind=Kind.SKILL, name=name, source="s", description=f"Of {name}.")
            for name in names
        )
        job = Job(id=f"job-{number}", collection=self.collection, revision=number, items=items)
        self.queue.submit(job, queue_name)
        return job

    def send(self, task: str, *arguments: object) -> None:
        """Send a task with any arguments, as another release or a foreign program might."""
        app = self.queue._app  # the queue's own methods send only valid tasks
        app.send_task(f"repertory.{task}", args=arguments, queue="repertory:saves")

    def errors(self) -> list[str]:
        """The reasons why the workers cannot work now."""
        reports = self.parts.coordination.status.reports().values()
        return [str(report["error"]) for report in reports]

    def indexed(self) -> set[str]:
        """The names of the items in the collection."""
        with self.parts.store.open(self.collection) as collection:
            return {state.item.removeprefix("s/") for state in collection.states()}

    def wait_until_indexed(self, *names: str) -> None:
        """Wait until the collection holds items of these names."""
        until(lambda: self.indexed().issuperset(names))

    def storing(self, worker: WorkerProcess) -> int:
        """Have a worker index an item and store a snapshot; return that process's id."""
        self.submit("a")
        self.wait_until_indexed("a")
        self.queue.keep_keywords(self.collection)
        (started,) = worker.wait_for("snapshot_started")
        return int(started["pid"])

    def wait_for_failures(self) -> list[Failure]:
        """Wait until a job has failed."""
        return list(until(self.parts.coordination.failures.list))


@pytest.fixture(scope="module")
def _team(tmp_path_factory: pytest.TempPathFactory, redis_process: RedisProcess) -> Iterator[Team]:
    with QdrantProcess() as qdrant:
        yield Team(tmp_path_factory.mktemp("team"), redis_process, qdrant)


@pytest.fixture
def team(_team: Team) -> Team:
    """A team with empty queues."""
    _team.begin()
    return _team


def test_a_job_is_done_and_announced(team: Team) -> None:
    """A worker writes items, announces them, reports its state, and stops on request."""
    deltas = team.parts.coordination.deltas
    before = deltas.position(team.collection)
    with team.worker() as worker:
        job = team.submit("a", "b")
        worker.wait_for("jobs_done")
        delta = deltas.since(team.collection, before)
        assert delta.hashes == {item.id: item.metadata_hash() for item in job.items}
        assert not delta.gap
        assert team.indexed() == {"a", "b"}
        assert worker.terminate() == 0
    ((who, report),) = team.parts.coordination.status.reports().items()
    assert who.startswith("worker:")
    assert report["device"] == "cpu"
    assert report["model"].startswith("encoder")
    assert report["queues"] == ["saves", "maintenance", "builds", "snapshots"]
    assert team.queue.taken() == 0


def test_a_worker_says_why_it_has_no_model(team: Team) -> None:
    """Without weights and a network it indexes only keywords, and `stats` has the reason."""
    worker = team.worker(model="minishlab/potion-base-8M")
    worker.start()
    try:
        (said, *_) = worker.wait_for("model_unavailable")
        assert "Only keywords are indexed: The weights of minishlab" in said["error"]
        until(lambda: said["error"] in team.errors())
    finally:
        worker.kill()


def test_saves_precede_builds_and_waiting_jobs_share_a_batch(
    team: Team,
) -> None:
    """Ten saves are one batch of texts and come before the builds that were queued earlier."""
    for number in range(2):
        team.submit(*(f"build-{number}-{item}" for item in range(32)), queue_name=QueueName.BUILDS)
    saved = [f"save-{number}" for number in range(10)]
    for name in saved:
        team.submit(name)
    assert team.queue.waiting() == {"saves": 10, "builds": 2}
    with team.worker() as worker:
        done = worker.wait_for("jobs_done", 3)
        assert [(one["queue"], one["jobs"]) for one in done] == [
            ("saves", 10),
            ("builds", 1),
            ("builds", 1),
        ]
        assert [one["texts"] for one in worker.events("texts_embedded")] == [10, 32, 32]
        worker.terminate()
    assert team.indexed() >= set(saved)
    assert team.queue.waiting() == {"saves": 0, "builds": 0}
    assert team.queue.taken() == 0


def test_no_save_waits_for_a_snapshot(team: Team) -> None:
    """A snapshot of a large collection takes minutes, so a separate process stores it."""
    snapshots = team.parts.coordination.snapshots
    with team.worker() as worker:
        process = team.storing(worker)
        os.kill(process, signal.SIGSTOP)
        team.submit("b")
        team.wait_until_indexed("a", "b")
        reports = team.parts.coordination.status.reports
        until(lambda: any("keep keywords" in str(one["busy"]) for one in reports().values()))
        os.kill(process, signal.SIGCONT)
        (ended,) = worker.wait_for("snapshot_ended")
        assert ended["code"] == 0
        assert worker.terminate() == 0
    assert snapshots.load(team.collection)


def test_a_worker_survives_a_killed_snapshot_process(team: Team) -> None:
    """The system may kill the process for its memory; the next request succeeds."""
    with team.worker() as worker:
        os.kill(team.storing(worker), signal.SIGKILL)
        (ended,) = worker.wait_for("snapshot_ended")
        assert ended["code"] == -signal.SIGKILL
        team.submit("b")
        team.wait_until_indexed("b")
        team.queue.keep_keywords(team.collection)
        worker.wait_for("snapshot_ended", 2)


def test_a_process_killed_during_a_job_is_replaced(team: Team) -> None:
    """The job returns to the queue as soon as the worker notices."""
    with team.worker() as worker:
        team.qdrant.kill()
        team.submit("a")
        worker.wait_for("store_unavailable")
        worker.kill_child()
        team.qdrant.restart()
        worker.wait_for("jobs_done")
    assert team.indexed() == {"a"}


def test_jobs_of_a_killed_process_come_back(team: Team) -> None:
    """This includes jobs gathered into a batch, which Celery does not know about."""
    names = ["a", "b", "c"]
    for name in names:
        team.submit(name)
    team.qdrant.kill()
    with team.worker(lease=SHORT) as worker:
        worker.wait_for("store_unavailable")
        assert team.queue.waiting()["saves"] == 0
        assert team.queue.taken() == len(names)
        worker.kill_child()
        team.qdrant.restart()
        team.wait_until_indexed(*names)
        until(lambda: team.queue.taken() == 0)


def test_jobs_of_a_killed_worker_are_done_by_another(team: Team) -> None:
    """They return to the queue when their lease expires."""
    names = ["a", "b", "c"]
    for name in names:
        team.submit(name)
    team.qdrant.kill()
    with team.worker(lease=SHORT) as worker:
        worker.wait_for("store_unavailable")
        assert team.queue.taken() == len(names)
        worker.kill()
    team.qdrant.restart()
    assert team.indexed() == set()
    with team.worker(lease=SHORT):
        team.wait_until_indexed(*names)


def test_a_rebuild_that_a_killed_worker_was_starting_is_started_by_another(team: Team) -> None:
    """A rebuild is requested only once, so its request returns to the queue as jobs do."""
    before = team.collection
    alias = next_alias(team.parts.active, configuration_of(before))
    team.qdrant.kill()
    with team.worker(lease=SHORT) as worker:
        team.queue.begin(configuration_of(before), generation_of(before) + 1)
        worker.wait_for("store_unavailable")
        worker.kill()
    team.qdrant.restart()
    with team.worker(lease=SHORT):
        until(lambda: team.parts.store.alias(alias) not in (None, before))


def test_a_rebuild_whose_message_is_lost_begins_all_the_same(team: Team) -> None:
    """A worker may be killed between taking the message and storing that it did."""
    before = team.collection
    alias = next_alias(team.parts.active, configuration_of(before))
    team.queue.begin(configuration_of(before), generation_of(before) + 1)
    with redis.Redis.from_url(team.redis.url) as client:
        assert client.brpop("repertory:maintenance")
    with team.worker():
        until(lambda: team.parts.store.alias(alias) not in (None, before))


def test_an_outage_is_visible(team: Team) -> None:
    """Retried jobs are counted all the time, and the worker reports why it waits."""
    with team.worker() as worker:
        until(lambda: team.errors() == [""])
        team.qdrant.kill()
        for name in ("a", "b"):
            team.submit(name)
        worker.wait_for("task_returned")
        until(lambda: team.queue.waiting()["saves"] + team.queue.taken() == 2)
        until(lambda: "cannot be reached" in "".join(team.errors()))
        team.qdrant.restart()
        team.wait_until_indexed("a", "b")
        until(lambda: team.queue.taken() == 0 and team.errors() == [""])


def test_an_unavailable_store_fails_no_job(team: Team) -> None:
    """Jobs return to the queue until the store is back; retries that fail alike are not logged."""
    with team.worker() as worker:
        team.qdrant.kill()
        team.submit("a")
        worker.wait_for("task_returned")
        said = [one["error"] for one in worker.events("store_unavailable")]
        assert len(said) == len(set(said)) > 0
        team.submit("b")
        team.qdrant.restart()
        team.wait_until_indexed("a", "b")
    assert team.parts.coordination.failures.list() == []


def test_a_poison_item_fails_alone(team: Team) -> None:
    """The other items of its job are indexed at once; it is retried, and then fails."""
    failures = team.parts.coordination.failures
    with team.worker() as worker:
        team.submit("good", POISON, "fine")
        team.wait_until_indexed("good", "fine")
        (failure,) = team.wait_for_failures()
        assert failure.items.keys() == {f"s/{POISON}"}
        assert failure.attempts == MAX_ATTEMPTS
        assert len(worker.events("job_retried")) == MAX_ATTEMPTS - 1
    assert failures.failed_items() == {team.collection: dict(failure.items)}


def test_an_unreadable_job_fails(team: Team) -> None:
    """A job of an older version or a foreign message is listed as failed, without items."""
    with team.worker():
        older = Job(id="older", collection=team.collection, revision=1, version=0)
        strange = {**older.plain(), "id": "half a \ud800 character", "version": 1}
        for text in (json.dumps(older.plain()), "no job", json.dumps(strange)):
            team.send("write", text, "saves")
        team.submit("a")
        team.wait_until_indexed("a")
    failures = team.parts.coordination.failures
    listed = {one.id: one for one in failures.list()}
    assert "cannot be read" in listed.pop("half a  character").error
    first, second = sorted(listed.values(), key=lambda one: one.id != "older")
    assert (first.id, first.collection, first.items) == ("older", team.collection, {})
    assert "version 0" in first.error
    assert (second.collection, second.items) == ("", {})
    assert failures.failed_items() == {}


def test_jobs_of_a_newer_release_are_left_to_its_workers(team: Team) -> None:
    """An older worker puts the jobs of a newer release back, and reports why it waits."""
    older = team.worker(recipe=-1)
    with older:
        for name in ("a", "b", "c"):
            team.submit(name)
        older.wait_for("task_of_newer_release", 3)
        until(lambda: team.queue.waiting()["saves"] + team.queue.taken() == 3)
        until(lambda: any("newer" in error for error in team.errors()))
        assert team.indexed() == set()
        with team.worker():
            team.wait_until_indexed("a", "b", "c")
    assert team.parts.coordination.failures.list() == []


def test_a_job_that_no_worker_can_do_is_dropped(team: Team) -> None:
    """After a downgrade, jobs of the newer release are put back a few times and then dropped."""
    newer = Job(id="newer", collection=team.collection, revision=1, version=99)
    team.send("write", json.dumps(newer.plain()), "saves")
    for _ in range(MAX_RETURNS - 1):
        team.parts.coordination.failures.attempt("newer:returned")
    with team.worker() as worker:
        worker.wait_for("task_of_newer_release", 2)
        team.submit("a")
        team.wait_until_indexed("a")
        until(lambda: team.queue.waiting()["saves"] + team.queue.taken() == 0)
        assert len(worker.events("task_of_newer_release")) == 2
    assert team.parts.coordination.failures.list() == []


def test_only_workers_of_the_same_release_start_a_collection(team: Team) -> None:
    """A request names its recipe: an older worker puts it back, and a newer one drops it."""
    configuration = f"{next(_numbers):016x}"
    alias = next_alias(team.parts.active, configuration)
    with team.worker(recipe=-1) as older, team.worker(recipe=1) as newer:
        for _ in range(2):
            team.queue.begin(configuration)
        until(lambda: team.queue.taken() == 0 or older.events("task_of_newer_release"))
        assert team.parts.store.alias(alias) is None
        newer.kill()
        team.queue.begin(configuration)
        with team.worker():
            until(lambda: team.parts.store.alias(alias))
            older.kill()
    assert recipe_of(team.parts.store.alias(alias) or "") == RECIPE


@pytest.mark.parametrize("runs", [False, True])
def test_a_worker_survives_a_full_redis(team: Team, *, runs: bool) -> None:
    """A worker that starts or takes a job then must survive, since it empties the queue."""
    with contextlib.ExitStack() as stack:
        worker = team.worker()
        stack.callback(worker.kill)
        if runs:
            stack.enter_context(worker)
            os.killpg(worker.pid, signal.SIGSTOP)
            team.submit("a")
        with redis.Redis.from_url(team.redis.url) as client:
            client.config_set("maxmemory", 1)
            try:
                os.killpg(worker.pid, signal.SIGCONT) if runs else worker.start()
                (said,) = worker.wait_for("queue_unavailable")
                assert "used memory > 'maxmemory'" in said["error"]
            finally:
                client.config_set("maxmemory", 0)
        team.submit("b")
        team.wait_until_indexed("b")
        assert worker.terminate() == 0
        assert len(worker.events("queue_available")) == 1


def test_a_full_redis_causes_no_tracebacks_of_a_worker_that_waits(team: Team) -> None:
    """Kombu checks for old messages at intervals, for which it sets a key."""
    with team.worker(lease=SHORT) as worker, redis.Redis.from_url(team.redis.url) as client:
        client.config_set("maxmemory", 1)

        def refused() -> int:
            return int(client.info("errorstats").get("errorstat_OOM", {"count": 0})["count"])

        enough = refused() + 10
        try:
            until(lambda: refused() >= enough)
        finally:
            client.config_set("maxmemory", 0)
        team.submit("a")
        team.wait_until_indexed("a")
        assert "Traceback" not in worker.log.read_text("utf-8")


def test_a_worker_tries_to_connect_at_short_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a long outage, so that saves need not wait long after it."""
    pauses: list[float] = []
    monkeypatch.setattr("kombu.utils.functional.sleep", pauses.append)
    attempts = 20

    def attempt() -> None:
        nonlocal attempts
        attempts -= 1
        if attempts:
            raise OSError

    with Connection("redis://") as connection:
        monkeypatch.setattr(connection, "_connection_factory", attempt)
        Consumer.__new__(Consumer).ensure_connected(connection)
    assert sum(pauses) == 19 * RETRY_INTERVAL_S


def test_each_reason_of_an_outage_of_redis_is_logged_once(team: Team) -> None:
    """The worker also says when it takes messages again."""
    with team.worker() as worker:
        team.redis.kill()
        worker.wait_for("queue_unavailable")
        time.sleep(3 * RETRY_INTERVAL_S)  # several attempts
        team.redis.restart()
        worker.wait_for("queue_available")
        team.submit("a")
        team.wait_until_indexed("a")
        said = [one["error"] for one in worker.events("queue_unavailable")]
        assert len(said) == len(set(said)) > 0
        log = worker.log.read_text("utf-8")
        assert not any(line in log for line in ("Trying", "CPendingDeprecationWarning"))


def test_a_worker_survives_a_restart_of_redis(team: Team) -> None:
    """It takes new jobs, although Redis lost everything."""
    with team.worker() as worker:
        team.qdrant.kill()
        team.submit("a")
        worker.wait_for("store_unavailable")  # in the middle of a job
        team.redis.restart()
        team.qdrant.restart()
        team.submit("b")
        team.wait_until_indexed("b")
        assert worker.terminate() == 0


@pytest.mark.parametrize(
    ("environment", "only", "message"),
    [
        ({}, ["saves"], "REPERTORY_REDIS_URL"),
        (
            {
                "REPERTORY_REDIS_URL": "redis://localhost",
                "REPERTORY_QDRANT_URL": "http://localhost",
            },
            ["saves", "naps"],
            "no queue naps",
        ),
    ],
)
def test_a_worker_refuses_invalid_settings(
    environment: dict[str, str], only: list[str], message: str, tmp_path: Path
) -> None:
    """Without the servers or with an unknown queue, it raises an error and does not start."""
    with pytest.raises(ConfigurationError, match=message):
        run(load({}, tmp_path, environment), only=only)
