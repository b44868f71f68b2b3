"""Redis is killed, restarted, flushed, full or hanging: clear errors, and recovery."""

import os
import signal
import socketserver
import threading
from collections.abc import Callable, Iterator
from functools import partial

import msgspec
import pytest

from repertory.catalogue.item import Item, Kind
from repertory.coordination.claims import RedisClaims
from repertory.coordination.deltas import RedisDeltas
from repertory.coordination.failures import Failure, RedisFailures
from repertory.coordination.redis_server import RedisServer
from repertory.coordination.snapshots import RedisSnapshots, Stored
from repertory.coordination.status import RedisStatus
from repertory.coordination.tombstones import RedisTombstones
from repertory.coordination.unused_since import RedisUnusedSince
from repertory.errors import StoreCorruptError, StoreError
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.snapshot import unpack
from tests.support.keyword_search import pack
from tests.support.redis_server import RedisProcess

FAILURE = Failure(id="j", collection="c", items={"a": "1"}, error="No.", at=1.0, attempts=3)

# Every call of every adapter.
PARTS = {"one": lambda: b"part"}
CALLS: dict[str, Callable[[RedisServer], object]] = {
    "record deletions": lambda server: RedisTombstones(server).record_deletions("c", {"a": 1}),
    "deleted": lambda server: RedisTombstones(server).deleted("c", ["a"]),
    "take": lambda server: RedisClaims(server).take(["a"], 60),
    "release": lambda server: RedisClaims(server).release(["a"]),
    "announce": lambda server: RedisDeltas(server).announce("c", {"a": "1"}),
    "since": lambda server: RedisDeltas(server).since("c", "", wait=60),
    "position": lambda server: RedisDeltas(server).position("c"),
    "trim": lambda server: RedisDeltas(server).trim("c", "run/1-1"),
    "length": lambda server: RedisDeltas(server).length("c"),
    "drop": lambda server: RedisDeltas(server).drop("c"),
    "add": lambda server: RedisFailures(server).add(FAILURE),
    "list": lambda server: RedisFailures(server).list(),
    "failed items": lambda server: RedisFailures(server).failed_items(),
    "count of failures": lambda server: RedisFailures(server).count(),
    "version": lambda server: RedisFailures(server).version(),
    "remove": lambda server: RedisFailures(server).remove(["j"]),
    "forgive": lambda server: RedisFailures(server).forgive("c", ["a"]),
    "clear": lambda server: RedisFailures(server).clear(),
    "attempt": lambda server: RedisFailures(server).attempt("j"),
    "forget attempts": lambda server: RedisFailures(server).forget(["j"]),
    "unused": lambda server: RedisUnusedSince(server).update(["c"], 1.0),
    "report": lambda server: RedisStatus(server).report("watch", {}),
    "reports": lambda server: RedisStatus(server).reports(),
    "count": lambda server: RedisStatus(server).count({"a": 1}),
    "counters": lambda server: RedisStatus(server).counters(),
    "save": lambda server: RedisSnapshots(server).save("c", b"data", PARTS),
    "load": lambda server: RedisSnapshots(server).load("c"),
    "forget": lambda server: RedisSnapshots(server).drop("c"),
}


@pytest.fixture
def process() -> Iterator[RedisProcess]:
    """A Redis for a single test."""
    with RedisProcess() as running:
        yield running


def test_an_unavailable_server_is_an_error(process: RedisProcess) -> None:
    """Every call raises StoreError with the address of the server; the same objects recover."""
    server = RedisServer(process.url)
    for call in CALLS.values():
        call(server)
    process.kill()
    for call in CALLS.values():
        with pytest.raises(StoreError, match=rf"127.0.0.1:{process.port}/0 cannot be reached"):
            call(server)
    process.restart()
    for call in CALLS.values():
        call(server)


def test_a_restart_between_two_calls_is_harmless(process: RedisProcess) -> None:
    """The next call restores connections and scripts."""
    server = RedisServer(process.url)
    for call in CALLS.values():
        call(server)
        process.restart()
        call(server)


@pytest.mark.parametrize("persistent", [False, True])
def test_a_restart_is_a_gap(persistent: bool) -> None:
    """Every older position is a gap, because the last announcements may be lost."""
    with RedisProcess(persistent=persistent) as process:
        deltas = RedisDeltas(RedisServer(process.url))
        empty = deltas.position("c")
        deltas.announce("c", {"a": "1"})
        positions = [empty, deltas.position("c")]
        process.restart()
        assert deltas.length("c") == int(persistent)
        assert [deltas.since("c", position).gap for position in positions] == [True, True]
        deltas.announce("c", {"a": "2"})
        assert [deltas.since("c", position, 60).gap for position in positions] == [True, True]
        position = deltas.position("c")
        deltas.announce("c", {"a": "3"})
        assert deltas.since("c", position).hashes == {"a": "3"}


def test_a_flush_is_a_gap(process: RedisProcess) -> None:
    """Every older position is a gap, whatever was announced before the next read."""
    deltas = RedisDeltas(RedisServer(process.url))
    for announced in range(3):
        positions = [deltas.position("c")]
        deltas.announce("c", {"a": "1"})
        positions.append(deltas.position("c"))
        process.flush()
        for _ in range(announced):
            deltas.announce("c", {"b": "1"})
        assert all(deltas.since("c", position, 60).gap for position in positions)


@pytest.mark.parametrize("announced", [False, True])
def test_a_flush_is_a_gap_for_waiting_readers(process: RedisProcess, announced: bool) -> None:
    """They notice it soon, with or without later announcements."""
    deltas = RedisDeltas(RedisServer(process.url))
    position = deltas.position("c")
    found: list[bool] = []
    reader = threading.Thread(target=lambda: found.append(deltas.since("c", position, 60).gap))
    reader.start()
    process.flush()
    if announced:
        deltas.announce("c", {"a": "1"})
    reader.join()
    assert found == [True]


def test_a_crash_is_an_error_for_waiting_readers(process: RedisProcess) -> None:
    """They get the error well before their timeout."""
    deltas = RedisDeltas(RedisServer(process.url))
    position = deltas.position("c")
    found: list[str] = []

    def read() -> None:
        try:
            deltas.since("c", position, wait=60)
        except StoreError as error:
            found.append(str(error))

    reader = threading.Thread(target=read)
    reader.start()
    process.kill()
    reader.join()
    assert "cannot be reached" in found[0]


def test_every_adapter_is_empty_after_a_flush(process: RedisProcess) -> None:
    """No adapter keeps old data in memory."""
    server = RedisServer(process.url)
    for name in ("record deletions", "take", "add", "attempt", "report", "count", "save"):
        CALLS[name](server)
    process.flush()
    assert RedisTombstones(server).deleted("c", ["a"]) == {}
    assert RedisClaims(server).take(["a"], 60) == {"a"}
    assert RedisFailures(server).list() == []
    assert RedisFailures(server).failed_items() == {}
    assert RedisFailures(server).attempt("j") == 1
    assert RedisStatus(server).reports() == {}
    assert RedisStatus(server).counters() == {}
    assert RedisSnapshots(server).load("c") is None


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: data[:4], lambda data: data + b"more"]
)
def test_a_damaged_snapshot_is_detected(
    redis_server: RedisProcess, damage: Callable[[bytes], bytes]
) -> None:
    """A truncated or changed snapshot in Redis is never used as an index."""
    server = RedisServer(redis_server.url)
    item = Item(id="a", kind=Kind.TOOL, name="a", source="s")
    data = pack(KeywordIndex.empty().updated((), [item]), 1, "x/1-1")
    snapshots = RedisSnapshots(server)
    snapshots.save(
        "c", data.head, {name: partial(bytes, one) for name, one in data.segments.items()}
    )
    assert unpack(*(snapshots.load("c") or ())).position == "x/1-1"
    (name,) = data.segments
    key = f"repertory:words:c:{name}:0"
    server.client.set(key, damage(data.segments[name]))
    with pytest.raises(StoreCorruptError):
        unpack(*(snapshots.load("c") or ()))
    server.client.delete(key)
    assert snapshots.load("c") is None
    server.client.set("repertory:words:c", damage(data.head))
    assert snapshots.load("c") is None


@pytest.mark.parametrize(
    "segments", [{"s": 10**15}, {f"s{number}": 10_000 for number in range(1_000)}, {"s": -1}]
)
def test_a_snapshot_with_too_many_pieces_is_ignored(
    redis_server: RedisProcess, segments: dict[str, int]
) -> None:
    """Anybody with access to Redis could write it, and each piece costs a request."""
    server = RedisServer(redis_server.url)
    server.client.flushall()
    server.client.set("repertory:words:c", msgspec.msgpack.encode([b"head", segments]))
    snapshots = RedisSnapshots(server)
    assert snapshots.load("c") is None
    snapshots.save("c", b"new", {})
    assert snapshots.load("c") == Stored(b"new", {})


def test_a_wrong_password_is_an_error() -> None:
    """A missing password is an error too, and the error does not show the password."""
    with RedisProcess(password="hunter2") as process:
        RedisStatus(RedisServer(process.url)).report("watch", {})
        for wrong in (":hunter3@", "user:hunter3@", ""):
            server = RedisServer(f"redis://{wrong}127.0.0.1:{process.port}/0?client_name=hunter3")
            with pytest.raises(StoreError, match="refused us: check the user") as refused:
                RedisStatus(server).report("watch", {})
            assert "hunter" not in str(refused.value)


def test_a_full_server_is_an_error(process: RedisProcess) -> None:
    """Without memory, writes raise an error and reads continue."""
    server = RedisServer(process.url)
    snapshots, deltas = RedisSnapshots(server), RedisDeltas(server)
    snapshots.save("c", b"data", PARTS)
    deltas.announce("c", {"a": "1"})
    server.client.config_set("maxmemory", 1)
    for write in (
        lambda: snapshots.save("c", b"other", PARTS),
        lambda: deltas.announce("c", {"a": "2"}),
        lambda: RedisClaims(server).take(["a"], 60),
    ):
        with pytest.raises(StoreError, match="is full: give it more memory"):
            write()
    assert snapshots.load("c") == Stored(b"data", {"one": b"part"})
    server.client.config_set("maxmemory", 0)
    deltas.announce("c", {"a": "2"})


def test_a_server_that_hangs_times_out(
    process: RedisProcess,
) -> None:
    """It accepts connections, but does not answer."""
    server = RedisServer(process.url, timeout=0.2)
    claims = RedisClaims(server)
    claims.take(["a"], 60)
    os.kill(process.pid, signal.SIGSTOP)
    with pytest.raises(StoreError, match="cannot be reached"):
        claims.take(["b"], 60)
    os.kill(process.pid, signal.SIGCONT)
    assert claims.take(["c"], 60) == {"c"}


def test_another_program_at_the_port_is_an_error() -> None:
    """A server with another protocol is not mistaken for Redis."""

    class Talker(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1_000)
            self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Talker) as other:
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        server = RedisServer(f"redis://127.0.0.1:{other.server_address[1]}/0")
        for call in CALLS.values():
            with pytest.raises(StoreError):
                call(server)
        other.shutdown()
        thread.join()


def test_a_key_of_another_type_is_an_error(redis_server: RedisProcess) -> None:
    """The error names the type, and the next save replaces the key."""
    server = RedisServer(redis_server.url)
    server.client.rpush("repertory:words:c", "text")
    with pytest.raises(StoreError, match="failed: WRONGTYPE"):
        RedisSnapshots(server).load("c")
    RedisSnapshots(server).save("c", b"data", PARTS)
    assert RedisSnapshots(server).load("c") == Stored(b"data", {"one": b"part"})


def test_all_keys_have_one_prefix(redis_server: RedisProcess) -> None:
    """In a shared Redis, all our keys start with ``repertory:``."""
    server = RedisServer(redis_server.url)
    RedisTombstones(server).record_deletions("c", {"a": 1})
    RedisClaims(server).take(["a"], 60)
    RedisDeltas(server).announce("c", {"a": "1"})
    RedisFailures(server).add(FAILURE)
    RedisFailures(server).attempt("j")
    RedisStatus(server).report("watch", {})
    RedisStatus(server).count({"a": 1})
    RedisSnapshots(server).save("c", b"data", PARTS)
    RedisUnusedSince(server).update(["c"], 1.0)
    keys = server.client.keys("*")
    assert len(keys) == 14
    assert sorted(keys) == sorted(server.client.keys("repertory:*"))
