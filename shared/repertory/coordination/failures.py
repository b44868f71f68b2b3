"""Failures: the jobs that failed, and the items that failed with them.

The list of jobs is for people, and its length is limited. The number of failed items is not: the
coordinator must know all of them, or it would send the oldest repeatedly.
"""

import contextlib
import math
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, cast

import msgspec
from cachetools import TTLCache
from typing_extensions import override

if TYPE_CHECKING:
    from repertory.coordination.redis_server import RedisServer

MAX_FAILURES = 1_000  # listed; the oldest are dropped
RETENTION_S = 86_400  # of an attempt count, after the last attempt

FailedHashes = dict[str, dict[str, str]]  # metadata hashes, by collection and item


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A job, or another request to a worker, that failed. Its text is not kept.

    Attributes:
        id: The job's id.
        collection: The collection it should have written to.
        items: The metadata hashes, by id, of the items it should have written; empty for an
            unreadable job and for a request.
        error: The reason, in a sentence.
        at: The time, in seconds since the epoch.
        attempts: The number of attempts.
        is_request: Whether it is a request; such a failure is removed when a later one succeeds.
    """

    id: str
    collection: str
    items: dict[str, str]
    error: str
    at: float
    attempts: int
    is_request: bool = False


class Failures(Protocol):
    """The failed jobs and items. Every method raises ``StoreError`` when they are unavailable."""

    def add(self, failure: Failure) -> None:
        """Append a failure to the list, and add its items to the failed items.

        It replaces a failure with the same id. Beyond ``MAX_FAILURES``, the oldest are dropped from
        the list; their items stay failed.
        """
        ...

    def list(self) -> list[Failure]:
        """All listed failures in the order of adding; unreadable ones are skipped."""
        ...

    def failed_items(self) -> FailedHashes:
        """The hash of every failed item, by collection and item."""
        ...

    def count(self) -> int:
        """The number of listed jobs or of failed items, whichever is greater."""
        ...

    def version(self) -> str:
        """A text that changes when the list or the failed items change; empty at first."""
        ...

    def remove(self, ids: Sequence[str]) -> int:
        """Remove failures from the list, and items with their hashes from the failed items.

        Returns:
            The number of removed failures; unknown ids are skipped.
        """
        ...

    def forgive(self, collection: str, items: Iterable[str]) -> None:
        """Remove items of a collection from the failed items; the list is unchanged."""
        ...

    def clear(self) -> int:
        """Forget all failed jobs and items, and return the previous ``count``."""
        ...

    def attempt(self, job: str) -> int:
        """Count an attempt at a job that is about to start, and return the new count.

        The count is kept if the process dies during the attempt. It is forgotten a day after the
        last attempt.
        """
        ...

    def forget(self, jobs: Sequence[str]) -> None:
        """Forget the attempts at jobs."""
        ...


class MemoryFailures(Failures):
    """Failures within one process."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, limit: int = MAX_FAILURES
    ) -> None:
        self._limit = limit
        self._failures: dict[str, Failure] = {}
        self._items: FailedHashes = defaultdict(dict)
        self._version = ""
        self._attempts: TTLCache[str, int] = TTLCache(math.inf, RETENTION_S, clock)
        self._lock = threading.Lock()

    @override
    def add(self, failure: Failure) -> None:
        with self._lock:
            self._failures.pop(failure.id, None)
            self._failures[failure.id] = failure
            self._items[failure.collection] |= failure.items
            while len(self._failures) > self._limit:
                del self._failures[next(iter(self._failures))]
            self._version = _new_version()

    @override
    def list(self) -> list[Failure]:
        with self._lock:
            return list(self._failures.values())

    @override
    def failed_items(self) -> FailedHashes:
        with self._lock:
            return {name: dict(hashes) for name, hashes in self._items.items() if hashes}

    @override
    def count(self) -> int:
        with self._lock:
            return self._count()

    @override
    def version(self) -> str:
        return self._version

    @override
    def remove(self, ids: Sequence[str]) -> int:
        with self._lock:
            found = [self._failures.pop(one) for one in dict.fromkeys(ids) if one in self._failures]
            for failure in found:
                hashes = self._items[failure.collection]
                for item, hash_ in failure.items.items():
                    if hashes.get(item) == hash_:
                        del hashes[item]
            if found:
                self._version = _new_version()
        return len(found)

    @override
    def forgive(self, collection: str, items: Iterable[str]) -> None:
        with self._lock:
            for item in items:
                self._items[collection].pop(item, None)
                self._version = _new_version()

    @override
    def clear(self) -> int:
        with self._lock:
            count = self._count()
            self._failures.clear()
            self._items.clear()
            self._version = _new_version()
        return count

    def _count(self) -> int:
        return max(len(self._failures), sum(map(len, self._items.values())))

    @override
    def attempt(self, job: str) -> int:
        with self._lock:
            count = self._attempts[job] = self._attempts.get(job, 0) + 1
            return count

    @override
    def forget(self, jobs: Sequence[str]) -> None:
        with self._lock:
            for job in jobs:
                self._attempts.pop(job, None)


# KEYS: those of ``RedisFailures``. ARGV: an id, a failure, how many to list, a version, then the
# fields and hashes of the failed items.
_ADD = """
redis.call('LREM', KEYS[2], 0, ARGV[1])
redis.call('RPUSH', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
while redis.call('LLEN', KEYS[2]) > tonumber(ARGV[3]) do
  redis.call('HDEL', KEYS[1], redis.call('LPOP', KEYS[2]))
end
redis.call('SET', KEYS[4], ARGV[4])
for i = 5, #ARGV, 2 do redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1]) end
"""
# KEYS: the same. ARGV: a version, then ids. An unreadable failure has no items. The version is set
# before anything is removed, because a full Redis refuses it.
_REMOVE = """
local removed = 0
for i = 2, #ARGV do
  local data = redis.call('HGET', KEYS[1], ARGV[i])
  if data then
    if removed == 0 then redis.call('SET', KEYS[4], ARGV[1]) end
    local is_read, failure = pcall(cjson.decode, data)
    if is_read and type(failure) == 'table' and type(failure.items) == 'table' then
      for item, hash in pairs(failure.items) do
        local field = tostring(failure.collection) .. ' ' .. item
        if redis.call('HGET', KEYS[3], field) == hash then redis.call('HDEL', KEYS[3], field) end
      end
    end
    removed = removed + redis.call('HDEL', KEYS[1], ARGV[i])
  end
  redis.call('LREM', KEYS[2], 0, ARGV[i])
end
return removed
"""


class RedisFailures(Failures):
    """Failures in Redis: a hash by id, a list of ids in order, and a hash of the failed items."""

    def __init__(self, server: "RedisServer", limit: int = MAX_FAILURES) -> None:
        self._server = server
        self._limit = limit
        self._add = server.script(_ADD)
        self._remove = server.script(_REMOVE)
        self._failures = server.key("failures")  # as JSON, by id
        self._order = server.key("failures", "order")  # their ids
        self._items = server.key("failures", "items")  # by collection and item
        self._version = server.key("failures", "version")
        self._keys = [self._failures, self._order, self._items, self._version]

    @override
    def add(self, failure: Failure) -> None:
        data = msgspec.json.encode(failure)
        failed = [
            text
            for item, found in failure.items.items()
            for text in (_field(failure.collection, item), found)
        ]
        with self._server.translated():
            self._add(self._keys, [failure.id, data, self._limit, _new_version(), *failed])

    @override
    def list(self) -> list[Failure]:
        with self._server.translated(), self._server.client.pipeline() as batch:
            batch.lrange(self._order, 0, -1)
            batch.hgetall(self._failures)
            order, found = batch.execute()
        return _read([found.get(one) for one in order])

    @override
    def failed_items(self) -> FailedHashes:
        with self._server.translated():
            stored = cast("dict[bytes, bytes]", self._server.client.hgetall(self._items))
        found: FailedHashes = defaultdict(dict)
        for field, hash_ in stored.items():
            collection, _, item = field.decode(errors="replace").partition(" ")
            found[collection][item] = hash_.decode(errors="replace")
        return dict(found)

    @override
    def count(self) -> int:
        with self._server.translated(), self._server.client.pipeline() as batch:
            batch.llen(self._order)
            batch.hlen(self._items)
            listed, items = batch.execute()
        return max(int(listed), int(items))

    @override
    def version(self) -> str:
        with self._server.translated():
            stored = cast("bytes | None", self._server.client.get(self._version))
        return (stored or b"").decode(errors="replace")

    @override
    def remove(self, ids: Sequence[str]) -> int:
        with self._server.translated():
            return int(self._remove(self._keys, [_new_version(), *ids]))

    @override
    def forgive(self, collection: str, items: Iterable[str]) -> None:
        if fields := [_field(collection, item) for item in items]:
            with self._server.translated(), self._server.client.pipeline() as batch:
                batch.hdel(self._items, *fields)
                batch.set(self._version, _new_version())
                batch.execute()

    @override
    def clear(self) -> int:
        with self._server.translated(), self._server.client.pipeline() as batch:
            batch.llen(self._order)
            batch.hlen(self._items)
            batch.delete(self._failures, self._order, self._items)
            batch.set(self._version, _new_version())
            listed, items, *_ = batch.execute()
        return max(int(listed), int(items))

    @override
    def attempt(self, job: str) -> int:
        with self._server.translated(), self._server.client.pipeline() as batch:
            batch.incr(self._count(job))
            batch.expire(self._count(job), RETENTION_S)
            return int(batch.execute()[0])

    @override
    def forget(self, jobs: Sequence[str]) -> None:
        if jobs:
            with self._server.translated():
                self._server.client.delete(*map(self._count, jobs))

    def _count(self, job: str) -> str:
        return self._server.key("attempts", job)


def _new_version() -> str:
    return uuid.uuid4().hex


def _field(collection: str, item: str) -> str:
    return f"{collection} {item}"  # no collection has a space in its name


def _read(stored: Sequence[bytes | None]) -> list[Failure]:
    failures = []
    for data in stored:
        # Skip failures of another version, damaged ones, and ids without a failure.
        with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            failures.append(msgspec.json.decode(data or b"", type=Failure))
    return failures
