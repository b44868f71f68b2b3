"""Failures: the jobs that were given up, to be looked at and tried again."""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from repertory.coordination.redis_server import RedisServer

MOST_FAILURES = 1_000  # kept; the oldest go first
COUNTED = 86_400  # seconds that attempts are remembered after the last


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A job that was given up.

    Attributes:
        id: The job's id.
        collection: What it was to write to.
        items: The metadata hashes, by id, of the items it was to write; of a job that cannot be
            read, none.
        error: Why, in a sentence.
        at: When, in seconds since the epoch.
        attempts: How often it was tried.
        job: The job as plain data, for trying it again.
    """

    id: str
    collection: str
    items: dict[str, str]
    error: str
    at: float
    attempts: int
    job: dict[str, Any]


class Failures(Protocol):
    """The list of failures. Every method raises ``StoreError`` when it cannot be had."""

    def add(self, failure: Failure) -> None:
        """Put a failure at the end of the list; one of its id there is taken off."""
        ...

    def list(self) -> list[Failure]:
        """All failures in the order of adding; those that cannot be read are passed over."""
        ...

    def remove(self, ids: Sequence[str]) -> Sequence[Failure]:
        """Take failures off the list, forget how often their jobs were tried, and return them.

        Ids that are not on the list are passed over.
        """
        ...

    def attempt(self, job: str) -> int:
        """Count that a job is about to be tried, and return how often it was, this time included.

        A count outlives the process that it kills; it is forgotten a day after the last attempt.
        """
        ...


class MemoryFailures:
    """Failures within one process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._failures: dict[str, Failure] = {}
        self._attempts: dict[str, tuple[int, float]] = {}  # with the time; the latest is the last
        self._clock = clock
        self._lock = threading.Lock()

    def add(self, failure: Failure) -> None:
        """Put a failure at the end of the list."""
        with self._lock:
            self._failures.pop(failure.id, None)
            self._failures[failure.id] = failure
            while len(self._failures) > MOST_FAILURES:
                del self._failures[next(iter(self._failures))]

    def list(self) -> list[Failure]:
        """All failures in the order of adding."""
        with self._lock:
            return list(self._failures.values())

    def remove(self, ids: Sequence[str]) -> Sequence[Failure]:
        """Take failures off the list, forget how often their jobs were tried, and return them."""
        with self._lock:
            found = [self._failures.pop(one, None) for one in ids]
            for one in ids:
                self._attempts.pop(one, None)
        return [failure for failure in found if failure is not None]

    def attempt(self, job: str) -> int:
        """Count that a job is about to be tried."""
        now = self._clock()
        with self._lock:
            while self._attempts and next(iter(self._attempts.values()))[1] <= now - COUNTED:
                del self._attempts[next(iter(self._attempts))]
            count = self._attempts.pop(job, (0, now))[0] + 1
            self._attempts[job] = count, now
            return count


_FAILURES = "repertory:failures"  # as JSON, by id
_ORDER = "repertory:failures:order"  # their ids

# KEYS are the two; ARGV an id, a failure and how many are kept.
_ADD = """
redis.call('LREM', KEYS[2], 0, ARGV[1])
redis.call('RPUSH', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
while redis.call('LLEN', KEYS[2]) > tonumber(ARGV[3]) do
  redis.call('HDEL', KEYS[1], redis.call('LPOP', KEYS[2]))
end
"""


class RedisFailures:
    """Failures in Redis: a hash of them and a list of their order."""

    def __init__(self, server: "RedisServer") -> None:
        self._server = server
        self._add = server.script(_ADD)

    def add(self, failure: Failure) -> None:
        """Put a failure at the end of the list."""
        data = msgspec.json.encode(failure)
        with self._server.translated():
            self._add([_FAILURES, _ORDER], [failure.id, data, MOST_FAILURES])

    def list(self) -> list[Failure]:
        """All failures in the order of adding."""
        with self._server.translated(), self._server.client.pipeline() as together:
            together.lrange(_ORDER, 0, -1)
            together.hgetall(_FAILURES)
            order, found = together.execute()
        return _read([found.get(one) for one in order])

    def remove(self, ids: Sequence[str]) -> Sequence[Failure]:
        """Take failures off the list, forget how often their jobs were tried, and return them."""
        if not (ids := list(dict.fromkeys(ids))):
            return []
        with self._server.translated(), self._server.client.pipeline() as together:
            together.hmget(_FAILURES, ids)
            together.hdel(_FAILURES, *ids)
            for one in ids:
                together.lrem(_ORDER, 0, one)
            together.delete(*map(_count, ids))
            return _read(together.execute()[0])

    def attempt(self, job: str) -> int:
        """Count that a job is about to be tried."""
        with self._server.translated(), self._server.client.pipeline() as together:
            together.incr(_count(job))
            together.expire(_count(job), COUNTED)
            return int(together.execute()[0])


def _count(job: str) -> str:
    return f"repertory:attempts:{job}"


def _read(stored: Sequence[bytes | None]) -> list[Failure]:
    failures = []
    for data in stored:
        # Of another version, or damaged; a missing one was removed in between.
        with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
            failures.append(msgspec.json.decode(data or b"", type=Failure))
    return failures
