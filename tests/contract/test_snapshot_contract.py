"""The contract of ``SnapshotStore``, tested on files and on a real Redis."""

import random
import threading
from functools import partial
from pathlib import Path

import pytest

from repertory.coordination.redis_server import RedisServer
from repertory.coordination.snapshots import (
    PIECE_SIZE,
    FileSnapshots,
    RedisSnapshots,
    Segments,
    SnapshotStore,
    Stored,
)
from repertory.errors import StoreError
from tests.support.redis_server import RedisProcess

NAME = "repertory_0123456789abcdef_bge-small-en-v1.5-r1_g1"
OTHER = "repertory_0123456789abcdef_bge-small-en-v1.5-r1_g10"


@pytest.fixture(params=["files", "redis"])
def snapshots(request: pytest.FixtureRequest, tmp_path: Path) -> SnapshotStore:
    """Each adapter in turn, empty."""
    if request.param == "files":
        return FileSnapshots(tmp_path / "data" / "keywords")
    return RedisSnapshots(RedisServer(request.getfixturevalue("redis_server").url))


def parts(**segments: bytes) -> Segments:
    """Segments that are packed only when a store asks for them."""
    return {name: partial(bytes, data) for name, data in segments.items()}


def refused() -> bytes:
    """Fail, for a segment that must not be packed again."""
    raise AssertionError


def test_saved_snapshots_are_loaded(snapshots: SnapshotStore) -> None:
    """Loading returns the exact bytes of a collection's last snapshot, or None."""
    assert snapshots.load(NAME) is None
    snapshots.save(NAME, b"\0\xff", parts(a=b"\r\nsome", b=b"more"))
    snapshots.save(OTHER, b"other", parts(a=b"another"))
    assert snapshots.load(NAME) == Stored(b"\0\xff", {"a": b"\r\nsome", "b": b"more"})
    snapshots.save(NAME, b"x", parts(c=b"y"))
    assert snapshots.load(NAME) == Stored(b"x", {"c": b"y"})
    assert snapshots.load(OTHER) == Stored(b"other", {"a": b"another"})
    snapshots.save(NAME, b"empty", {})
    assert snapshots.load(NAME) == Stored(b"empty", {})


def test_a_segment_is_stored_once(snapshots: SnapshotStore) -> None:
    """A stored segment is not packed again unless a snapshot in between left it out."""
    snapshots.save(NAME, b"1", parts(a=b"old", b=b"more"))
    snapshots.save(NAME, b"2", {"b": refused, **parts(c=b"new")})
    assert snapshots.load(NAME) == Stored(b"2", {"b": b"more", "c": b"new"})
    snapshots.save(NAME, b"3", {"c": refused, **parts(a=b"again")})
    assert snapshots.load(NAME) == Stored(b"3", {"a": b"again", "c": b"new"})


def test_dropped_snapshots_are_gone(snapshots: SnapshotStore) -> None:
    """Dropping removes the snapshot of one collection, and may be repeated."""
    snapshots.save(NAME, b"some", parts(a=b"x"))
    snapshots.save(OTHER, b"other", parts(a=b"x"))
    for _ in range(2):
        snapshots.drop(NAME)
        assert snapshots.load(NAME) is None
    assert snapshots.load(OTHER) == Stored(b"other", {"a": b"x"})


def test_a_snapshot_that_cannot_be_dropped_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed drop raises, as an obsolete snapshot could be loaded as the current index."""
    snapshots = FileSnapshots(tmp_path)
    snapshots.save(NAME, b"some", parts(a=b"x"))

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        with pytest.raises(StoreError, match="Permission denied"):
            snapshots.drop(NAME)


def test_a_snapshot_that_does_not_fit_leaves_room_in_redis(redis_server: RedisProcess) -> None:
    """A save that fills Redis deletes its partial data, so that jobs can still be written."""
    server = RedisServer(redis_server.url)
    snapshots = RedisSnapshots(server)
    snapshots.save(NAME, b"1", parts(a=b"old"))
    used = server.client.info("memory")["used_memory"]
    server.client.config_set("maxmemory", used + 4 * PIECE_SIZE)
    try:
        large = random.Random(1).randbytes(6 * PIECE_SIZE)
        with pytest.raises(StoreError):
            snapshots.save(NAME, b"2", parts(a=b"old", b=large))
        assert snapshots.load(NAME) == Stored(b"1", {"a": b"old"})
        assert server.client.set("job", bytes(PIECE_SIZE))
    finally:
        server.client.config_set("maxmemory", 0)
        server.client.delete("job")


@pytest.mark.parametrize("size", [PIECE_SIZE - 1, PIECE_SIZE, PIECE_SIZE + 1, 10 * PIECE_SIZE + 17])
def test_large_segments_are_unchanged(snapshots: SnapshotStore, size: int) -> None:
    """Segments of several pieces are unchanged, and a smaller one replaces them completely."""
    data = random.Random(size).randbytes(size)
    snapshots.save(NAME, b"1", parts(a=data))
    assert snapshots.load(NAME) == Stored(b"1", {"a": data})
    snapshots.save(NAME, b"2", parts(b=data[:10]))
    assert snapshots.load(NAME) == Stored(b"2", {"b": data[:10]})


def test_a_snapshot_is_replaced_atomically(snapshots: SnapshotStore) -> None:
    """While several writers save, a reader always gets one complete snapshot."""
    written = [
        Stored(bytes([number]), {f"s{number}": bytes([number]) * (PIECE_SIZE + number)})
        for number in range(3)
    ]
    snapshots.save(NAME, written[0].head, parts(**written[0].segments))
    failed: list[Exception] = []

    def write(stored: Stored) -> None:
        try:
            for _ in range(3):
                snapshots.save(NAME, stored.head, parts(**stored.segments))
        except Exception as error:
            failed.append(error)

    writers = [threading.Thread(target=write, args=(stored,)) for stored in written]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert snapshots.load(NAME) in written
    assert not failed
    assert snapshots.load(NAME) in written


def test_keys_in_redis_are_small_and_expire(redis_server: RedisProcess) -> None:
    """Each save renews a time to live of 30 days; replaced segments are deleted at once."""
    server = RedisServer(redis_server.url)
    snapshots = RedisSnapshots(server)
    for head in (b"some", b"other"):
        snapshots.save(NAME, head, parts(kept=b"x" * (2 * PIECE_SIZE + 1), **{head.decode(): b"y"}))
        keys = server.client.keys("repertory:*")
        assert len(keys) == 5
        for key in keys:
            assert 2_591_000 < server.client.ttl(key) <= 2_592_000
            assert server.client.strlen(key) <= PIECE_SIZE
            server.client.expire(key, 60)


def test_a_segment_that_redis_has_lost_is_written_again(redis_server: RedisProcess) -> None:
    """A full Redis may evict any key; the snapshot is then missing until the next save."""
    server = RedisServer(redis_server.url)
    snapshots = RedisSnapshots(server)
    snapshots.save(NAME, b"1", parts(a=b"x"))
    server.client.delete(f"repertory:words:{NAME}:a:0")
    assert snapshots.load(NAME) is None
    snapshots.save(NAME, b"1", parts(a=b"x"))
    assert snapshots.load(NAME) == Stored(b"1", {"a": b"x"})


def test_a_snapshot_of_an_earlier_version_is_replaced(tmp_path: Path) -> None:
    """The single file of an earlier version is not loaded, and does not block a save."""
    (tmp_path / f"{NAME}.keywords").write_bytes(b"old")
    snapshots = FileSnapshots(tmp_path)
    assert snapshots.load(NAME) is None
    snapshots.save(NAME, b"1", parts(a=b"x"))
    assert snapshots.load(NAME) == Stored(b"1", {"a": b"x"})
