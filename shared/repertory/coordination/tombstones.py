"""Tombstones: the deleted items, so that a late write does not bring one back."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from typing_extensions import override

if TYPE_CHECKING:
    from repertory.coordination.redis_server import RedisServer

RETENTION_S = 86_400  # of a tombstone: longer than any job may wait


class Tombstones(Protocol):
    """The revisions at which items of a collection were deleted, kept for ``RETENTION_S``.

    Every method raises ``StoreError`` when they are unavailable.
    """

    def record_deletions(self, collection: str, deleted: Mapping[str, int]) -> None:
        """Record the revisions at which items were deleted; the newer one of an item is kept."""
        ...

    def deleted(self, collection: str, items: Sequence[str]) -> dict[str, int]:
        """The revision of the deletion of each given item that was deleted."""
        ...

    def newest(self, collection: str) -> int:
        """The newest revision at which an item of a collection was deleted; 0 if none was."""
        ...


class MemoryTombstones(Tombstones):
    """Tombstones within one process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        # Revision and time, by collection and item, oldest first. In a ``TTLCache``, finding the
        # newest revision of many takes 30 times longer.
        self._revisions: dict[tuple[str, str], tuple[int, float]] = {}
        self._clock = clock
        self._lock = threading.Lock()

    @override
    def record_deletions(self, collection: str, deleted: Mapping[str, int]) -> None:
        with self._lock:
            self._forget()
            for item, revision in deleted.items():
                older, _ = self._revisions.pop((collection, item), (0, 0.0))
                self._revisions[collection, item] = max(older, revision), self._clock()

    @override
    def deleted(self, collection: str, items: Sequence[str]) -> dict[str, int]:
        with self._lock:
            self._forget()
            found = {item: self._revisions.get((collection, item)) for item in items}
        return {item: one[0] for item, one in found.items() if one is not None}

    @override
    def newest(self, collection: str) -> int:
        with self._lock:
            self._forget()
            own = [one for (name, _), (one, _) in self._revisions.items() if name == collection]
        return max(own, default=0)

    def _forget(self) -> None:
        oldest = self._clock() - RETENTION_S
        while self._revisions and next(iter(self._revisions.values()))[1] <= oldest:
            del self._revisions[next(iter(self._revisions))]


# Keeps the newer revision of each. KEYS: the tombstones. ARGV: the retention and the revisions.
_RECORD = """
for i, key in ipairs(KEYS) do
  local older = tonumber(redis.call('GET', key) or 0) or 0
  if tonumber(ARGV[i + 1]) >= older then
    redis.call('SET', key, ARGV[i + 1], 'EX', ARGV[1])
  end
end
"""


class RedisTombstones(Tombstones):
    """Tombstones in Redis: an expiring key for each item, and one for the newest revision."""

    def __init__(self, server: "RedisServer") -> None:
        self._server = server
        self._record = server.script(_RECORD)

    @override
    def record_deletions(self, collection: str, deleted: Mapping[str, int]) -> None:
        if deleted:
            with self._server.translated():
                keys = [
                    self._newest(collection),
                    *(self._key(collection, item) for item in deleted),
                ]
                self._record(keys, [RETENTION_S, max(deleted.values()), *deleted.values()])

    @override
    def deleted(self, collection: str, items: Sequence[str]) -> dict[str, int]:
        if not items:
            return {}
        with self._server.translated():
            found = self._server.client.mget([self._key(collection, item) for item in items])
        return {
            item: revision
            for item, data in zip(items, found, strict=True)
            if (revision := _revision(data)) is not None
        }

    @override
    def newest(self, collection: str) -> int:
        with self._server.translated():
            return _revision(self._server.client.get(self._newest(collection))) or 0

    def _newest(self, collection: str) -> str:
        return self._server.key("tombstone-newest", collection)

    def _key(self, collection: str, item: str) -> str:
        return self._server.key("tombstone", collection, item)


def _revision(data: bytes | str | None) -> int | None:
    """A stored revision; None if it is missing or damaged."""
    try:
        return None if data is None else int(data)
    except ValueError:
        return None
