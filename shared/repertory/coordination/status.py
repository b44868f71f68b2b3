"""The status board: what each process says of itself, for ``stats``, the metrics and the page."""

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec

if TYPE_CHECKING:
    from repertory.coordination.redis_server import RedisServer

LASTING = 600  # seconds that what a process said is kept after it fell silent


class StatusBoard(Protocol):
    """What processes last said of themselves. Raises ``StoreError`` when it cannot be had."""

    def say(self, who: str, status: Mapping[str, Any]) -> None:
        """Replace what a process says of itself: plain data, to which ``at`` is added.

        Args:
            who: ``watch``, or ``worker:HOST:PROCESS``.
            status: Plain data.
        """
        ...

    def said(self) -> dict[str, dict[str, Any]]:
        """What all processes said in the last ten minutes, by who said it."""
        ...

    def count(self, counters: Mapping[str, float]) -> None:
        """Add to counters that all processes share; they start again when the board is lost."""
        ...

    def counters(self) -> dict[str, float]:
        """The counters."""
        ...


class MemoryStatus:
    """The board within one process."""

    def __init__(self) -> None:
        self._said: dict[str, dict[str, Any]] = {}
        self._counters: dict[str, float] = {}
        self._lock = threading.Lock()

    def say(self, who: str, status: Mapping[str, Any]) -> None:
        """Replace what a process says of itself."""
        with self._lock:
            self._said[who] = {**status, "at": time.time()}

    def said(self) -> dict[str, dict[str, Any]]:
        """What all processes said in the last ten minutes."""
        oldest = time.time() - LASTING
        with self._lock:
            return {who: dict(one) for who, one in self._said.items() if one["at"] >= oldest}

    def count(self, counters: Mapping[str, float]) -> None:
        """Add to counters that all processes share."""
        with self._lock:
            for name, more in counters.items():
                self._counters[name] = self._counters.get(name, 0.0) + more

    def counters(self) -> dict[str, float]:
        """The counters."""
        with self._lock:
            return dict(self._counters)


_STATUS = "repertory:status"
_COUNTERS = "repertory:counters"


class _Said(msgspec.Struct):
    at: float
    status: dict[str, Any]


class RedisStatus:
    """The board in Redis: a hash of what processes said, as JSON, and one of the counters."""

    def __init__(self, server: "RedisServer") -> None:
        self._server = server

    def say(self, who: str, status: Mapping[str, Any]) -> None:
        """Replace what a process says of itself."""
        data = msgspec.json.encode(_Said(at=time.time(), status=dict(status)))
        with self._server.translated():
            self._server.client.hset(_STATUS, who, data)

    def said(self) -> dict[str, dict[str, Any]]:
        """What all processes said in the last ten minutes; what cannot be read is passed over."""
        oldest = time.time() - LASTING
        found: dict[str, dict[str, Any]] = {}
        silent = []
        for who, data in self._hash(_STATUS).items():
            try:
                said = msgspec.json.decode(data, type=_Said)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                silent.append(who)
                continue
            if said.at >= oldest:
                found[who] = {**said.status, "at": said.at}
            else:
                silent.append(who)
        if silent:
            with self._server.translated():
                self._server.client.hdel(_STATUS, *silent)
        return found

    def count(self, counters: Mapping[str, float]) -> None:
        """Add to counters that all processes share."""
        with self._server.translated(), self._server.client.pipeline() as together:
            for name, more in counters.items():
                together.hincrbyfloat(_COUNTERS, name, more)
            together.execute()

    def counters(self) -> dict[str, float]:
        """The counters."""
        return {name: float(value) for name, value in self._hash(_COUNTERS).items()}

    def _hash(self, key: str) -> dict[str, bytes]:
        with self._server.translated():
            found = cast("dict[bytes, bytes]", self._server.client.hgetall(key))
        return {name.decode(errors="replace"): value for name, value in found.items()}
