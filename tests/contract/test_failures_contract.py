"""What every adapter of ``Failures`` does: run in memory and on a real Redis."""

from collections.abc import Callable
from types import SimpleNamespace

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
from tests.support.redis_server import RedisProcess


@pytest.fixture(params=["memory", "redis"])
def make(request: pytest.FixtureRequest) -> Callable[[int], Failures]:
    """Makes each adapter in turn, with a limit of the list."""
    if request.param == "memory":
        return lambda limit: MemoryFailures(limit=limit)
    server = RedisServer(request.getfixturevalue("redis_server").url)
    return lambda limit: RedisFailures(server, limit)


@pytest.fixture
def failures(make: Callable[[int], Failures]) -> Failures:
    """An empty list of failures."""
    return make(MAX_FAILURES)


def failure(number: int, error: str = "It cannot be embedded.") -> Failure:
    """Some failure."""
    return Failure(
        id=f"job {number}",
        collection="repertory_0_minilm-r1_g1",
        items={f"item {number}": "hash", "ключ": REMOVED},
        error=error,
        at=1_760_000_000.25 - number,
        attempts=3,
        job={"id": f"job {number}", "items": [{"tags": ["a"], "body": "\0 “text”"}]},
    )


def test_failures_are_listed_in_order(failures: Failures) -> None:
    """Failures come back whole and in order; of one id the last is kept, at the end."""
    assert failures.list() == []
    for number in (2, 1, 3):
        failures.add(failure(number))
    assert failures.list() == [failure(2), failure(1), failure(3)]
    failures.add(failure(2, "Something else."))
    assert failures.list() == [failure(1), failure(3), failure(2, "Something else.")]


def test_failures_are_removed_once(failures: Failures) -> None:
    """Removing returns each failure once; unknown ids are skipped."""
    for number in range(3):
        failures.add(failure(number))
    assert list(failures.remove([])) == []
    assert list(failures.remove(["job 2", "no job", "job 0", "job 2"])) == [failure(2), failure(0)]
    assert list(failures.remove(["job 2"])) == []
    assert failures.list() == [failure(1)]


def test_the_oldest_failures_go(make: Callable[[int], Failures]) -> None:
    """The list is bounded; the first added goes first."""
    failures = make(5)
    for number in range(8):
        failures.add(failure(number))
    failures.add(failure(7))
    assert failures.list() == [failure(number) for number in range(3, 8)]


def test_attempts_are_counted(failures: Failures) -> None:
    """Each job has its count, which removing its failure forgets."""
    assert [failures.attempt("job 1") for _ in range(3)] == [1, 2, 3]
    assert failures.attempt("job 2") == 1
    failures.add(failure(1))
    assert failures.attempt("job 1") == 4
    failures.remove(["job 1"])
    assert failures.attempt("job 1") == 1
    assert failures.attempt("job 2") == 2


def test_attempts_in_memory_are_forgotten() -> None:
    """A count is forgotten a day after the last attempt."""
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
    """A count has a time to live."""
    server = RedisServer(redis_server.url)
    RedisFailures(server).attempt("a")
    assert 86_000 < server.client.ttl("repertory:attempts:a") <= 86_400


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff", b"[1]", b'{"id": "job 1"'])
def test_damaged_failures_are_skipped(redis_server: RedisProcess, data: bytes) -> None:
    """An unreadable one is not listed, hides no other, and can be removed."""
    server = RedisServer(redis_server.url)
    failures = RedisFailures(server)
    for number in range(3):
        failures.add(failure(number))
    server.client.hset("repertory:failures", "job 1", data)
    server.client.rpush("repertory:failures:order", "without an entry")
    assert failures.list() == [failure(0), failure(2)]
    assert list(failures.remove(["job 1", "job 2"])) == [failure(2)]
    assert failures.list() == [failure(0)]
