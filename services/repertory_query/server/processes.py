"""Several query processes behind one port, started by a parent that answers no requests."""

import logging
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import connection, get_context, parent_process
from multiprocessing.context import SpawnProcess
from multiprocessing.sharedctypes import RawArray

from repertory import telemetry
from repertory.settings import Settings
from repertory.system import logs
from repertory_query.access.rates import RequestCounts
from repertory_query.records.query_process import QueryProcess
from repertory_query.server.listening import listening
from repertory_query.server.signals import TERMINATION, termination_signals

COUNTERS = "PROMETHEUS_MULTIPROC_DIR"  # where prometheus_client keeps the counters to sum
RESTART_INTERVAL_S = 1.0  # the minimum between two starts in the same place
CHECK_INTERVAL_S = 0.2  # between two checks for a signal
END_TIMEOUT_S = 15.0  # for a process to finish its requests and close its resources

_log = logging.getLogger(__name__)
_spawn = get_context("spawn")  # threads and open connections are not copied


def run(settings: Settings, count: int) -> None:
    """Serve with some processes until a signal to end, and restart any that ends before.

    All processes accept connections from one socket, so a connection that is not accepted yet
    survives the end of any of them.

    Raises:
        ConfigurationError: The settings are not those of a team's server, or telemetry cannot
            be sent.
        UsageError: The address cannot be served on.
    """
    settings.team_redis()  # refuses other settings
    telemetry.check(wanted=settings.values.telemetry)  # each process starts its own
    with (
        termination_signals() as stopping,
        listening(settings) as listener,
        tempfile.TemporaryDirectory(prefix="repertory-metrics-") as counters,
    ):
        os.environ[COUNTERS] = counters  # the processes read it when they import the library
        # Without it, a module in the current directory could shadow one of Python's.
        os.environ["PYTHONSAFEPATH"] = "1"
        requests, ids = RequestCounts(count), RawArray("q", count)
        members = [QueryProcess(number, count, requests, ids) for number in range(count)]
        places = [_Place(settings, listener, member) for member in members]
        try:
            while not stopping:
                for place in places:
                    place.keep()
                connection.wait(
                    [one for place in places for one in place.sentinels], CHECK_INTERVAL_S
                )
        finally:
            _end(places)


class _Place:
    """The place of one process; when the process ends, another one is started in its place."""

    def __init__(self, settings: Settings, listener: socket.socket, member: QueryProcess) -> None:
        self._settings = settings
        self._listener = listener
        self._member = member
        self._process: SpawnProcess | None = None
        self._started = float("-inf")

    @property
    def sentinels(self) -> list[int]:
        """The handles that become readable when the process ends."""
        return [self._process.sentinel] if self._process else []

    def keep(self) -> None:
        """Start the process, unless it is running or was started a moment ago."""
        if self._process and not self._process.is_alive():
            extra = {"number": self._member.shown, "pid": self._process.pid}
            _log.warning("process_ended", extra={**extra, "code": self._process.exitcode})
            self._process = None
        if self._process or time.monotonic() - self._started < RESTART_INTERVAL_S:
            return
        is_first = self._started == float("-inf") and self._member.number == 0
        arguments = (self._settings, self._listener, self._member, not is_first)
        self._started = time.monotonic()
        self._process = _spawn.Process(target=_answer, args=arguments)
        with _blocked_signals():
            self._process.start()
        _log.info("process_started", extra={"number": self._member.shown, "pid": self._process.pid})

    def terminate(self) -> None:
        """Let the process finish its requests and end."""
        if self._process:
            self._process.terminate()

    def join(self, deadline: float) -> None:
        """Wait until the process has ended; kill it at the deadline."""
        if self._process:
            self._process.join(max(0.0, deadline - time.monotonic()))
            if self._process.is_alive():
                _log.warning("process_killed", extra={"number": self._member.shown})
                self._process.kill()
                self._process.join()


def _end(places: list[_Place]) -> None:
    for place in places:
        place.terminate()
    deadline = time.monotonic() + END_TIMEOUT_S
    for place in places:
        place.join(deadline)


@contextmanager
def _blocked_signals() -> Iterator[None]:
    """Start a process with blocked signals, so that it loses none before it handles them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, TERMINATION)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _answer(settings: Settings, listener: socket.socket, member: QueryProcess, waits: bool) -> None:
    """The main function of each process; see ``repertory_query.server.run.answer``."""
    logs.begin()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(KeyboardInterrupt), termination_signals() as stopping:
        from repertory_query.server.run import answer  # noqa: PLC0415 - slow, and not for the parent

        member.enter()
        answer(settings, listener, stopping, member, waits=waits)


def _end_with_parent() -> None:
    """End this process when its parent has ended, even by kill -9."""
    if parent := parent_process():
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
