"""The contract of ``Failures``, tested in memory and on a real Redis."""

from collections.abc import Callable
from itertools import count
from types import SimpleNamespace

import msgspec
import pytest

from repertory.coordination.deltas import REMOVED
from repertory.coordination.failures import (
    MAX_FAILURES,
    Failure,
    Failures,
    MemoryFailures,
    RedisFailures,
)
from repertory.coordination.redis_server import RedisServer
from tests.support.builders import DEEP_JSON
from tests.support.redis_server import RedisProcess

COLLECTION = "repertory_0_minilm-r1_g1"


@pytest.fixture(params=["memory", "redis"])
def make(request: pytest.FixtureRequest) -> Callable[[int], Failures]:
    """Make each adapter in turn, with a given limit of the list."""
    if request.param == "memory":
        return lambda limit: MemoryFailures(limit=limit)
    server = RedisServer(request.getfixturevalue("redis_server").url)
    return lambda limit: RedisFailures(server, limit)


@pytest.fixture
def failures(make: Callable[[int], Failures]) -> Failures:
    """An empty list of failures."""
    return make(MAX_FAILURES)


def failure(
    number: int, error: str = "It cannot be embedded.", items: dict[str, str] | None = None
) -> Failure:
    """A failure of a numbered job."""
    return Failure(
        id=f"job {number}",
        collection=COLLECTION,
        items={f"item {number}": "hash", "ключ": REMOVED} if items is None else items,
        error=error,
        at=1_760_000_000.25 - number,
        attempts=3,
    )


def test_failures_are_listed_in_order(failures: Failures) -> None:
    """Failures are listed in order of their addition; a repeated id moves to the end."""
    assert failures.list() == []
    for number in (2, 1, 3):
        failures.add(failure(number))
    assert failures.list() == [failure(2), failure(1), failure(3)]
    failures.add(failure(2, "Something else."))
    assert failures.list() == [failure(1), failure(3), failure(2, "Something else.")]


def test_failures_are_removed_once(failures: Failures) -> None:
    """A removal counts each removed failure once and skips unknown ids."""
    for number in range(3):
        failures.add(failure(number))
    assert failures.remove([]) == 0
    assert failures.remove(["job 2", "no job", "job 0", "job 2"]) == 2
    assert failures.remove(["job 2"]) == 0
    assert failures.list() == [failure(1)]


def test_the_oldest_failures_are_dropped_from_the_list(make: Callable[[int], Failures]) -> None:
    """The list drops its oldest failures above the limit, but their items stay failed."""
    failures = make(5)
    for number in range(8):
        failures.add(failure(number))
    failures.add(failure(7))
    assert failures.list() == [failure(number) for number in range(3, 8)]
    failed = {f"item {number}": "hash" for number in range(8)}
    assert failures.failed_items() == {COLLECTION: {**failed, "ключ": REMOVED}}
    assert failures.count() == 9


def test_failed_items_are_forgiven(failures: Failures) -> None:
    """Removing a failure forgives its items, unless they have failed with another hash since."""
    assert failures.failed_items() == {}
    failures.add(failure(1, items={"a b": "1", "c": "1"}))
    failures.add(failure(2, items={"c": "2", "d": REMOVED}))
    assert failures.failed_items() == {COLLECTION: {"a b": "1", "c": "2", "d": REMOVED}}
    failures.remove(["job 1"])
    assert failures.failed_items() == {COLLECTION: {"c": "2", "d": REMOVED}}
    failures.forgive(COLLECTION, ["d", "unknown"])
    failures.forgive("unknown", ["c"])
    assert failures.failed_items() == {COLLECTION: {"c": "2"}}
    assert [one.id for one in failures.list()] == ["job 2"]


@pytest.mark.parametrize("request_number", range(1, 5))
def test_an_item_that_fails_during_a_removal_stays_failed(
    redis_server: RedisProcess, monkeypatch: pytest.MonkeyPatch, request_number: int
) -> None:
    """Another process may add a failure before any request of a removal."""
    server, other = RedisServer(redis_server.url), RedisFailures(RedisServer(redis_server.url))
    failures = RedisFailures(server)
    failures.remove([""])  # loads the script
    failures.add(failure(1, items={"a": "1"}))
    connect, requests = server.client.connection_pool.get_connection, count(1)
    was_added = False

    def connecting(*args: object) -> object:
        nonlocal was_added
        if next(requests) == request_number:
            other.add(failure(2, items={"a": "2"}))
            was_added = True
        return connect(*args)

    monkeypatch.setattr(server.client.connection_pool, "get_connection", connecting)
    assert failures.remove(["job 1"]) == 1
    assert other.failed_items() == ({COLLECTION: {"a": "2"}} if was_added else {})


def test_everything_is_forgiven_at_once(failures: Failures) -> None:
    """Clearing forgets all failures and failed items, and returns the previous count."""
    assert failures.clear() == 0
    failures.add(failure(1, items={"a": "1", "b": "1", "c": "1"}))
    failures.add(failure(2, items={}))
    assert failures.count() == 3
    assert failures.clear() == 3
    assert (failures.count(), failures.list(), failures.failed_items()) == (0, [], {})


def test_the_version_changes_with_each_change(failures: Failures) -> None:
    """The version changes only if the list or the failed items change."""
    versions = [failures.version()]
    for change in (
        lambda: failures.add(failure(1)),
        lambda: failures.add(failure(1)),
        lambda: failures.forgive(COLLECTION, ["item 1"]),
        lambda: failures.remove(["job 1"]),
        failures.clear,
    ):
        change()
        versions.append(failures.version())
    assert len(set(versions)) == len(versions)
    failures.attempt("job 1")
    failures.forget(["job 1"])
    failures.remove([])
    failures.forgive(COLLECTION, [])
    assert failures.version() == versions[-1]


def test_attempts_are_counted(failures: Failures) -> None:
    """The attempts of each job are counted until the job is forgotten."""
    assert [failures.attempt("job 1") for _ in range(3)] == [1, 2, 3]
    assert failures.attempt("job 2") == 1
    failures.add(failure(1))
    assert failures.attempt("job 1") == 4
    failures.forget([])
    failures.forget(["job 1", "unknown"])
    assert failures.attempt("job 1") == 1
    assert failures.attempt("job 2") == 2
    assert failures.list() == [failure(1)]


def test_attempts_in_memory_are_forgotten() -> None:
    """A count is forgotten a day after the job's last attempt."""
    now = SimpleNamespace(time=0.0)
    failures = MemoryFailures(lambda: now.time)
    failures.attempt("a")
    failures.attempt("b")
    now.time = 80_000.0
    assert failures.attempt("a") == 2
    now.time = 86_400.0
    assert failures.attempt("b") == 1
    assert failures.attempt("a") == 3


def test_attempts_in_redis_are_forgotten(redis_server: RedisProcess) -> None:
    """A count has a time to live of one day."""
    server = RedisServer(redis_server.url)
    RedisFailures(server).attempt("a")
    assert 86_000 < server.client.ttl("repertory:attempts:a") <= 86_400


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff", b"[1]", b'{"id": "job 1"', DEEP_JSON])
def test_damaged_failures_are_skipped(redis_server: RedisProcess, data: bytes) -> None:
    """An unreadable failure is not listed, does not hide others, and can be removed."""
    server = RedisServer(redis_server.url)
    failures = RedisFailures(server)
    for number in range(3):
        failures.add(failure(number))
    server.client.hset("repertory:failures", "job 1", data)
    server.client.rpush("repertory:failures:order", "without an entry")
    assert failures.list() == [failure(0), failure(2)]
    assert failures.remove(["job 1", "job 2"]) == 2
    assert failures.list() == [failure(0)]


def test_a_failure_of_an_older_version_is_listed(redis_server: RedisProcess) -> None:
    """The job that older versions stored with a failure is ignored."""
    server = RedisServer(redis_server.url)
    old = {**msgspec.to_builtins(failure(1)), "job": {"id": "job 1", "items": []}}
    server.client.hset("repertory:failures", "job 1", msgspec.json.encode(old))
    server.client.rpush("repertory:failures:order", "job 1")
    assert RedisFailures(server).list() == [failure(1)]
