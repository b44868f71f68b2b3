"""Failures: the jobs that failed, which can be inspected and retried."""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from typing_extensions import override

if TYPE_CHECKING:
    from repertory.coordination.redis_server import RedisServer

MAX_FAILURES = 1_000  # kept; the oldest go first
RETENTION_S = 86_400  # of an attempt count, after the last attempt


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A job, or another request to a worker, that failed.

    Attributes:
        id: The job's id.
        collection: The collection it should have written to.
        items: The metadata hashes, by id, of the items it should have written; empty for an
            unreadable job and for a request.
        error: The reason, in a sentence.
        at: The time, in seconds since the epoch.
        attempts: The number of attempts.
        job: The job as plain data, for a retry.
        is_request: Whether it is a request; such a failure is removed when a later one succeeds.
    """

    id: str
    collection: str
    items: dict[str, str]
    error: str
    at: float
    attempts: int
    job: dict[str, Any]
    is_request: bool = False


class Failures(Protocol):
    """The list of failures. Every method raises ``StoreError`` when it is unavailable.

    The list is limited, to ``MAX_FAILURES``: the oldest go first.
    """

    def add(self, failure: Failure) -> None:
        """Put a failure at the end of the list; it replaces one with the same id."""
        ...

    def list(self) -> list[Failure]:
        """All failures in the order of adding; unreadable ones are skipped."""
        ...

    def remove(self, ids: Sequence[str]) -> Sequence[Failure]:
        """Take failures off the list, forget their jobs' attempts, and return them.

        Ids that are not on the list are skipped; their attempts are forgotten too.
        """
        ...

    def attempt(self, job: str) -> int:
        """Count an attempt at a job that is about to start, and return the new count.

        A count outlives a process that dies in the attempt. It is forgotten a day after the last
        attempt.
        """
        ...


class MemoryFailures(Failures):
    """Failures within one process."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, limit: int = MAX_FAILURES
    ) -> None:
        self._limit = limit
        self._failures: dict[str, Failure] = {}
        self._attempts: dict[str, tuple[int, float]] = {}  # with the time; the latest is the last
        self._clock = clock
        self._lock = threading.Lock()

    @override
    def add(self, failure: Failure) -> None:
        with self._lock:
            self._failures.pop(failure.id, None)
            self._failures[failure.id] = failure
            while len(self._failures) > self._limit:
                del self._failures[next(iter(self._failures))]

    @override
    def list(self) -> list[Failure]:
        with self._lock:
            return list(self._failures.values())

    @override
    def remove(self, ids: Sequence[str]) -> Sequence[Failure]:
        with self._lock:
            found = [self._failures.pop(one, None) for one in ids]
            for one in ids:
                self._attempts.pop(one, None)
        return [failure for failure in found if failure is not None]

    @override
    def attempt(self, job: str) -> int:
        now = self._clock()
        with self._lock:
            while self._attempts and next(iter(self._attempts.values()))[1] <= now - RETENTION_S:
                del self._attempts[next(iter(self._attempts))]
            count = self._attempts.pop(job, (0, now))[0] + 1
            self._attempts[job] = count, now
            return count


# KEYS: the failures as JSON, by id, and their ids in order. ARGV: an id, a failure and how many to
# keep.
_ADD = """
redis.call('LREM', KEYS[2], 0, ARGV[1])
redis.call('RPUSH', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
while redis.call('LLEN', KEYS[2]) > tonumber(ARGV[3]) do
  redis.call('HDEL', KEYS[1], redis.call('LPOP', KEYS[2]))
end
"""


class RedisFailures(Failures):
    """Failures in Redis: a hash by id and a list of ids in order."""

    def __init__(self, server: "RedisServer", limit: int = MAX_FAILURES) -> None:
        self._server = server
        self._limit = limit
        self._add = server.script(_ADD)
        self._failures = server.key("failures")
        self._order = server.key("failures", "order")

    @override
    def add(self, failure: Failure) -> None:
        data = msgspec.json.encode(failure)
        with self._server.translated():
            self._add([self._failures, self._order], [failure.id, data, self._limit])

    @override
    def list(self) -> list[Failure]:
        with self._server.translated(), self._server.client.pipeline() as batch:
            batch.lrange(self._order, 0, -1)
            batch.hgetall(self._failures)
            order, found = batch.execute()
        return _read([found.get(one) for one in order])

    @override
    def remove(self, ids: Sequence[str]) -> Sequence[Failure]:
        if not (ids := list(dict.fromkeys(ids))):
            return []
        with self._server.translated(), self._server.client.pipeline() as batch:
            batch.hmget(self._failures, ids)
            batch.hdel(self._failures, *ids)
            for one in ids:
                batch.lrem(self._order, 0, one)
            batch.delete(*map(self._count, ids))
            return _read(batch.execute()[0])

    @override
    def attempt(self, job: str) -> int:
        with self._server.translated(), self._server.client.pipeline() as batch:
            batch.incr(self._count(job))
            batch.expire(self._count(job), RETENTION_S)
            return int(batch.execute()[0])

    def _count(self, job: str) -> str:
        return self._server.key("attempts", job)


def _read(stored: Sequence[bytes | None]) -> list[Failure]:
    failures = []
    for data in stored:
        # Of another version, or damaged; a missing one was removed in between.
        with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
            failures.append(msgspec.json.decode(data or b"", type=Failure))
    return failures
