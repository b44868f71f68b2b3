"""Claims: who does a thing, so that two processes do not do it at once.

A claim saves work and guards nothing: everything stays right when one is lost.
"""

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from repertory.coordination.redis_server import RedisServer


class Claims(Protocol):
    """Names of things that somebody is doing. Raises ``StoreError`` when they cannot be had.

    Processes are told apart; the threads of one must let go of nothing but what they took.
    """

    def take(self, names: Sequence[str], seconds: float) -> set[str]:
        """Those of the names that nobody had, which are the caller's now for so long.

        Names that the caller has already are not among them, and are not prolonged.
        """
        ...

    def release(self, names: Iterable[str]) -> None:
        """Let go of names that the caller took; those that it has not are passed over."""
        ...


class MemoryClaims:
    """Claims within one process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._until: dict[str, float] = {}
        self._clock = clock
        self._lock = threading.Lock()

    def take(self, names: Sequence[str], seconds: float) -> set[str]:
        """Those of the names that nobody had, which are the caller's now for so long."""
        with self._lock:
            now = self._clock()
            taken = {name for name in names if self._until.get(name, 0.0) <= now}
            self._until.update(dict.fromkeys(taken, now + seconds))
            return taken

    def release(self, names: Iterable[str]) -> None:
        """Let go of names that the caller took."""
        with self._lock:
            for name in names:
                self._until.pop(name, None)


# Lets go of each name in KEYS that its owner, ARGV[1], still has.
_RELEASE = """
for _, key in ipairs(KEYS) do
  if redis.call('GET', key) == ARGV[1] then redis.call('DEL', key) end
end
"""


class RedisClaims:
    """Claims in Redis: a key each with its owner, which expires. One object is one owner."""

    def __init__(self, server: "RedisServer") -> None:
        self._server = server
        self._owner = uuid.uuid4().hex
        self._release = server.script(_RELEASE)

    def take(self, names: Sequence[str], seconds: float) -> set[str]:
        """Those of the names that nobody had, which are the caller's now for so long."""
        lasting = max(1, int(seconds * 1_000))
        with self._server.translated(), self._server.client.pipeline(transaction=False) as together:
            for name in names:
                together.set(_key(name), self._owner, nx=True, px=lasting)
            return {name for name, taken in zip(names, together.execute(), strict=True) if taken}

    def release(self, names: Iterable[str]) -> None:
        """Let go of names that the caller took."""
        if keys := [_key(name) for name in names]:
            with self._server.translated():
                self._release(keys, [self._owner])


def _key(name: str) -> str:
    return f"repertory:claim:{name}"
