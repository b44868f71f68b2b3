"""Tombstones: what was deleted, so that a write that comes late does not raise the dead."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from repertory.coordination.redis_server import RedisServer

LASTING = 86_400  # seconds a tombstone is kept: longer than any job may wait


class Tombstones(Protocol):
    """The revisions at which items of a collection were deleted, kept for ``LASTING`` at least.

    Every method raises ``StoreError`` when they cannot be had.
    """

    def bury(self, collection: str, deleted: Mapping[str, int]) -> None:
        """Note that items were deleted at these revisions; of two for one item the newer stays."""
        ...

    def buried(self, collection: str, items: Sequence[str]) -> dict[str, int]:
        """Those of the items that were deleted, and at which revision."""
        ...

    def newest(self, collection: str) -> int:
        """The newest revision at which an item of a collection was deleted; 0 for none."""
        ...


class MemoryTombstones:
    """Tombstones within one process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        # By collection and item, with the time; the latest is the last.
        self._revisions: dict[tuple[str, str], tuple[int, float]] = {}
        self._clock = clock
        self._lock = threading.Lock()

    def bury(self, collection: str, deleted: Mapping[str, int]) -> None:
        """Note that items were deleted at these revisions."""
        now = self._clock()
        with self._lock:
            while self._revisions and next(iter(self._revisions.values()))[1] <= now - LASTING:
                del self._revisions[next(iter(self._revisions))]
            for item, revision in deleted.items():
                older, _ = self._revisions.pop((collection, item), (0, now))
                self._revisions[collection, item] = max(older, revision), now

    def buried(self, collection: str, items: Sequence[str]) -> dict[str, int]:
        """Those of the items that were deleted, and at which revision."""
        with self._lock:
            found = {item: self._revisions.get((collection, item)) for item in items}
        return {item: one[0] for item, one in found.items() if one is not None}

    def newest(self, collection: str) -> int:
        """The newest revision at which an item of a collection was deleted."""
        with self._lock:
            own = [one for (name, _), (one, _) in self._revisions.items() if name == collection]
        return max(own, default=0)


# Keeps the newer revision of each: KEYS are the tombstones, ARGV the seconds and the revisions.
_BURY = """
for i, key in ipairs(KEYS) do
  local older = tonumber(redis.call('GET', key) or 0)
  if tonumber(ARGV[i + 1]) >= older then
    redis.call('SET', key, ARGV[i + 1], 'EX', ARGV[1])
  end
end
"""


class RedisTombstones:
    """Tombstones in Redis: a key each, which expires."""

    def __init__(self, server: "RedisServer") -> None:
        self._server = server
        self._bury = server.script(_BURY)

    def bury(self, collection: str, deleted: Mapping[str, int]) -> None:
        """Note that items were deleted at these revisions."""
        if deleted:
            with self._server.translated():
                keys = [_newest(collection), *(_key(collection, item) for item in deleted)]
                self._bury(keys, [LASTING, max(deleted.values()), *deleted.values()])

    def buried(self, collection: str, items: Sequence[str]) -> dict[str, int]:
        """Those of the items that were deleted, and at which revision."""
        if not items:
            return {}
        with self._server.translated():
            found = self._server.client.mget([_key(collection, item) for item in items])
        return {
            item: int(revision)
            for item, revision in zip(items, found, strict=True)
            if revision is not None
        }

    def newest(self, collection: str) -> int:
        """The newest revision at which an item of a collection was deleted."""
        with self._server.translated():
            return int(self._server.client.get(_newest(collection)) or 0)


def _newest(collection: str) -> str:
    return f"repertory:tombstone-newest:{collection}"


def _key(collection: str, item: str) -> str:
    return f"repertory:tombstone:{collection}:{item}"
