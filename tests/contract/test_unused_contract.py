"""The contract of ``UnusedSince``, tested in memory and on a real Redis."""

import pytest

from repertory.coordination.redis_server import RedisServer
from repertory.coordination.unused_since import MemoryUnusedSince, RedisUnusedSince, UnusedSince
from tests.support.redis_server import RedisProcess


@pytest.fixture(params=["memory", "redis"])
def since(request: pytest.FixtureRequest) -> UnusedSince:
    """Each adapter in turn, empty."""
    if request.param == "memory":
        return MemoryUnusedSince()
    return RedisUnusedSince(RedisServer(request.getfixturevalue("redis_server").url))


def test_the_first_time_counts(since: UnusedSince) -> None:
    """An unused collection keeps its first time; a use in between restarts it."""
    assert since.update([], 1.0) == {}
    assert since.update(["a"], 1.5) == {"a": 1.5}
    assert since.update(["a", "b"], 2.0) == {"a": 1.5, "b": 2.0}
    assert since.update(["b"], 3.0) == {"b": 2.0}
    assert since.update(["a", "b"], 4.0) == {"a": 4.0, "b": 2.0}


def test_no_time_is_in_the_future(since: UnusedSince) -> None:
    """If the clock is set back, a later stored time is replaced by the current one."""
    since.update(["a"], 100.0)
    assert since.update(["a"], 50.0) == {"a": 50.0}
    assert since.update(["a"], 100.0) == {"a": 50.0}


def test_a_damaged_time_starts_again(redis_server: RedisProcess) -> None:
    """An unreadable time counts from now, so its collection is not removed too early."""
    server = RedisServer(redis_server.url)
    server.client.hset("repertory:unused", mapping={"a": "soon", "b": "7"})
    assert RedisUnusedSince(server).update(["a", "b"], 9.0) == {"a": 9.0, "b": 7.0}
