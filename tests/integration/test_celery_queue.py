"""The queue on Celery and Redis, and how a worker gathers waiting jobs."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from kombu import Connection, Message, Queue

from repertory.catalogue.item import Item, Kind
from repertory.coordination.redis_server import RedisServer
from repertory.errors import ConfigurationError, StoreError
from repertory.indexing.celery_queue import (
    MAX_MAINTENANCE,
    QUEUES,
    CeleryQueue,
    celery_app,
    redis_key,
)
from repertory.indexing.job import MAX_ITEMS, Job, QueueName, job_of
from repertory_worker.waiting_tasks import waiting_beside
from tests.support.redis_server import RedisProcess

SAVES = redis_key("saves")


def job_with(number: int, *items: Item) -> Job:
    """A job with an id that tells it apart."""
    return Job(id=str(number), collection="c", revision=number, items=items)


def ids(texts: Iterator[object]) -> list[str]:
    """The ids of jobs as they are sent."""
    return [job_of(json.loads(str(text))).id for text in texts]


@pytest.fixture
def queue(redis_server: RedisProcess) -> CeleryQueue:
    """An empty queue."""
    return CeleryQueue(redis_server.url)


@pytest.fixture
def broker(redis_server: RedisProcess) -> Iterator[Connection]:
    """The connection that a worker gathers on."""
    with celery_app(redis_server.url).connection_for_read() as connection:
        yield connection


def test_repeated_requests_do_not_pile_up(queue: CeleryQueue) -> None:
    """While no worker runs, the coordinator asks every few seconds, perhaps for weeks."""
    for _ in range(MAX_MAINTENANCE):
        queue.begin("0123456789abcdef")
    with pytest.raises(StoreError, match="start `repertory worker`"):
        queue.begin("0123456789abcdef")


def test_one_snapshot_of_a_collection_waits(queue: CeleryQueue, redis_server: RedisProcess) -> None:
    """Requests for snapshots hold up no rebuild, however many there are."""
    for _ in range(MAX_MAINTENANCE):
        for collection in ("c", "d"):
            queue.keep_keywords(collection)
    server = RedisServer(redis_server.url)
    assert server.client.llen(redis_key("snapshots")) == 2
    assert server.client.llen(redis_key("maintenance")) == 0
    queue.begin("0123456789abcdef")


def test_workers_take_in_the_order_of_the_queues(queue: CeleryQueue, broker: Connection) -> None:
    """All saves come before any request, these before builds, and snapshots last."""
    for number in range(3):
        queue.keep_keywords(f"c{number}")
        queue.submit(job_with(number), QueueName.BUILDS)
        queue.begin(f"{number:016x}")
        queue.submit(job_with(number), QueueName.SAVES)
    order: list[str] = []

    def take(_: object, message: Message) -> None:
        order.append(str((message.delivery_info or {})["routing_key"]))
        message.ack()

    names = [redis_key(name) for name in QUEUES]
    wanted = [name for name in names for _ in range(3)]
    with broker.Consumer([Queue(name) for name in names], callbacks=[take]):
        while len(order) < len(wanted):
            broker.drain_events(timeout=10)
    assert order == wanted


def test_taken_jobs_are_counted(queue: CeleryQueue, broker: Connection) -> None:
    """A job that a worker has does not wait, and is not lost from sight."""
    for number in (1, 2):
        queue.submit(job_with(number), QueueName.SAVES)
    assert (queue.waiting()["saves"], queue.taken()) == (2, 0)
    with waiting_beside(broker, SAVES) as waiting:
        next(waiting)
        assert (queue.waiting()["saves"], queue.taken()) == (1, 1)
    assert (queue.waiting()["saves"], queue.taken()) == (1, 0)


def test_a_job_that_was_left_waits_again(queue: CeleryQueue, broker: Connection) -> None:
    """It is not iterated to twice, and is put back before the others are done."""
    for number in (1, 2, 3):
        queue.submit(job_with(number), QueueName.SAVES)
    with waiting_beside(broker, SAVES) as waiting:
        next(waiting)
        waiting.leave()
        assert ids(waiting) == ["2", "3"]
        assert queue.waiting()["saves"] == 0
        waiting.end()
        assert queue.waiting()["saves"] == 1
    with waiting_beside(broker, SAVES) as waiting:
        assert ids(waiting) == ["1"]


def test_a_job_arrives_as_it_was(queue: CeleryQueue, broker: Connection) -> None:
    """Also one whose schema has the keys by which Celery knows its own values."""
    schema = {"properties": {"__type__": "uuid", "__value__": 1}, "__type__": "x", "__value__": "y"}
    item = Item(id="s/a", kind=Kind.TOOL, name="a", source="s", input_schema=schema, body="é\ud800")
    sent = job_with(1, *[item] * MAX_ITEMS)
    queue.submit(sent, QueueName.SAVES)
    with waiting_beside(broker, SAVES) as waiting:
        (text,) = waiting
    assert job_of(json.loads(str(text))) == sent


def test_gathered_jobs_that_are_done_are_gone(queue: CeleryQueue, broker: Connection) -> None:
    """The oldest comes first; jobs that are not iterated to are not taken."""
    for number in (1, 2, 3):
        queue.submit(job_with(number), QueueName.SAVES)
    with waiting_beside(broker, SAVES) as waiting:
        assert ids(iter([next(waiting), next(waiting)])) == ["1", "2"]
        assert queue.waiting()["saves"] == 1
    assert queue.waiting()["saves"] == 1
    with waiting_beside(broker, SAVES) as waiting:
        assert ids(waiting) == ["3"]


def test_gathered_jobs_that_are_not_done_wait_again(queue: CeleryQueue, broker: Connection) -> None:
    """An error in the work puts all gathered jobs back."""
    for number in (1, 2):
        queue.submit(job_with(number), QueueName.SAVES)

    def fail() -> None:
        with waiting_beside(broker, SAVES) as waiting:
            assert len(list(waiting)) == 2
            assert queue.waiting()["saves"] == 0
            raise StoreError("It is away.")

    with pytest.raises(StoreError, match="away"):
        fail()
    with waiting_beside(broker, SAVES) as waiting:
        assert sorted(ids(waiting)) == ["1", "2"]


def test_jobs_of_a_process_that_ended_are_delivered_again(
    queue: CeleryQueue, redis_server: RedisProcess
) -> None:
    """A connection that is closed in the middle gives its jobs back."""
    queue.submit(job_with(1), QueueName.SAVES)
    connection = celery_app(redis_server.url).connection_for_read()
    with waiting_beside(connection, SAVES) as waiting:
        next(waiting)
        assert queue.waiting()["saves"] == 0
        connection.close()
    assert queue.waiting()["saves"] == 1


def test_a_renewed_job_is_not_delivered_again(
    queue: CeleryQueue,
    broker: Connection,
    redis_server: RedisProcess,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker that has it lives, however long it takes; of one that ended it comes back."""
    with celery_app(redis_server.url).connection_for_read() as other:

        def restored() -> int:
            channel: Any = other.default_channel
            channel.qos.restore_visible(interval=1)
            return queue.waiting()["saves"]

        queue.submit(job_with(1), QueueName.SAVES)
        with waiting_beside(broker, SAVES) as waiting:
            next(waiting)
            queue.renew([*waiting.tags, "unknown"])
            assert restored() == 0
            monkeypatch.setattr("repertory.indexing.celery_queue.LEASE_S", -1.0)
            queue.renew(waiting.tags)  # the last time was more than a lease ago
            assert restored() == 1
    assert RedisServer(redis_server.url).client.zcard("repertory:unacked_index") == 0


def test_a_foreign_message_is_handed_over_as_it_is(broker: Connection) -> None:
    """The caller decides what to do with it."""
    others: list[object] = [{"no": "task"}, [[], {}, {}]]
    for body in others:
        broker.SimpleQueue(SAVES).put(body)
    with waiting_beside(broker, SAVES) as waiting:
        assert list(waiting) == ['{"no": "task"}', "[[], {}, {}]"]


def test_delayed_jobs_are_left(queue: CeleryQueue, broker: Connection) -> None:
    """Jobs with a delay are skipped, and wait in the queue afterwards as before."""
    queue.submit(job_with(1), QueueName.SAVES)
    queue.submit(job_with(2), QueueName.SAVES, delay=600.0)
    queue.submit(job_with(3), QueueName.SAVES)
    with waiting_beside(broker, SAVES) as waiting:
        assert ids(waiting) == ["1", "3"]
    assert queue.waiting()["saves"] == 1


def test_a_broker_that_fails_while_jobs_are_gathered() -> None:
    """No more jobs come, the gathered ones can be done, and nothing is raised."""
    with RedisProcess() as own:
        queue = CeleryQueue(own.url)
        for number in (1, 2):
            queue.submit(job_with(number), QueueName.SAVES)
        with celery_app(own.url).connection_for_read() as connection:
            with waiting_beside(connection, SAVES) as waiting:
                next(waiting)
                own.kill()
                assert list(waiting) == []
            with waiting_beside(connection, SAVES) as waiting:
                assert list(waiting) == []


def test_a_redis_that_refuses_us_is_a_store_error() -> None:
    """A wrong password has a message of its own."""
    with RedisProcess(password="right") as server:
        queue = CeleryQueue(server.url.replace("right", "wrong"))
        with pytest.raises(StoreError, match="password"):
            queue.submit(job_with(1), QueueName.SAVES)


@pytest.mark.parametrize("url", ["", "http://localhost", "redis://localhost:99999/0"])
def test_an_invalid_url_is_refused(url: str) -> None:
    """Before anything is sent."""
    with pytest.raises(ConfigurationError, match="must look like"):
        CeleryQueue(url)
