"""The queue on Celery and Redis, and how a worker takes what waits in it."""

import json
from collections.abc import Iterator

import pytest
from kombu import Connection

from repertory.catalogue.item import Item, Kind
from repertory.errors import ConfigurationError, StoreError
from repertory.indexing.celery_queue import MAX_MAINTENANCE, CeleryQueue, celery_app, redis_key
from repertory.indexing.job import MOST_ITEMS, Job, QueueName, job_of
from repertory_worker.gathering import waiting_beside
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
    """A queue in which nothing waits."""
    return CeleryQueue(redis_server.url)


@pytest.fixture
def broker(redis_server: RedisProcess) -> Iterator[Connection]:
    """The connection that a worker gathers on."""
    with celery_app(redis_server.url).connection_for_read() as connection:
        yield connection


def test_what_is_submitted_waits_in_its_lane(queue: CeleryQueue) -> None:
    """Each job is counted in its queue, and what is asked for beside jobs in none."""
    queue.submit(job_with(1), QueueName.SAVES)
    queue.submit(job_with(2), QueueName.BUILDS)
    queue.submit(job_with(3), QueueName.BUILDS, delay=60.0)
    queue.begin("0123456789abcdef")
    queue.keep_keywords("c")
    assert queue.waiting() == {"saves": 1, "builds": 2}


def test_what_is_asked_again_and_again_does_not_pile_up(queue: CeleryQueue) -> None:
    """While no worker runs, the coordinator asks every few seconds, perhaps for weeks."""
    for _ in range(MAX_MAINTENANCE):
        queue.begin("0123456789abcdef")
    with pytest.raises(StoreError, match="start `repertory worker`"):
        queue.begin("0123456789abcdef")


def test_a_job_arrives_as_it_was(queue: CeleryQueue, broker: Connection) -> None:
    """Also one whose schema has the keys by which Celery knows its own values."""
    schema = {"properties": {"__type__": "uuid", "__value__": 1}, "__type__": "x", "__value__": "y"}
    item = Item(id="s/a", kind=Kind.TOOL, name="a", source="s", input_schema=schema, body="é\ud800")
    sent = job_with(1, *[item] * MOST_ITEMS)
    queue.submit(sent, QueueName.SAVES)
    with waiting_beside(broker, SAVES) as waiting:
        (text,) = waiting
    assert job_of(json.loads(str(text))) == sent


def test_what_is_taken_and_done_is_gone(queue: CeleryQueue, broker: Connection) -> None:
    """The oldest comes first, and what is not iterated to is not taken."""
    for number in (1, 2, 3):
        queue.submit(job_with(number), QueueName.SAVES)
    with waiting_beside(broker, SAVES) as waiting:
        assert ids(iter([next(waiting), next(waiting)])) == ["1", "2"]
        assert queue.waiting()["saves"] == 1
    assert queue.waiting()["saves"] == 1
    with waiting_beside(broker, SAVES) as waiting:
        assert ids(waiting) == ["3"]


def test_what_is_taken_and_not_done_waits_again(queue: CeleryQueue, broker: Connection) -> None:
    """An error in the work puts everything back that was taken for it."""
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


def test_what_a_process_took_before_it_ended_is_delivered_again(
    queue: CeleryQueue, redis_server: RedisProcess
) -> None:
    """A connection that is closed in the middle gives back what was taken on it."""
    queue.submit(job_with(1), QueueName.SAVES)
    connection = celery_app(redis_server.url).connection_for_read()
    with waiting_beside(connection, SAVES) as waiting:
        next(waiting)
        assert queue.waiting()["saves"] == 0
        connection.close()
    assert queue.waiting()["saves"] == 1


def test_a_message_of_somebody_else_is_handed_over_as_it_is(
    queue: CeleryQueue, broker: Connection
) -> None:
    """Whoever reads the jobs puts aside what is none."""
    others: list[object] = [{"no": "task"}, [[], {}, {}]]
    for body in others:
        broker.SimpleQueue(SAVES).put(body)
    with waiting_beside(broker, SAVES) as waiting:
        assert list(waiting) == ['{"no": "task"}', "[[], {}, {}]"]


def test_what_is_not_due_yet_is_left(queue: CeleryQueue, broker: Connection) -> None:
    """Jobs with a delay are passed over, and wait in the queue afterwards as before."""
    queue.submit(job_with(1), QueueName.SAVES)
    queue.submit(job_with(2), QueueName.SAVES, delay=600.0)
    queue.submit(job_with(3), QueueName.SAVES)
    with waiting_beside(broker, SAVES) as waiting:
        assert ids(waiting) == ["1", "3"]
    assert queue.waiting()["saves"] == 1


def test_a_broker_that_goes_away_while_jobs_are_taken() -> None:
    """Nothing more is taken, what was taken can be done, and nothing is raised."""
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


def test_a_redis_that_is_away_is_a_store_error() -> None:
    """Every method says so in words, without the password; they work again when it is back."""
    with RedisProcess(password="secret") as server:
        queue = CeleryQueue(server.url)
        queue.submit(job_with(1), QueueName.SAVES)
        server.kill()
        for call in (
            lambda: queue.submit(job_with(2), QueueName.SAVES),
            lambda: queue.begin("0123456789abcdef"),
            lambda: queue.keep_keywords("c"),
            queue.waiting,
        ):
            with pytest.raises(StoreError, match="cannot be reached") as caught:
                call()
            assert "secret" not in str(caught.value)
        server.restart()
        queue.submit(job_with(3), QueueName.SAVES)
        assert queue.waiting()["saves"] == 1


def test_a_redis_that_refuses_us_is_a_store_error() -> None:
    """A wrong password is told from a server that is away."""
    with RedisProcess(password="right") as server:
        queue = CeleryQueue(server.url.replace("right", "wrong"))
        with pytest.raises(StoreError, match="password"):
            queue.submit(job_with(1), QueueName.SAVES)


@pytest.mark.parametrize("url", ["", "http://localhost", "redis://localhost:99999/0"])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    """Before anything is sent."""
    with pytest.raises(ConfigurationError, match="must look like"):
        CeleryQueue(url)
