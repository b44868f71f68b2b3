"""Claims: a process announces a task, so that no other process does it too.

Claims only avoid duplicate work: results stay correct if a claim is lost.
"""

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from typing_extensions import override

if TYPE_CHECKING:
    from repertory.coordination.redis_server import RedisServer


class Claims(Protocol):
    """The names of claimed tasks. Methods raise ``StoreError`` when unavailable.

    Each process is an owner; its threads must release only their own claims.
    """

    def take(self, names: Sequence[str], seconds: float) -> set[str]:
        """Claim the free names for some seconds, and return those claimed.

        Names that the caller already holds are not among them, and are not extended.
        """
        ...

    def release(self, names: Iterable[str]) -> None:
        """Release names that the caller took; others are ignored."""
        ...

    def end(self, names: Iterable[str]) -> None:
        """Release names, whichever process took them."""
        ...


class MemoryClaims(Claims):
    """Claims within one process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._until: dict[str, float] = {}
        self._clock = clock
        self._lock = threading.Lock()

    @override
    def take(self, names: Sequence[str], seconds: float) -> set[str]:
        with self._lock:
            now = self._clock()
            taken = {name for name in names if self._until.get(name, 0.0) <= now}
            self._until.update(dict.fromkeys(taken, now + seconds))
            return taken

    @override
    def release(self, names: Iterable[str]) -> None:
        with self._lock:
            for name in names:
                self._until.pop(name, None)

    @override
    def end(self, names: Iterable[str]) -> None:
        self.release(names)  # of the only process


# Releases each name in KEYS that its owner, ARGV[1], still holds.
_RELEASE = """
for _, key in ipairs(KEYS) do
  if redis.call('GET', key) == ARGV[1] then redis.call('DEL', key) end
end
"""


class RedisClaims(Claims):
    """Claims in Redis: an expiring key per claim, with its owner. Each object is one owner."""

    def __init__(self, server: "RedisServer") -> None:
        self._server = server
        self._owner = uuid.uuid4().hex
        self._release = server.script(_RELEASE)

    @override
    def take(self, names: Sequence[str], seconds: float) -> set[str]:
        milliseconds = max(1, int(seconds * 1_000))
        with self._server.translated(), self._server.client.pipeline(transaction=False) as batch:
            for name in names:
                batch.set(self._key(name), self._owner, nx=True, px=milliseconds)
            return {name for name, taken in zip(names, batch.execute(), strict=True) if taken}

    @override
    def release(self, names: Iterable[str]) -> None:
        if keys := [self._key(name) for name in names]:
            with self._server.translated():
                self._release(keys, [self._owner])

    @override
    def end(self, names: Iterable[str]) -> None:
        if keys := [self._key(name) for name in names]:
            with self._server.translated():
                self._server.client.delete(*keys)

    def _key(self, name: str) -> str:
        return self._server.key("claim", name)
