"""The tasks of the watch service: loading the configuration and scanning sources."""

import contextlib
import logging
import math
import time
from collections import deque
from collections.abc import Callable

import msgspec

from repertory.indexing.scan import ChangeResult, ScanResult, scan_source
from repertory.sources.source import Source
from repertory_watch.configuration import Configuration, reload

CONFIGURATION = ""  # stands for the configuration wherever a source's name is expected
REST = 9.0  # run durations that pass at least until a reconciliation runs the task again

_log = logging.getLogger(__name__)


class Task:
    """Loads the configuration or a source, never twice at the same time.

    Args:
        name: The source's name, or ``CONFIGURATION``.
        work: Does the work, on any thread.

    Attributes:
        name: As above.
        is_running: Whether it is running.
        is_requested: Whether it has to run again after the current run.
        finished_at: When it last finished, on the monotonic clock; None before that.
        rests_until: When a reconciliation may run it again, on the same clock; infinite before the
            first run and during a run. So reconciliations run it at most a tenth of the time.
    """

    def __init__(self, name: str, work: Callable[[], ScanResult | Configuration]) -> None:
        self.name = name
        self._work = work
        self.is_running = self.is_requested = False
        self.finished_at: float | None = None
        self.rests_until = math.inf

    def run(self) -> ScanResult | Configuration:
        """Do the work."""
        began = time.monotonic()
        self.rests_until = math.inf
        result = self._work()
        ended = time.monotonic()
        self.rests_until = ended + REST * (ended - began)
        return result


class WatchedSource(Task):
    """A source of the current catalogue.

    Attributes:
        source: The source.
        changed: The changed paths that were not read yet; any thread may add one.
        stop: Ends the source's own watch, if it has one.
        is_ready: Whether it can be scanned without waiting for its watch.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source.name, lambda: scan_source(source))
        self.source = source
        self.changed: deque[str] = deque()
        self.stop: Callable[[], None] | None = None
        self.is_ready = True

    def rescan(self) -> ChangeResult | None:
        """Read the changed paths; None if that needs a scan. May run in a pause of a scan."""
        paths: list[str] = []
        with contextlib.suppress(IndexError):
            while True:
                paths.append(self.changed.popleft())
        at = time.time()
        try:
            change = self.source.rescan(paths)
        # A boundary, as of a scan.
        except Exception:
            _log.exception("rescan_failed", extra={"source": self.name})
            return None
        return None if change is None else ChangeResult(source=self.source, change=change, at=at)


def load(before: Configuration) -> Configuration:
    """Reload the configuration; a failure is a result."""
    try:
        return reload(before)
    # A boundary: a defect here must not end the watch.
    except Exception:
        _log.exception("configuration_failed")
        error = "The configuration could not be read because of a fault; see the log."
        return msgspec.structs.replace(before, error=error)
