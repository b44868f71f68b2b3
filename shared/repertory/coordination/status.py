"""The status board: what each process reports, for ``stats``, the metrics and the status page."""

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec
from typing_extensions import override

from repertory.coordination.clock import NOW
from repertory.errors import StoreError
from repertory.system.files import write_atomically

if TYPE_CHECKING:
    from repertory.coordination.redis_server import RedisServer

RETENTION_S = 600  # of a report, except that of the watch service
WRITE_INTERVAL_S = 10.0  # between two writes of an unchanged report to the file
WATCH = "watch"  # the watch service's name


class StatusBoard(Protocol):
    """The last report of each process. Methods raise ``StoreError`` when it is unavailable."""

    def report(self, who: str, status: Mapping[str, Any]) -> None:
        """Replace the report of a process.

        Args:
            who: ``watch``, or ``worker:HOST:PROCESS``.
            status: Plain data, to which ``at`` is added: the time, in seconds since the epoch.
        """
        ...

    def reports(self) -> dict[str, dict[str, Any]]:
        """The reports of the last ten minutes, by process; unreadable ones are skipped.

        The last report of ``watch`` has no age limit, because it says who may see what.
        """
        ...

    def count(self, counters: Mapping[str, float]) -> None:
        """Add to counters that all processes share; they restart at 0 when the board is lost."""
        ...

    def counters(self) -> dict[str, float]:
        """The counters."""
        ...


class MemoryStatus(StatusBoard):
    """The board within one process."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._reports: dict[str, dict[str, Any]] = {}
        self._counters: dict[str, float] = {}
        self._lock = threading.Lock()

    @override
    def report(self, who: str, status: Mapping[str, Any]) -> None:
        with self._lock:
            self._reports[who] = {**status, "at": self._clock()}

    @override
    def reports(self) -> dict[str, dict[str, Any]]:
        oldest = self._clock() - RETENTION_S
        with self._lock:
            return {
                who: dict(one)
                for who, one in self._reports.items()
                if who == WATCH or one["at"] >= oldest
            }

    @override
    def count(self, counters: Mapping[str, float]) -> None:
        with self._lock:
            for name, more in counters.items():
                self._counters[name] = self._counters.get(name, 0.0) + more

    @override
    def counters(self) -> dict[str, float]:
        with self._lock:
            return dict(self._counters)


class _Report(msgspec.Struct):
    at: float
    status: dict[str, Any]


class FileStatus(MemoryStatus):
    """The board within one process, with a last report of ``watch`` that survives a restart.

    That report is kept in a file. An unchanged report is written again only after
    ``WRITE_INTERVAL_S``. A missing or damaged file counts as an empty board.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        super().__init__(clock)
        self._path = path
        self._file = threading.Lock()
        self._stored = _read(path)
        self._is_inherited = self._stored is not None

    @override
    def report(self, who: str, status: Mapping[str, Any]) -> None:
        super().report(who, status)
        if who != WATCH:
            return
        with self._file:
            self._is_inherited = False
            report, last = _Report(at=self._clock(), status=dict(status)), self._stored
            if (
                last is None
                or abs(report.at - last.at) >= WRITE_INTERVAL_S  # the clock may be set back
                or msgspec.json.encode(report.status) != msgspec.json.encode(last.status)
            ):
                self._write(report)

    @override
    def reports(self) -> dict[str, dict[str, Any]]:
        found = super().reports()
        if self._is_inherited and self._stored:
            found[WATCH] = {**self._stored.status, "at": self._stored.at}
        return found

    def _write(self, report: _Report) -> None:
        try:
            write_atomically(self._path, msgspec.json.encode(report))
        except OSError as error:
            raise StoreError(
                f"Cannot write {self._path}: {error.strerror}; make room or choose another "
                "--data-dir."
            ) from error
        self._stored = report


def _read(path: Path) -> _Report | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Report)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


# KEYS: the reports. ARGV: a process and its report.
_REPORT = f"""{NOW}
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.6f ', now) .. ARGV[2])
"""

# KEYS: the reports. ARGV: their retention, and the process whose report never expires. Returns the
# process, the age in seconds and the text of each report, and deletes expired reports.
_REPORTS = f"""{NOW}
local found = {{}}
local stored = redis.call('HGETALL', KEYS[1])
for i = 1, #stored, 2 do
  local at, report = string.match(stored[i + 1], '^(%d+%.%d+) (.*)$')
  if at and (stored[i] == ARGV[2] or now - at <= tonumber(ARGV[1])) then
    found[#found + 1] = {{stored[i], string.format('%.6f', now - at), report}}
  else
    redis.call('HDEL', KEYS[1], stored[i])
  end
end
return found
"""


class RedisStatus(StatusBoard):
    """The board in Redis: a hash of reports, as a time and JSON, and a hash of counters.

    ``at`` is converted to the reader's clock, so the clocks of the processes may differ.
    """

    def __init__(self, server: "RedisServer", clock: Callable[[], float] = time.time) -> None:
        self._server = server
        self._clock = clock
        self._report = server.script(_REPORT)
        self._reports = server.script(_REPORTS)
        # Not "status": releases before namespaces keep reports there, and delete them by their own
        # clocks.
        self._key = server.key("reports")
        self._counters = server.key("counters")

    @override
    def report(self, who: str, status: Mapping[str, Any]) -> None:
        with self._server.translated():
            self._report([self._key], [who, msgspec.json.encode(status)])

    @override
    def reports(self) -> dict[str, dict[str, Any]]:
        with self._server.translated():
            stored = self._reports([self._key], [RETENTION_S, WATCH])
        now = self._clock()
        found: dict[str, dict[str, Any]] = {}
        for who, age, data in stored:
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                report = msgspec.json.decode(data, type=dict[str, Any])
                found[who.decode(errors="replace")] = {**report, "at": now - float(age)}
        return found

    @override
    def count(self, counters: Mapping[str, float]) -> None:
        with self._server.translated(), self._server.client.pipeline() as batch:
            for name, more in counters.items():
                batch.hincrbyfloat(self._counters, name, more)
            batch.execute()

    @override
    def counters(self) -> dict[str, float]:
        with self._server.translated():
            found = cast("dict[bytes, bytes]", self._server.client.hgetall(self._counters))
        counters: dict[str, float] = {}
        for name, value in found.items():
            with contextlib.suppress(ValueError):  # damaged
                counters[name.decode(errors="replace")] = float(value)
        return counters
