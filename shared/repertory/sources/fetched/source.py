"""The base class of sources that fetch content and then read it."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import msgspec
from typing_extensions import override

from repertory.errors import ConfigurationError, SourceError
from repertory.sources.fetched.content import Content
from repertory.sources.fetched.fetcher import Fetcher
from repertory.sources.source import Problem, Scan, Source, Trust, warning
from repertory.text import ago

REFRESH_S = 3_600.0  # the default of `refresh`
MIN_REFRESH_S = 60.0
RETRY_S = 60.0  # after a failure
CHECK_INTERVAL_S = 1.0  # between checks whether another process has fetched the content
STOP_TIMEOUT_S = 5.0  # for a running fetch, when a watch ends
SCAN_ATTEMPTS = 3  # if other processes replace the content during a scan
OPTIONS = ("name", "refresh", "store")  # options of all types of fetched sources

_log = logging.getLogger(__name__)


class FetchedSource(Source):
    """A source whose content is fetched; list it before the class that reads the content.

    A search reads the content as it is. ``refresh`` fetches it, and ``watch`` does so at intervals.
    Its author may change it at any time, so suspicious items wait for approval, even in the first
    scan.

    Attributes:
        content: The content.
        interval: Seconds between two refreshes by ``watch``.
    """

    content: Content
    interval: float
    fetches = True
    trust = Trust.REVIEW

    def attach(self, content: Content, interval: float) -> Self:
        """Set the attributes, and no longer watch a folder; ``watch`` reports new content."""
        self.content, self.interval = content, interval
        self.location = content.fetcher.location
        self.folder = None
        return self

    @override
    def configuration(self) -> object:
        return super().configuration(), self.content.folder, self.location, self.interval

    @override
    def refresh(self, *, may_ask: bool = False) -> None:
        self.content.refresh(may_ask=may_ask)

    @override
    def scan(self) -> Scan:
        """Read the current content; if the last fetch failed, the scan is marked as stale."""
        if not self.content.is_there:
            why = f"{self.location} was not fetched yet; `repertory index` fetches it."
            raise SourceError(self.content.state().error or why)
        for _ in range(SCAN_ATTEMPTS):
            version = self.content.version
            try:
                scan = super().scan()  # type: ignore[safe-super]  # of the next class in the MRO
            except SourceError:
                if version == self.content.version:
                    raise
            else:
                if version == self.content.version:
                    return self._with_state(scan)
            self.forget()
        raise SourceError(f"The content of {self.name} was replaced while it was read.")

    @property
    @override
    def place(self) -> str:
        return str(self.content.folder)

    def forget(self) -> None:
        """Forget what was read from content that has been replaced."""

    def _with_state(self, scan: Scan) -> Scan:
        state = self.content.state()
        problems: list[Problem] = [warning(self.location, note) for note in state.notes]
        stale = ""
        if state.error:
            when = ago(time.time() - state.checked_at) if state.checked_at else "before"
            stale = f"{state.error} The content that was fetched {when} is kept."
        return msgspec.structs.replace(scan, problems=[*problems, *scan.problems], stale=stale)

    @override
    def watch(self, changed: Callable[[], None], interval: float) -> Callable[[], None] | None:
        """Refresh at intervals on a separate thread; the first scan does not wait for it."""
        stop = threading.Event()

        def follow() -> None:
            seen, pause, not_before = self._seen_now, 0.0, 0.0
            while not stop.wait(pause):
                pause = CHECK_INTERVAL_S
                if self._is_due() and time.monotonic() >= not_before:
                    # Set here, because the state may be unwritable.
                    not_before = time.monotonic() + min(RETRY_S, self.interval)
                    try:
                        self.content.refresh(max_age_s=self.interval / 2)
                    except SourceError:  # the next scan names it
                        pass
                    # A boundary: this thread must keep running as long as the server does.
                    except Exception:
                        _log.exception("fetch_failed", extra={"source": self.name})
                if seen != (seen := self._seen_now):  # another process may have fetched it
                    changed()

        def end() -> None:
            stop.set()
            self.content.watches -= 1
            if not self.content.watches:  # others may read the same content
                self.cancel()
            thread.join(STOP_TIMEOUT_S)

        self.content.watches += 1
        thread = threading.Thread(target=follow, name=f"fetch-{self.name}", daemon=True)
        changed()
        thread.start()
        return end

    @override
    def cancel(self) -> None:
        self.content.fetcher.cancelled.set()

    @property
    def _seen_now(self) -> tuple[str, str]:
        return self.content.version, self.content.state().error

    def _is_due(self) -> bool:
        """Whether it is time for the next refresh."""
        state = self.content.state()
        pause = min(RETRY_S, self.interval) if state.error else self.interval
        left = state.tried_at + pause - time.time()
        return not 0 < left <= pause  # the clock may have been set back


def content_of(fetcher: Fetcher, entry: Mapping[str, Any]) -> Content:
    """The content of a fetcher, in the folder that the workspace sets as the entry's ``store``."""
    store = entry.get("store")
    if not isinstance(store, str):
        raise ConfigurationError(
            f"A source of type {entry.get('type')!r} needs a data directory for its content."
        )
    return Content(fetcher, Path(store))


def interval_of(entry: Mapping[str, Any]) -> float:
    """Seconds between two refreshes, from an entry's ``refresh``.

    Raises:
        ConfigurationError: It is not a number, or too small.
    """
    value = entry.get("refresh", REFRESH_S)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < MIN_REFRESH_S:
        raise ConfigurationError(
            f"`refresh` of a source is {value!r}; it must be a number of seconds, "
            f"{MIN_REFRESH_S:.0f} at least."
        )
    return float(value)
