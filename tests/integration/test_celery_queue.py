"""The queue on Celery and Redis, and how a worker gathers waiting jobs into a batch."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import Mock

import pytest
from kombu import Connection, Message, Queue

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.views import RECIPE
from repertory.coordination.failures import MemoryFailures
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
from repertory.indexing.pace import MIN_TEXTS
from repertory.telemetry.spans import PARENT
from repertory.values import NAMESPACE
from repertory_worker.process import MAX_RETURNS, WorkerProcess
from repertory_worker.waiting_tasks import waiting_beside
from tests.support.redis_server import RedisProcess

SAVES = redis_key("saves")


def job_with(number: int, *items: Item) -> Job:
    """A job with this number as its id and revision."""
    return Job(id=str(number), collection="c", revision=number, items=items)


def ids(texts: Iterator[object]) -> list[str]:
    """The ids of serialized jobs."""
    return [job_of(json.loads(str(text))).id for text in texts]


@pytest.fixture
def queue(redis_server: RedisProcess) -> CeleryQueue:
    """An empty queue."""
    return CeleryQueue(redis_server.url)


@pytest.fixture
def broker(redis_server: RedisProcess) -> Iterator[Connection]:
    """The connection on which a worker gathers jobs."""
    with celery_app(redis_server.url).connection_for_read() as connection:
        yield connection


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """The parts of a worker process: a writer and a queue that do nothing."""
    made = Mock()
    made.coordination.failures = MemoryFailures()
    monkeypatch.setattr("repertory_worker.process.Parts", lambda *_: made)
    return made


Take = Callable[[Job, QueueName], WorkerProcess]


@pytest.fixture
def take(redis_server: RedisProcess) -> Take:
    """Lets a worker process do a job whose message has the tag ``tag``."""
    settings = Mock()
    settings.values.namespace = NAMESPACE

    def run(job: Job, queue_name: QueueName) -> WorkerProcess:
        worker = WorkerProcess(settings, celery_app(redis_server.url), QUEUES)
        worker.write(json.dumps(job.plain()), queue_name, "tag")
        return worker

    return run


def test_repeated_requests_do_not_pile_up(queue: CeleryQueue) -> None:
    """Without workers the coordinator asks every few seconds, so the queue is limited."""
    for _ in range(MAX_MAINTENANCE):
        queue.begin("0123456789abcdef")
    with pytest.raises(StoreError, match="start `repertory worker`"):
        queue.begin("0123456789abcdef")


def test_a_collection_has_at_most_one_snapshot_request(
    queue: CeleryQueue, redis_server: RedisProcess
) -> None:
    """Repeated requests for snapshots do not use up the room for other requests."""
    for _ in range(MAX_MAINTENANCE):
        for collection in ("c", "d"):
            queue.keep_keywords(collection)
    server = RedisServer(redis_server.url)
    assert server.client.llen(redis_key("snapshots")) == 2
    assert server.client.llen(redis_key("maintenance")) == 0
    queue.begin("0123456789abcdef")


def test_workers_take_jobs_in_the_order_of_the_queues(
    queue: CeleryQueue, broker: Connection
) -> None:
    """Saves come first, then requests, builds, and last snapshots."""
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
    """A job that a worker has taken no longer counts as waiting but as taken."""
    for number in (1, 2):
        queue.submit(job_with(number), QueueName.SAVES)
    assert (queue.waiting()["saves"], queue.taken()) == (2, 0)
    with waiting_beside(broker, SAVES) as waiting:
        next(waiting)
        assert (queue.waiting()["saves"], queue.taken()) == (1, 1)
    assert (queue.waiting()["saves"], queue.taken()) == (1, 0)


def test_a_job_that_a_worker_skips_waits_again(queue: CeleryQueue, broker: Connection) -> None:
    """It is not gathered twice, and returns to the queue before the others are done."""
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


def test_a_job_arrives_unchanged(queue: CeleryQueue, broker: Connection) -> None:
    """This includes a schema with the keys by which Celery marks its own types."""
    schema = {"properties": {"__type__": "uuid", "__value__": 1}, "__type__": "x", "__value__": "y"}
    item = Item(id="s/a", kind=Kind.TOOL, name="a", source="s", input_schema=schema, body="é\ud800")
    sent = job_with(1, *[item] * MAX_ITEMS)
    queue.submit(sent, QueueName.SAVES)
    with waiting_beside(broker, SAVES) as waiting:
        (text,) = waiting
    assert job_of(json.loads(str(text))) == sent


def test_gathered_jobs_that_are_done_are_gone(queue: CeleryQueue, broker: Connection) -> None:
    """Jobs are gathered oldest first; jobs that are not iterated over stay in the queue."""
    for number in (1, 2, 3):
        queue.submit(job_with(number), QueueName.SAVES)
    with waiting_beside(broker, SAVES) as waiting:
        assert ids(iter([next(waiting), next(waiting)])) == ["1", "2"]
        assert queue.waiting()["saves"] == 1
    assert queue.waiting()["saves"] == 1
    with waiting_beside(broker, SAVES) as waiting:
        assert ids(waiting) == ["3"]


def test_gathered_jobs_that_are_not_done_wait_again(queue: CeleryQueue, broker: Connection) -> None:
    """An error during the work puts all gathered jobs back."""
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
    """When a connection is closed in the middle, its jobs return to the queue."""
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
    """A renewed lease keeps the job with its worker; after the lease it returns to the queue."""
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
            queue.renew(waiting.tags)  # with a lease that is already over
            assert restored() == 1
    assert RedisServer(redis_server.url).client.zcard("repertory:unacked_index") == 0


def test_all_jobs_of_a_batch_are_renewed(queue: CeleryQueue, parts: Mock, take: Take) -> None:
    """Otherwise another worker would do the gathered jobs again while a batch lasts."""
    renewed: list[set[str]] = []
    parts.queue().renew = lambda tags: renewed.append({*tags})
    for number in (1, 2):
        queue.submit(job_with(number), QueueName.SAVES)
    worker = take(job_with(3), QueueName.SAVES)
    [tags] = renewed
    assert (len(tags), "tag" in tags) == (3, True)
    assert (queue.waiting()["saves"], queue.taken()) == (0, 0)
    worker._renew()
    assert renewed[1] == set()  # nothing is renewed once it is done


def test_a_batch_of_a_build_is_bounded(queue: CeleryQueue, parts: Mock, take: Take) -> None:
    """The other jobs stay in the queue for other workers, and so do delayed jobs."""
    waiting: list[int] = []
    parts.writer().write = lambda _: waiting.append(queue.waiting()["builds"])
    queue.submit(job_with(1), QueueName.BUILDS, delay=600.0)
    for number in range(2, MIN_TEXTS + 6):
        queue.submit(job_with(number), QueueName.BUILDS)
    take(job_with(MIN_TEXTS + 6), QueueName.BUILDS)
    assert waiting == [1 + 5]
    assert queue.waiting()["builds"] == 1 + 5


@pytest.mark.usefixtures("parts")
def test_a_batch_of_a_build_is_bounded_by_its_texts(queue: CeleryQueue, take: Take) -> None:
    """Two jobs that each have half of the texts fill it."""
    names = [f"s/{number}" for number in range(MIN_TEXTS // 2)]
    items = [Item(id=name, kind=Kind.SKILL, name=name, source="s") for name in names]
    for number in range(4):
        queue.submit(job_with(number, *items), QueueName.BUILDS)
    take(job_with(4, *items), QueueName.BUILDS)
    assert queue.waiting()["builds"] == 3


def test_a_request_of_an_older_release_is_ignored(redis_server: RedisProcess, parts: Mock) -> None:
    """A watch service of that release would get a collection that it cannot use."""
    worker = WorkerProcess(Mock(), celery_app(redis_server.url), QUEUES)
    worker.begin("0123456789abcdef", None, RECIPE - 1, "tag")
    parts.writer().begin.assert_not_called()
    worker.begin("0123456789abcdef", None, RECIPE, "tag")
    parts.writer().begin.assert_called_once()


def test_a_request_is_renewed_while_it_is_done(redis_server: RedisProcess, parts: Mock) -> None:
    """Otherwise another worker would do it, too, when a store is slow."""
    renewed: list[list[str]] = []
    parts.queue().renew = lambda tags: renewed.append([*tags])
    worker = WorkerProcess(Mock(), celery_app(redis_server.url), QUEUES)
    parts.writer().begin.side_effect = lambda *_, **__: worker._renew()
    worker.begin("0123456789abcdef", None, RECIPE, "tag")
    worker._renew()
    assert renewed == [["tag"], []]


def test_a_request_of_a_newer_release_is_dropped_at_last(
    redis_server: RedisProcess, parts: Mock
) -> None:
    """It is put back a few times, and is never done."""
    worker = WorkerProcess(Mock(), celery_app(redis_server.url), QUEUES)
    for _ in range(MAX_RETURNS):
        parts.coordination.failures.attempt(f"begin:0123456789abcdef:None:{RECIPE + 1}:returned")
    worker.begin("0123456789abcdef", None, RECIPE + 1, "tag")
    parts.writer().begin.assert_not_called()


def test_a_foreign_message_is_passed_on_unchanged(broker: Connection) -> None:
    """The caller decides what to do with it."""
    others: list[object] = [{"no": "task"}, [[], {}, {}]]
    for body in others:
        broker.SimpleQueue(SAVES).put(body)
    with waiting_beside(broker, SAVES) as waiting:
        assert list(waiting) == ['{"no": "task"}', "[[], {}, {}]"]


def test_a_batch_belongs_to_the_traces_of_all_its_jobs(broker: Connection) -> None:
    """A job that is left to another worker is not part of it."""
    for number in range(3):
        broker.SimpleQueue(SAVES).put({}, headers={PARENT: str(number)} if number else {})
    with waiting_beside(broker, SAVES) as waiting:
        for _ in range(3):
            next(waiting)
        waiting.leave()
        assert waiting.parents == ["", "1"]


def test_delayed_jobs_are_not_gathered(queue: CeleryQueue, broker: Connection) -> None:
    """They are skipped and stay in the queue."""
    queue.submit(job_with(1), QueueName.SAVES)
    queue.submit(job_with(2), QueueName.SAVES, delay=600.0)
    queue.submit(job_with(3), QueueName.SAVES)
    with waiting_beside(broker, SAVES) as waiting:
        assert ids(waiting) == ["1", "3"]
    assert queue.waiting()["saves"] == 1


def test_gathering_ends_when_the_broker_fails() -> None:
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


def test_a_wrong_redis_password_is_a_store_error() -> None:
    """The message mentions the password."""
    with RedisProcess(password="right") as server:
        queue = CeleryQueue(server.url.replace("right", "wrong"))
        with pytest.raises(StoreError, match="password"):
            queue.submit(job_with(1), QueueName.SAVES)


@pytest.mark.parametrize("url", ["", "http://localhost", "redis://localhost:99999/0"])
def test_an_invalid_url_is_refused(url: str) -> None:
    """The error comes before anything is sent."""
    with pytest.raises(ConfigurationError, match="must look like"):
        CeleryQueue(url)
