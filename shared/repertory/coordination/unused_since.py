"""The times since which collections have been unused, so that they can be removed later.

A lost record starts again from now, so a collection may be removed late but never too early.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol, cast

from typing_extensions import override

if TYPE_CHECKING:
    from repertory.coordination.redis_server import RedisServer


class UnusedSince(Protocol):
    """The times since which collections have been unused. ``StoreError`` when unavailable."""

    def update(self, collections: Collection[str], now: float) -> dict[str, float]:
        """Record that exactly these collections are unused now.

        Args:
            collections: Their names. Records of other collections are deleted.
            now: The time, in seconds since the epoch.

        Returns:
            When each was first recorded, in seconds since the epoch, at most ``now``.
        """
        ...


class MemoryUnusedSince(UnusedSince):
    """The times within one process."""

    def __init__(self) -> None:
        self._times: dict[str, float] = {}

    @override
    def update(self, collections: Collection[str], now: float) -> dict[str, float]:
        self._times = {name: min(self._times.get(name, now), now) for name in collections}
        return dict(self._times)


class RedisUnusedSince(UnusedSince):
    """The times in a hash in Redis. One process writes them: the watch service."""

    def __init__(self, server: "RedisServer") -> None:
        self._server = server
        self._key = server.key("unused")

    @override
    def update(self, collections: Collection[str], now: float) -> dict[str, float]:
        with self._server.translated():
            stored = cast("dict[bytes, bytes]", self._server.client.hgetall(self._key))
        noted = {name.decode(errors="replace"): _time(data, now) for name, data in stored.items()}
        times = {name: min(noted.get(name, now), now) for name in collections}
        if times != noted:
            with self._server.translated(), self._server.client.pipeline() as batch:
                batch.delete(self._key)
                if times:
                    batch.hset(self._key, mapping={name: str(at) for name, at in times.items()})
                batch.execute()
        return times


def _time(data: bytes, now: float) -> float:
    """A stored time; now if it is damaged."""
    try:
        return float(data)
    except ValueError:
        return now
