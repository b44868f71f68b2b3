"""What every adapter of the coordination ports does: run in memory and on a real Redis."""

import threading
import uuid
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from repertory.coordination import failures as failures_module
from repertory.coordination.claims import Claims, MemoryClaims, RedisClaims
from repertory.coordination.deltas import REMOVED, Deltas, MemoryDeltas, RedisDeltas
from repertory.coordination.failures import Failure, Failures, MemoryFailures, RedisFailures
from repertory.coordination.redis_server import RedisServer
from repertory.coordination.status import MemoryStatus, RedisStatus, StatusBoard
from repertory.coordination.tombstones import MemoryTombstones, RedisTombstones, Tombstones
from tests.support.redis_server import RedisProcess

Make = Callable[[type, Callable[[RedisServer], Any]], Any]

laws = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
ids = st.sampled_from(["python/fmt", "git__commit", "a:b", "ключ", "with space", "%s\n"])


@pytest.fixture(params=["memory", "redis"])
def make(request: pytest.FixtureRequest) -> Make:
    """Makes the adapter in turn, of its class in memory or in Redis."""
    if request.param == "memory":
        return lambda memory, _redis: memory()
    server = RedisServer(request.getfixturevalue("redis_server").url)
    return lambda _memory, redis: redis(server)


@pytest.fixture
def collection() -> Callable[[], str]:
    """Names of collections that were never used."""
    return lambda: f"repertory_{uuid.uuid4().hex[:16]}_minilm-r1_g1"


# Tombstones


@pytest.fixture
def tombstones(make: Make) -> Tombstones:
    """No tombstones."""
    made: Tombstones = make(MemoryTombstones, RedisTombstones)
    return made


def test_what_was_never_buried_is_not(
    tombstones: Tombstones, collection: Callable[[], str]
) -> None:
    """Only what was buried in the same collection is found; nothing may be asked and buried."""
    name = collection()
    tombstones.bury(name, {})
    assert tombstones.buried(name, []) == {}
    tombstones.bury(name, {"a": 1_760_000_000_123, "b": 0})
    assert tombstones.buried(name, ["b", "c", "a", "a"]) == {"a": 1_760_000_000_123, "b": 0}
    assert tombstones.buried(collection(), ["a"]) == {}


@laws
@given(st.lists(st.dictionaries(ids, st.integers(0, 2**53)), max_size=8))
def test_the_newest_revision_stays(
    tombstones: Tombstones, collection: Callable[[], str], burials: list[dict[str, int]]
) -> None:
    """Whatever the order of burials, each item is buried at the newest revision of its own."""
    name = collection()
    newest: dict[str, int] = {}
    for burial in burials:
        tombstones.bury(name, burial)
        for item, revision in burial.items():
            newest[item] = max(newest.get(item, 0), revision)
        assert tombstones.buried(name, list(newest)) == newest
        assert tombstones.newest(name) == max(newest.values(), default=0)


def test_tombstones_in_redis_expire(redis_server: RedisProcess) -> None:
    """Each has a time to live, which an older burial does not take away."""
    server = RedisServer(redis_server.url)
    tombstones = RedisTombstones(server)
    for revision in (2, 1):
        tombstones.bury("c", {"a": revision})
    keys = server.client.keys("repertory:*")
    assert len(keys) == 2
    assert all(86_000 < server.client.ttl(key) <= 86_400 for key in keys)


def test_tombstones_in_memory_expire() -> None:
    """A process that runs for weeks forgets what was deleted more than a day ago."""
    now = 0.0
    tombstones = MemoryTombstones(clock=lambda: now)
    tombstones.bury("c", {"a": 1, "b": 1})
    now = 80_000.0
    tombstones.bury("c", {"a": 2})
    now = 90_000.0
    tombstones.bury("c", {"c": 3})
    assert tombstones.buried("c", ["a", "b", "c"]) == {"a": 2, "c": 3}


# Claims


@pytest.fixture
def claims(make: Make) -> Claims:
    """Claims of one process."""
    made: Claims = make(MemoryClaims, RedisClaims)
    return made


def test_a_claim_is_had_once(claims: Claims) -> None:
    """A name is given out once until it is let go; asking for it twice at once is asking once."""
    assert claims.take([], 60) == set()
    assert claims.take(["a", "b", "a"], 60) == {"a", "b"}
    assert claims.take(["a", "c"], 60) == {"c"}
    claims.release(["a", "never taken"])
    claims.release([])
    assert claims.take(["a", "b", "c"], 60) == {"a"}


@laws
@given(st.lists(st.tuples(st.booleans(), st.sets(ids)), max_size=12))
def test_claims_are_exclusive(make: Make, steps: list[tuple[bool, set[str]]]) -> None:
    """After any taking and letting go, exactly what is not held can be had."""
    claims: Claims = make(MemoryClaims, RedisClaims)
    held: set[str] = set()
    for taking, names in steps:
        if taking:
            assert claims.take(sorted(names), 60) == names - held
            held |= names
        else:
            claims.release(names)
            held -= names
    claims.release(held)


def test_threads_never_have_the_same_claim(claims: Claims) -> None:
    """Of many threads that ask at once, one gets each name."""
    names = [f"text {number}" for number in range(50)]
    taken: list[str] = []
    together = threading.Barrier(8)

    def ask() -> None:
        together.wait()
        for name in names:
            taken.extend(claims.take([name], 60))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(names)


def test_claims_in_memory_end() -> None:
    """A claim that is not let go is had again when its time is over."""
    now = SimpleNamespace(time=0.0)
    claims = MemoryClaims(lambda: now.time)
    claims.take(["a"], 10)
    now.time = 9.9
    assert claims.take(["a"], 10) == set()
    now.time = 10.0
    assert claims.take(["a"], 10) == {"a"}


def test_claims_in_redis_end_and_have_an_owner(redis_server: RedisProcess) -> None:
    """A claim has a time to live; no other process can let go of it or take it before."""
    one, other = (RedisClaims(RedisServer(redis_server.url)) for _ in range(2))
    assert one.take(["a"], 0.5) == {"a"}
    server = RedisServer(redis_server.url)
    assert 0 < server.client.pttl("repertory:claim:a") <= 500
    other.release(["a"])
    assert other.take(["a"], 60) == set()
    one.release(["a"])
    assert other.take(["a"], 60) == {"a"}


# Deltas


@pytest.fixture
def deltas(make: Make) -> Deltas:
    """Streams of collections."""
    made: Deltas = make(MemoryDeltas, RedisDeltas)
    return made


def test_what_is_announced_is_read(deltas: Deltas, collection: Callable[[], str]) -> None:
    """A reader gets what was announced after its position, in one delta, and each only once."""
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


def test_nothing_is_no_announcement(deltas: Deltas, collection: Callable[[], str]) -> None:
    """Announcing no items leaves no trace; a stream that nothing was announced in is no gap."""
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
def test_a_position_that_the_stream_did_not_give_is_a_gap(
    deltas: Deltas, collection: Callable[[], str], position: str
) -> None:
    """So is the empty one, or what is no position at all; the delta says where to go on."""
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
    """Positions are of one collection."""
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
def test_any_chunking_gives_the_same(
    deltas: Deltas,
    collection: Callable[[], str],
    steps: list[dict[str, str] | str],
) -> None:
    """However often a stream is read in between, the union of what is read is the same."""
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
def test_trimming_is_a_gap_for_who_lags(
    deltas: Deltas, collection: Callable[[], str], before: int, trimmed: int, after: int
) -> None:
    """Whoever has read up to where a stream was trimmed misses nothing; others see a gap."""
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
    deltas.trim(name, positions[0])  # an older position brings nothing back and takes nothing away
    for number, position in enumerate(positions):
        delta = deltas.since(name, position)
        assert delta.gap == (number < cut)
        if not delta.gap:
            assert set(delta.hashes) == {f"item {n}" for n in range(number, before + after)}


def test_a_stream_that_was_dropped_is_another(
    deltas: Deltas, collection: Callable[[], str]
) -> None:
    """Positions in a stream that was dropped are gaps in its successor, however long that grows."""
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


def test_a_stream_is_bounded(
    deltas: Deltas, collection: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest announcements go when nobody trims; whoever lags so far sees a gap."""
    monkeypatch.setattr("repertory.coordination.deltas.MOST_ANNOUNCEMENTS", 100)
    name = collection()
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
    """What is announced while a reader waits comes at once, whether something was there before."""
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


def test_waiting_in_vain_ends(deltas: Deltas, collection: Callable[[], str]) -> None:
    """A reader that waits gets an empty delta when the time is over; a gap is not waited for."""
    name = collection()
    position = deltas.position(name)
    assert deltas.since(name, position, wait=0.05) == deltas.since(name, position)
    assert deltas.since(name, "", wait=60).gap


def test_a_reader_that_waits_sees_a_drop(deltas: Deltas, collection: Callable[[], str]) -> None:
    """A stream that is lost while a reader waits is a gap to it, well before its time is over."""
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


def test_writers_at_once_lose_nothing(deltas: Deltas, collection: Callable[[], str]) -> None:
    """What threads announce at the same time is all read, by several readers, without a gap."""
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


# Failures


@pytest.fixture
def failures(make: Make) -> Failures:
    """An empty list of failures."""
    made: Failures = make(MemoryFailures, RedisFailures)
    return made


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
    """What is added comes back whole and in order; of one id the last is kept, at the end."""
    assert failures.list() == []
    for number in (2, 1, 3):
        failures.add(failure(number))
    assert failures.list() == [failure(2), failure(1), failure(3)]
    failures.add(failure(2, "Something else."))
    assert failures.list() == [failure(1), failure(3), failure(2, "Something else.")]


def test_failures_are_removed_once(failures: Failures) -> None:
    """Removing gives what was there, once; what is not there is passed over."""
    for number in range(3):
        failures.add(failure(number))
    assert list(failures.remove([])) == []
    assert list(failures.remove(["job 2", "no job", "job 0", "job 2"])) == [failure(2), failure(0)]
    assert list(failures.remove(["job 2"])) == []
    assert failures.list() == [failure(1)]


def test_the_oldest_failures_go(failures: Failures, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list is bounded; what was added first goes first."""
    monkeypatch.setattr(failures_module, "MOST_FAILURES", 5)
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
def test_damaged_failures_are_passed_over(redis_server: RedisProcess, data: bytes) -> None:
    """One that cannot be read is not listed, hides no other, and can be removed."""
    server = RedisServer(redis_server.url)
    failures = RedisFailures(server)
    for number in range(3):
        failures.add(failure(number))
    server.client.hset("repertory:failures", "job 1", data)
    server.client.rpush("repertory:failures:order", "without an entry")
    assert failures.list() == [failure(0), failure(2)]
    assert list(failures.remove(["job 1", "job 2"])) == [failure(2)]
    assert failures.list() == [failure(0)]


# Status


@pytest.fixture
def status(make: Make) -> StatusBoard:
    """An empty board."""
    made: StatusBoard = make(MemoryStatus, RedisStatus)
    return made


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """The clock on the wall, to be set."""
    clock = SimpleNamespace(time=1_760_000_000.5)
    monkeypatch.setattr("repertory.coordination.status.time.time", lambda: clock.time)
    return clock


def test_the_last_word_counts(status: StatusBoard, now: SimpleNamespace) -> None:
    """What a process says replaces what it said, with the time; others' words stay."""
    assert status.said() == {}
    status.say("watch", {"sources": [{"name": "docs", "seen": 1.5}], "old": None})
    status.say("worker:host:1", {})
    now.time += 5
    status.say("watch", {"sources": [], "„": "ü"})
    assert status.said() == {
        "watch": {"sources": [], "„": "ü", "at": now.time},
        "worker:host:1": {"at": now.time - 5},
    }


def test_the_silent_are_forgotten(status: StatusBoard, now: SimpleNamespace) -> None:
    """After ten minutes of silence nothing of a process is left, until it speaks again."""
    status.say("watch", {"a": 1})
    now.time += 300
    status.say("worker:host:1", {})
    now.time += 301
    assert set(status.said()) == {"worker:host:1"}
    status.say("watch", {"a": 2})
    assert status.said()["watch"] == {"a": 2, "at": now.time}


def test_what_was_said_is_the_callers(status: StatusBoard) -> None:
    """Changing what was read changes nothing on the board."""
    status.say("watch", {"a": 1})
    status.said()["watch"]["a"] = 2
    assert status.said()["watch"]["a"] == 1


def test_counters_add_up(status: StatusBoard) -> None:
    """Counters of all kinds of numbers grow from nothing."""
    assert status.counters() == {}
    status.count({})
    status.count({"texts": 3, "seconds": 0.25})
    status.count({"texts": 4, "ошибки": 1})
    assert status.counters() == pytest.approx({"texts": 7, "seconds": 0.25, "ошибки": 1})


def test_threads_count_together(status: StatusBoard) -> None:
    """No count is lost when many count at once."""

    def count() -> None:
        for _ in range(50):
            status.count({"texts": 1})

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert status.counters() == {"texts": 200}


@pytest.mark.parametrize("data", [b"", b"[]", b'{"at": "x", "status": {}}', b"\xff", b"{}"])
def test_damaged_words_are_passed_over(redis_server: RedisProcess, data: bytes) -> None:
    """What cannot be read on the board hides nothing else, and goes."""
    server = RedisServer(redis_server.url)
    status = RedisStatus(server)
    status.say("watch", {"a": 1})
    server.client.hset("repertory:status", "worker:host:1", data)
    assert set(status.said()) == {"watch"}
    assert server.client.hlen("repertory:status") == 1


def test_all_is_under_one_prefix(redis_server: RedisProcess) -> None:
    """A Redis that others use too holds our keys under ``repertory:`` alone."""
    server = RedisServer(redis_server.url)
    RedisTombstones(server).bury("c", {"a": 1})
    RedisClaims(server).take(["a"], 60)
    RedisDeltas(server).announce("c", {"a": "1"})
    RedisFailures(server).add(failure(1))
    RedisFailures(server).attempt("job 1")
    RedisStatus(server).say("watch", {})
    RedisStatus(server).count({"a": 1})
    keys = server.client.keys("*")
    assert len(keys) == 9
    assert sorted(keys) == sorted(server.client.keys("repertory:*"))
