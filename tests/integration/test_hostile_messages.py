"""Hostile messages in Redis do not stop a worker: real processes and a real Redis."""

import base64
import copy
import json
import subprocess
import sys
import zlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import redis

from repertory.compose import Parts
from repertory.indexing.celery_queue import QUEUES, WRITE, CeleryQueue, celery_app, redis_key
from repertory.indexing.collection_names import next_alias
from repertory.indexing.job import Job, QueueName
from repertory.settings import load
from repertory_worker.messages import MAX_SIZE, Transport, task_message
from repertory_worker.waiting_tasks import waiting_beside
from tests.support.builders import skill
from tests.support.model_folders import write_model
from tests.support.qdrant import QdrantProcess
from tests.support.redis_server import RedisProcess
from tests.support.waiting import until
from tests.support.worker import WorkerProcess

TEXTS = [  # none is a valid message
    b"garbage",
    b"",
    b"42",
    b"[]",
    b"null",
    b"true",
    b'"text"',
    b"{}",
    b"\xff\xfe\x00",
    b"[" * 100_000,
    b'{"a":' * 5_000,
    b"9" * 10_000,
    b'{"__type__": "datetime", "__value__": "never"}',
    b'{"__type__": "decimal", "__value__": {}}',
    b'{"headers": {"task": "repertory.write"}, "properties": {}}',
]
VALUES: list[Any] = [None, "x", "", -1, 1e300, [], {}, ["x", "y"], [1, "y"], {"a": 1}, "9999-12-31"]


class Team:
    """A Redis, a Qdrant, a collection and the environment of a worker."""

    def __init__(self, folder: Path, redis_process: RedisProcess, qdrant: QdrantProcess) -> None:
        self.environment = {
            "REPERTORY_DATA_DIR": str(folder / "data"),
            "REPERTORY_REDIS_URL": redis_process.url,
            "REPERTORY_QDRANT_URL": qdrant.url,
            "REPERTORY_SEARCH_MODEL": str(write_model(folder / "encoder")),
        }
        self.parts = Parts(load({}, folder, self.environment), folder)
        self.queue = CeleryQueue(redis_process.url)
        self.client = redis.Redis.from_url(redis_process.url)
        self.client.flushall()
        self.parts.writer().begin("0" * 16)
        self.collection = self.parts.store.alias(next_alias(self.parts.active, "0" * 16)) or ""

    def submit(self, name: str) -> None:
        """Submit a job that writes one item."""
        job = Job(id=name, collection=self.collection, revision=1, items=(skill(name),))
        self.queue.submit(job, QueueName.SAVES)

    def message(self) -> dict[str, Any]:
        """A valid message as Redis stores it; the queue is empty afterwards."""
        self.submit("any")
        texts: Any = self.client.lpop(redis_key("saves"), 10)
        found: dict[str, Any] = json.loads(texts[0])
        return found

    def wait_until_indexed(self, name: str) -> None:
        """Wait until the collection contains an item."""

        def is_indexed() -> bool:
            with self.parts.store.open(self.collection) as collection:
                return any(state.item.endswith(name) for state in collection.states())

        until(is_indexed)


@pytest.fixture
def team(tmp_path: Path, redis_process: RedisProcess) -> Iterator[Team]:
    """A team without workers."""
    with QdrantProcess() as qdrant:
        yield Team(tmp_path, redis_process, qdrant)


def _changed(message: dict[str, Any]) -> Iterator[bytes]:
    """Copies of a message in which one part is replaced or missing."""
    parts: list[tuple[str, ...]] = [
        ("body",),
        ("content-type",),
        ("content-encoding",),
        ("headers",),
        ("properties",),
    ]
    parts += [("headers", name) for name in message["headers"]]
    parts += [("properties", name) for name in message["properties"]]
    for part in parts:
        outer, name = part[:-1], part[-1]
        for value in [*VALUES, ...]:
            changed = copy.deepcopy(message)
            place = changed[outer[0]] if outer else changed
            if value is ...:
                del place[name]
            else:
                place[name] = value
            if name != "delivery_tag" and isinstance(changed.get("properties"), dict):
                changed["properties"]["delivery_tag"] = f"{outer}{name}{value!r}"
            yield json.dumps(changed).encode()


def test_a_worker_survives_any_message(team: Team, tmp_path: Path) -> None:
    """Invalid messages in any queue neither stop the worker nor block its other tasks."""
    hostile = [*TEXTS, *_changed(team.message())]
    with WorkerProcess(tmp_path / "worker", team.environment) as worker:
        for queue in QUEUES:
            team.client.lpush(redis_key(queue), *(hostile if queue == "saves" else TEXTS))
        team.queue.keep_keywords(team.collection)
        team.submit("good")
        team.wait_until_indexed("good")
        until(lambda: not any(team.client.llen(redis_key(queue)) for queue in QUEUES))
        team.submit("better")
        team.wait_until_indexed("better")
        assert len(worker.events("worker_ready")) == 1
        assert worker.events("message_refused")
        assert "Unrecoverable" not in worker.log.read_text("utf-8")
        assert worker.terminate() == 0


def test_only_the_needed_parts_of_a_message_are_kept() -> None:
    """A due time has a time zone, or it could not be compared."""
    headers = {"task": WRITE, "id": "1", "eta": "2026-01-01T00:00:00", "traceparent": "x" * 1_000}
    raw = {"body": "W10=", "headers": {**headers, "x": 1}, "properties": {"delivery_tag": "t"}}
    found = task_message(raw, "q")["headers"]
    assert found.keys() == {"task", "id", "eta", "lang", "argsrepr", "kwargsrepr"}
    assert datetime.fromisoformat(found["eta"]).tzinfo


@pytest.mark.parametrize(
    "body",
    [b"", b"not packed", zlib.compress(b"[[]]")[:-4], zlib.compress(bytes(MAX_SIZE + 1))],
    ids=["empty", "not packed", "cut", "a bomb"],
)
def test_an_invalid_compressed_body_does_not_affect_other_jobs(
    redis_server: RedisProcess, body: bytes
) -> None:
    """Its message is dropped, and the jobs gathered with it are done."""
    redis_server.flush()
    queue = CeleryQueue(redis_server.url)
    client = redis.Redis.from_url(redis_server.url)
    key = redis_key("saves")
    queue.submit(Job(id="any", collection="c", revision=1, removed=("i",)), QueueName.SAVES)
    message: Any = client.lpop(key)
    hostile = {**json.loads(message), "body": base64.b64encode(body).decode()}
    client.lpush(key, message, json.dumps(hostile), message)
    app = celery_app(redis_server.url)
    app.conf.broker_transport = Transport
    with app.connection_for_read() as broker, waiting_beside(broker, key) as tasks:
        assert len(list(tasks)) == 2
    assert not client.llen(key)
    assert not queue.taken()


def test_invalid_unacknowledged_messages_do_not_block_redelivery(
    team: Team, tmp_path: Path
) -> None:
    """Invalid entries in Celery's record of unacknowledged messages are dropped."""
    for number, text in enumerate(TEXTS):
        team.client.hset(redis_key("unacked"), f"tag-{number}", text)
        team.client.zadd(redis_key("unacked_index"), {f"tag-{number}": number + 1.0})
    message = team.message()
    taken = json.dumps([message, "", redis_key("saves")])
    team.client.hset(redis_key("unacked"), "lost", taken)
    team.client.zadd(redis_key("unacked_index"), {"lost": 0.5})
    with WorkerProcess(tmp_path / "worker", team.environment, lease=1.0):
        team.wait_until_indexed("any")
    left: Any = team.client.hkeys(redis_key("unacked"))
    assert not any(tag.startswith(b"tag-") for tag in left)


_BROKEN = """
from pathlib import Path
from repertory.settings import load
from repertory_worker import app, messages
def fail(*_):
    raise RuntimeError("of Celery")
messages.kombu_redis.Transport._deliver = fail
app.run(load({}, Path.cwd()))
"""


def test_a_worker_that_crashes_has_a_failure_exit_code(team: Team, tmp_path: Path) -> None:
    """Systemd therefore starts it again."""
    team.submit("any")
    ended = subprocess.run(
        [sys.executable, "-c", _BROKEN],
        cwd=tmp_path,
        env={**team.environment, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 1, ended.stderr
