"""Celery workers as a team runs them: real processes, a real Redis, and Qdrant over HTTP."""

import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from repertory.catalogue.item import Item, Kind
from repertory.compose import Parts
from repertory.coordination.failures import Failure
from repertory.errors import ConfigurationError
from repertory.indexing.attempts import MAX_ATTEMPTS
from repertory.indexing.celery_queue import CeleryQueue
from repertory.indexing.collections import next_alias
from repertory.indexing.job import Job, QueueName
from repertory.settings import load
from repertory_worker.app import run
from tests.support.model_folders import write_model
from tests.support.qdrant import QdrantProcess
from tests.support.redis_server import RedisProcess
from tests.support.waiting import until
from tests.support.worker import WorkerProcess

POISON = "poison"  # the model of these tests breaks on this word
SHORT = 1.0  # seconds of visibility, for tests that wait until it has passed

_numbers = itertools.count(1)


class Team:
    """A Redis, a Qdrant, a collection, and workers that a test starts.

    Attributes:
        collection: A new one for each test.
    """

    def __init__(self, folder: Path, redis_process: RedisProcess, qdrant: QdrantProcess) -> None:
        self._folder = folder
        self.redis = redis_process
        self.qdrant = qdrant
        model = write_model(folder / "encoder")
        tokenizer = json.loads((model / "tokenizer.json").read_text("utf-8"))
        tokenizer["model"]["vocab"][POISON] = 10_000  # its table of vectors ends before
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

    def worker(self, visibility: float = 1_800) -> WorkerProcess:
        """Return a worker that is not started yet."""
        folder = self._folder / f"worker-{next(_numbers)}"
        return WorkerProcess(folder, self._environment, visibility=visibility)

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

    def indexed(self) -> set[str]:
        """The names of the items in the collection."""
        with self.parts.store.open(self.collection) as collection:
            return {state.item.removeprefix("s/") for state in collection.states()}

    def wait_until_indexed(self, *names: str) -> None:
        """Wait until the collection holds items of these names."""
        until(lambda: self.indexed().issuperset(names))

    def wait_for_failures(self) -> list[Failure]:
        """Wait until a job has failed."""
        return list(until(self.parts.coordination.failures.list))

    def taken(self) -> int:
        """The number of messages that workers have taken and not acknowledged."""
        with redis.Redis.from_url(self.redis.url) as client:
            return int(client.hlen("repertory:unacked"))


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
    """A worker writes items, announces them, reports its name, and stops on request."""
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
    assert report["queues"] == ["saves", "maintenance", "builds"]
    assert team.taken() == 0


def test_saves_precede_builds_and_waiting_jobs_share_a_batch(
    team: Team,
) -> None:
    """Ten saves are one batch of texts, although builds were queued before them."""
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
    assert team.taken() == 0


def test_a_process_killed_during_a_job_is_replaced(team: Team) -> None:
    """The message returns to the queue as soon as the worker notices."""
    with team.worker() as worker:
        team.qdrant.kill()
        team.submit("a")
        worker.wait_for("store_unavailable")
        worker.kill_child()
        team.qdrant.restart()
        worker.wait_for("jobs_done")
    assert team.indexed() == {"a"}


def test_jobs_of_a_killed_worker_are_done_by_the_next(team: Team) -> None:
    """Gathered jobs return after the visibility timeout."""
    names = ["a", "b", "c"]
    for name in names:
        team.submit(name)
    team.qdrant.kill()
    with team.worker(SHORT) as worker:
        worker.wait_for("store_unavailable")
        assert team.queue.waiting()["saves"] == 0
        assert team.taken() == len(names)
        worker.kill()
    team.qdrant.restart()
    assert team.indexed() == set()
    time.sleep(SHORT)
    with team.worker(SHORT):
        team.wait_until_indexed(*names)


def test_an_unavailable_store_fails_no_job(team: Team) -> None:
    """The jobs return to the queue until the store is back."""
    with team.worker() as worker:
        team.qdrant.kill()
        team.submit("a")
        worker.wait_for("task_returned")
        team.submit("b")
        team.qdrant.restart()
        team.wait_until_indexed("a", "b")
    assert team.parts.coordination.failures.list() == []


def test_a_poison_item_fails_alone(team: Team) -> None:
    """Its neighbours are indexed at once; it is retried with back-off, and then fails."""
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
    """A job of another version and any other message are listed, and no item fails."""
    with team.worker():
        app = team.queue._app  # no method of the queue sends anything but jobs
        newer = Job(id="newer", collection=team.collection, revision=1, version=99)
        for text in (json.dumps(newer.plain()), "no job"):
            app.send_task("repertory.write", args=(text, "saves"), queue="repertory:saves")
        team.submit("a")
        team.wait_until_indexed("a")
    failures = team.parts.coordination.failures
    first, second = sorted(failures.list(), key=lambda one: one.id != "newer")
    assert (first.id, first.collection, first.items) == ("newer", team.collection, {})
    assert "version 99" in first.error
    assert (second.collection, second.items) == ("", {})
    assert failures.failed_items() == {}


def test_a_worker_survives_a_restart_of_redis(team: Team) -> None:
    """It takes jobs again, although Redis lost everything."""
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
    """Without a server or with an unknown queue, it reports an error and does not start."""
    with pytest.raises(ConfigurationError, match=message):
        run(load({}, tmp_path, environment), only=only)
