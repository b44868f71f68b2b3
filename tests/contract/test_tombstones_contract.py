"""The contract of ``Tombstones``, tested in memory and on a real Redis."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.coordination.redis_server import RedisServer
from repertory.coordination.tombstones import MemoryTombstones, RedisTombstones, Tombstones
from tests.support.laws import ids, laws
from tests.support.redis_server import RedisProcess


@pytest.fixture(params=["memory", "redis"])
def tombstones(request: pytest.FixtureRequest) -> Tombstones:
    """Each adapter in turn, empty."""
    if request.param == "memory":
        return MemoryTombstones()
    return RedisTombstones(RedisServer(request.getfixturevalue("redis_server").url))


def test_only_recorded_deletions_are_found(
    tombstones: Tombstones, collection: Callable[[], str]
) -> None:
    """A deletion is found only in its collection; empty records and requests are allowed."""
    name = collection()
    tombstones.record_deletions(name, {})
    assert tombstones.deleted(name, []) == {}
    tombstones.record_deletions(name, {"a": 1_760_000_000_123, "b": 0})
    assert tombstones.deleted(name, ["b", "c", "a", "a"]) == {"a": 1_760_000_000_123, "b": 0}
    assert tombstones.deleted(collection(), ["a"]) == {}


@laws
@given(st.lists(st.dictionaries(ids, st.integers(0, 2**53)), max_size=8))
def test_the_newest_revision_stays(
    tombstones: Tombstones, collection: Callable[[], str], records: list[dict[str, int]]
) -> None:
    """In any order of the records, an item keeps the newest of its revisions."""
    name = collection()
    newest: dict[str, int] = {}
    for record in records:
        tombstones.record_deletions(name, record)
        for item, revision in record.items():
            newest[item] = max(newest.get(item, 0), revision)
        assert tombstones.deleted(name, list(newest)) == newest
        assert tombstones.newest(name) == max(newest.values(), default=0)


def test_tombstones_in_redis_expire(redis_server: RedisProcess) -> None:
    """Each key has a time to live, also after a record of an older deletion."""
    server = RedisServer(redis_server.url)
    tombstones = RedisTombstones(server)
    for revision in (2, 1):
        tombstones.record_deletions("c", {"a": revision})
    keys = server.client.keys("repertory:*")
    assert len(keys) == 2
    assert all(86_000 < server.client.ttl(key) <= 86_400 for key in keys)


def test_tombstones_in_memory_expire() -> None:
    """A long-running process forgets deletions that are older than a day."""
    now = 0.0
    tombstones = MemoryTombstones(clock=lambda: now)
    tombstones.record_deletions("c", {"a": 1, "b": 1})
    now = 80_000.0
    tombstones.record_deletions("c", {"a": 2})
    now = 90_000.0
    tombstones.record_deletions("c", {"c": 3})
    assert tombstones.deleted("c", ["a", "b", "c"]) == {"a": 2, "c": 3}
    now = 1_000_000.0
    assert tombstones.deleted("c", ["a", "c"]) == {}
    assert tombstones.newest("c") == 0


def test_a_damaged_tombstone_in_redis_is_none(redis_server: RedisProcess) -> None:
    """An unreadable value counts as missing, and the next deletion replaces it."""
    server = RedisServer(redis_server.url)
    server.client.flushall()
    tombstones = RedisTombstones(server)
    tombstones.record_deletions("c", {"a": 2})
    for key in server.client.keys("repertory:*"):
        server.client.set(key, "x")
    assert tombstones.deleted("c", ["a"]) == {}
    assert tombstones.newest("c") == 0
    tombstones.record_deletions("c", {"a": 1})
    assert tombstones.deleted("c", ["a"]) == {"a": tombstones.newest("c")} == {"a": 1}
