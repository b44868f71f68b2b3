"""All coordination ports in one object, which the parts of a server receive."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from repertory.coordination.claims import Claims, MemoryClaims, RedisClaims
from repertory.coordination.deltas import Deltas, MemoryDeltas, RedisDeltas
from repertory.coordination.failures import Failures, MemoryFailures, RedisFailures
from repertory.coordination.lease import Lease, RedisLease, SoleLease
from repertory.coordination.snapshots import FileSnapshots, RedisSnapshots, SnapshotStore
from repertory.coordination.status import FileStatus, MemoryStatus, RedisStatus, StatusBoard
from repertory.coordination.tombstones import MemoryTombstones, RedisTombstones, Tombstones
from repertory.coordination.unused_since import MemoryUnusedSince, RedisUnusedSince, UnusedSince
from repertory.data_directory import KEYWORDS

if TYPE_CHECKING:
    from repertory.coordination.redis_server import RedisServer


class Coordination(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """How the parts of a server coordinate, in one process or across a team's."""

    deltas: Deltas
    tombstones: Tombstones
    claims: Claims
    failures: Failures
    status: StatusBoard
    snapshots: SnapshotStore
    lease: Lease
    unused: UnusedSince


def in_process(folder: Path, status_file: Path | None = None) -> Coordination:
    """Coordination within this process: in memory, with snapshots as files.

    Args:
        folder: The folder for the keyword snapshots.
        status_file: The file that keeps the last report of ``watch`` for the next process, if any.
    """
    return Coordination(
        deltas=MemoryDeltas(),
        tombstones=MemoryTombstones(),
        claims=MemoryClaims(),
        failures=MemoryFailures(),
        status=FileStatus(status_file) if status_file else MemoryStatus(),
        snapshots=FileSnapshots(folder / KEYWORDS),
        lease=SoleLease(),
        unused=MemoryUnusedSince(),
    )


def on_redis(server: "RedisServer") -> Coordination:
    """Coordination of a team's processes, on the Redis that they share."""
    return Coordination(
        deltas=RedisDeltas(server),
        tombstones=RedisTombstones(server),
        claims=RedisClaims(server),
        failures=RedisFailures(server),
        status=RedisStatus(server),
        snapshots=RedisSnapshots(server),
        lease=RedisLease(server),
        unused=RedisUnusedSince(server),
    )
