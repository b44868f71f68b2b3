"""The contract of ``Deltas``, tested in memory and on a real Redis."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.coordination.deltas import (
    MAX_ANNOUNCEMENTS,
    REMOVED,
    Deltas,
    MemoryDeltas,
    RedisDeltas,
)
from repertory.coordination.redis_server import RedisServer
from tests.support.laws import ids, laws
from tests.support.redis_server import RedisProcess

WEEK_S = 604_800


@pytest.fixture(params=["memory", "redis"])
def make(request: pytest.FixtureRequest) -> Callable[[int], Deltas]:
    """Make each adapter in turn, with a given limit of announcements."""
    if request.param == "memory":
        return MemoryDeltas
    server = RedisServer(request.getfixturevalue("redis_server").url)
    return lambda limit: RedisDeltas(server, limit)


@pytest.fixture
def deltas(make: Callable[[int], Deltas]) -> Deltas:
    """Each adapter in turn, with the default limit."""
    return make(MAX_ANNOUNCEMENTS)


def test_announcements_are_read(deltas: Deltas, collection: Callable[[], str]) -> None:
    """One delta has all announcements of the collection after the reader's position."""
    name = collection()
    start = deltas.position(name)
    deltas.announce(name, {"a": "1", "b": "1"})
    deltas.announce(name, {"a": "2", "b": REMOVED})
    deltas.announce(collection(), {"other": "1"})
    delta = deltas.since(name, start)
    assert (delta.hashes, delta.gap) == ({"a": "2", "b": REMOVED}, False)
    assert delta.position == deltas.position(name)
    assert deltas.since(name, delta.position).hashes == {}
    assert deltas.since(name, start) == delta
    assert deltas.length(name) == 2


def test_an_empty_announcement_does_nothing(deltas: Deltas, collection: Callable[[], str]) -> None:
    """An announcement without items is not stored; an unused stream has no gap."""
    name = collection()
    assert deltas.length(name) == 0
    position = deltas.position(name)
    deltas.announce(name, {})
    delta = deltas.since(name, position)
    assert (delta.position, delta.hashes, delta.gap) == (position, {}, False)
    assert deltas.length(name) == 0


@pytest.mark.parametrize(
    "position",
    ["", "17", "life-3", "/-1", "x/1-0", "a-99999999999999999999", "\ud800-1", "-\n", "0-0"],
)
def test_an_invalid_position_is_a_gap(
    deltas: Deltas, collection: Callable[[], str], position: str
) -> None:
    """An unknown, empty or invalid position is a gap; the delta has the position to go on from."""
    name = collection()
    deltas.announce(name, {"a": "1"})
    delta = deltas.since(name, position)
    assert (delta.gap, delta.hashes) == (True, {})
    assert delta.position == deltas.position(name)
    assert not deltas.since(name, delta.position).gap
    deltas.trim(name, position)
    assert deltas.length(name) == 1


def test_a_position_of_another_stream_is_a_gap(
    deltas: Deltas, collection: Callable[[], str]
) -> None:
    """A position is valid only for its collection."""
    one, other = collection(), collection()
    deltas.announce(one, {"a": "1"})
    deltas.announce(other, {"a": "1"})
    assert deltas.since(one, deltas.position(other)).gap


@laws
@given(
    st.lists(
        st.one_of(
            st.dictionaries(ids, st.sampled_from(["1", "2", REMOVED])),
            st.just("read"),
        ),
        max_size=12,
    )
)
def test_any_chunking_gives_the_same_union(
    deltas: Deltas,
    collection: Callable[[], str],
    steps: list[dict[str, str] | str],
) -> None:
    """The union of the deltas does not depend on how often the stream is read."""
    name = collection()
    position = start = deltas.position(name)
    union: dict[str, str] = {}
    expected: dict[str, str] = {}
    for step in [*steps, "read"]:
        if isinstance(step, dict):
            deltas.announce(name, step)
            expected |= step
        else:
            delta = deltas.since(name, position)
            assert not delta.gap
            union |= delta.hashes
            position = delta.position
    assert union == expected == deltas.since(name, start).hashes


@laws
@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6))
def test_trimming_is_a_gap_for_readers_that_lag(
    deltas: Deltas, collection: Callable[[], str], before: int, trimmed: int, after: int
) -> None:
    """Readers at or past the trimmed position miss nothing; others see a gap."""
    name = collection()
    positions = [deltas.position(name)]
    for number in range(before):
        deltas.announce(name, {f"item {number}": "1"})
        positions.append(deltas.position(name))
    cut = min(trimmed, before)
    deltas.trim(name, positions[cut])
    for number in range(before, before + after):
        deltas.announce(name, {f"item {number}": "1"})
    assert deltas.length(name) == before - cut + after
    deltas.trim(name, positions[0])  # trimming up to an older position changes nothing
    for number, position in enumerate(positions):
        delta = deltas.since(name, position)
        assert delta.gap == (number < cut)
        if not delta.gap:
            assert set(delta.hashes) == {f"item {n}" for n in range(number, before + after)}


def test_a_drop_invalidates_all_positions(deltas: Deltas, collection: Callable[[], str]) -> None:
    """Positions of a dropped stream are gaps in the new stream of the same collection."""
    name = collection()
    deltas.drop(name)
    empty = deltas.position(name)
    deltas.announce(name, {"a": "1"})
    full = deltas.position(name)
    deltas.drop(name)
    for _ in range(3):
        assert deltas.since(name, empty).gap
        assert deltas.since(name, full).gap
        deltas.announce(name, {"b": "1"})
    deltas.trim(name, full)
    assert deltas.length(name) == 3


def test_a_stream_is_bounded(make: Callable[[int], Deltas], collection: Callable[[], str]) -> None:
    """Without trimming, the oldest announcements are dropped, which is a gap for slow readers."""
    deltas, name = make(100), collection()
    start = deltas.position(name)
    for _ in range(99):
        deltas.announce(name, {"a": "1"})
    assert not deltas.since(name, start).gap
    late = deltas.position(name)
    for _ in range(400):
        deltas.announce(name, {"b": "1"})
    assert deltas.length(name) <= 250  # Redis drops them in blocks of a hundred
    assert deltas.since(name, start).gap
    assert deltas.since(name, late).gap


def test_a_reader_that_waits_is_woken(deltas: Deltas, collection: Callable[[], str]) -> None:
    """An announcement wakes a waiting reader at once, in a new stream or an old one."""
    name = collection()
    for number in range(2):
        position = deltas.position(name)
        found: list[dict[str, str]] = []
        reader = threading.Thread(
            target=lambda at, into: into.append(deltas.since(name, at, wait=60).hashes),
            args=(position, found),
        )
        reader.start()
        deltas.announce(name, {"a": str(number)})
        reader.join()
        assert found == [{"a": str(number)}]


def test_waiting_times_out(deltas: Deltas, collection: Callable[[], str]) -> None:
    """After the timeout a reader gets an empty delta; a gap is returned at once."""
    name = collection()
    position = deltas.position(name)
    assert deltas.since(name, position, wait=0.05) == deltas.since(name, position)
    assert deltas.since(name, "", wait=60).gap


def test_a_reader_that_waits_sees_a_drop(deltas: Deltas, collection: Callable[[], str]) -> None:
    """A waiting reader gets a gap as soon as the stream is dropped, before the timeout."""
    name = collection()
    deltas.announce(name, {"a": "1"})
    position = deltas.position(name)
    found: list[bool] = []
    reader = threading.Thread(
        target=lambda: found.append(deltas.since(name, position, wait=60).gap)
    )
    reader.start()
    deltas.drop(name)
    reader.join()
    assert found == [True]


def test_concurrent_writers_lose_nothing(deltas: Deltas, collection: Callable[[], str]) -> None:
    """Several readers get all announcements of concurrent writers, without a gap."""
    name = collection()
    start = deltas.position(name)
    everything = {f"{writer} {number}" for writer in range(4) for number in range(25)}

    def write(writer: int) -> None:
        for number in range(25):
            deltas.announce(name, {f"{writer} {number}": "1"})

    def read(into: set[str]) -> None:
        position = start
        while into != everything:
            delta = deltas.since(name, position, wait=60)
            assert not delta.gap
            into.update(delta.hashes)
            position = delta.position

    found: list[set[str]] = [set(), set()]
    threads = [threading.Thread(target=read, args=(into,)) for into in found]
    threads += [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [everything, everything]


def test_streams_in_redis_expire(redis_server: RedisProcess) -> None:
    """A stream lives for a week after its creation and after each announcement.

    Reading and trimming do not renew the time to live.
    """
    server = RedisServer(redis_server.url)
    deltas = RedisDeltas(server)
    position = deltas.position("c")
    assert WEEK_S - 60 < server.client.ttl("repertory:deltas:c") <= WEEK_S
    server.client.expire("repertory:deltas:c", 60)
    deltas.announce("c", {"a": "1"})
    assert WEEK_S - 60 < server.client.ttl("repertory:deltas:c") <= WEEK_S
    server.client.expire("repertory:deltas:c", 60)
    assert deltas.since("c", position).hashes == {"a": "1"}
    deltas.trim("c", position)
    assert server.client.ttl("repertory:deltas:c") <= 60


@pytest.mark.parametrize(
    "fields",
    [{"hashes": b""}, {"hashes": b"[1]"}, {"hashes": b"\xff"}, {"hashes": b"{}", "more": b"{}"}],
)
def test_a_damaged_announcement_is_a_gap(
    redis_server: RedisProcess, fields: dict[Any, Any]
) -> None:
    """An unreadable announcement is a gap, and readers continue after it."""
    server = RedisServer(redis_server.url)
    deltas = RedisDeltas(server)
    position = deltas.position("c")
    epoch = position.rpartition("/")[2].partition("-")[0]
    server.client.xadd("repertory:deltas:c", fields, id=f"{epoch}-1")
    delta = deltas.since("c", position)
    assert delta.gap
    deltas.announce("c", {"a": "1"})
    assert deltas.since("c", delta.position).hashes == {"a": "1"}
