"""What every adapter of ``SnapshotStore`` does: run on files and on a real Redis."""

import random
import threading
from pathlib import Path

import pytest

from repertory.coordination.redis_server import RedisServer
from repertory.coordination.snapshots import (
    PIECE_SIZE,
    FileSnapshots,
    RedisSnapshots,
    SnapshotStore,
)
from tests.support.redis_server import RedisProcess

NAME = "repertory_0123456789abcdef_bge-small-en-v1.5-r1_g1"
OTHER = "repertory_0123456789abcdef_bge-small-en-v1.5-r1_g10"


@pytest.fixture(params=["files", "redis"])
def snapshots(request: pytest.FixtureRequest, tmp_path: Path) -> SnapshotStore:
    """Each adapter in turn, empty."""
    if request.param == "files":
        return FileSnapshots(tmp_path / "data" / "keywords")
    return RedisSnapshots(RedisServer(request.getfixturevalue("redis_server").url))


def test_saved_snapshots_are_loaded(snapshots: SnapshotStore) -> None:
    """Each collection has its last snapshot, byte by byte, or none."""
    assert snapshots.load(NAME) is None
    snapshots.save(NAME, b"\0\xff\r\nsome")
    snapshots.save(OTHER, b"other")
    assert snapshots.load(NAME) == b"\0\xff\r\nsome"
    snapshots.save(NAME, b"x")
    assert snapshots.load(NAME) == b"x"
    assert snapshots.load(OTHER) == b"other"


def test_dropped_snapshots_are_gone(snapshots: SnapshotStore) -> None:
    """Dropping removes one snapshot, and may be repeated."""
    snapshots.save(NAME, b"some")
    snapshots.save(OTHER, b"other")
    for _ in range(2):
        snapshots.drop(NAME)
        assert snapshots.load(NAME) is None
    assert snapshots.load(OTHER) == b"other"


@pytest.mark.parametrize("size", [PIECE_SIZE - 1, PIECE_SIZE, PIECE_SIZE + 1, 10 * PIECE_SIZE + 17])
def test_large_snapshots_are_unchanged(snapshots: SnapshotStore, size: int) -> None:
    """Tens of megabytes are unchanged, and leave nothing when a smaller one replaces them."""
    data = random.Random(size).randbytes(size)
    snapshots.save(NAME, data)
    assert snapshots.load(NAME) == data
    snapshots.save(NAME, data[:10])
    assert snapshots.load(NAME) == data[:10]


def test_a_snapshot_is_replaced_at_once(snapshots: SnapshotStore) -> None:
    """While several writers save, a reader gets one complete snapshot."""
    written = [bytes([number]) * (PIECE_SIZE + number) for number in range(3)]
    snapshots.save(NAME, written[0])
    failed: list[Exception] = []

    def write(data: bytes) -> None:
        try:
            for _ in range(3):
                snapshots.save(NAME, data)
        except Exception as error:
            failed.append(error)

    writers = [threading.Thread(target=write, args=(data,)) for data in written]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert snapshots.load(NAME) in written
    assert not failed
    assert snapshots.load(NAME) in written


def test_snapshots_in_redis_expire(redis_server: RedisProcess) -> None:
    """One of an unused collection goes a month after its last save."""
    server = RedisServer(redis_server.url)
    snapshots = RedisSnapshots(server)
    key = f"repertory:keywords:{NAME}"
    for data in (b"some", b"other"):
        snapshots.save(NAME, data)
        assert 2_591_000 < server.client.ttl(key) <= 2_592_000
        server.client.expire(key, 60)
