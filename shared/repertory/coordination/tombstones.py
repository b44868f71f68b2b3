"""Tombstones: what was deleted, so that a write that comes late does not raise the dead."""

import threading
from collections.abc import Mapping, Sequence
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


class MemoryTombstones:
    """Tombstones within one process."""

    def __init__(self) -> None:
        self._revisions: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()

    def bury(self, collection: str, deleted: Mapping[str, int]) -> None:
        """Note that items were deleted at these revisions."""
        with self._lock:
            for item, revision in deleted.items():
                older = self._revisions.get((collection, item), 0)
                self._revisions[collection, item] = max(older, revision)

    def buried(self, collection: str, items: Sequence[str]) -> dict[str, int]:
        """Those of the items that were deleted, and at which revision."""
        with self._lock:
            found = {item: self._revisions.get((collection, item)) for item in items}
        return {item: revision for item, revision in found.items() if revision is not None}


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
                keys = [_key(collection, item) for item in deleted]
                self._bury(keys, [LASTING, *deleted.values()])

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


def _key(collection: str, item: str) -> str:
    return f"repertory:tombstone:{collection}:{item}"
