"""The state of the sources, as the watch service last reported it."""

import contextlib
import time
from collections.abc import Callable

from msgspec.structs import replace

from repertory.coordination.status import StatusBoard
from repertory.errors import StoreError
from repertory.indexing.collection_names import configuration_of
from repertory.live_search.known_sources import KnownSources
from repertory.watch_status import SILENCE_S, SaveTimes, WatchStatus, watch_status

# The time of a report changes a little with each read, since it is converted from the clock of
# Redis. New reports come every few seconds.
JITTER_S = 0.5


class WatchReports:
    """Follows the reports of the watch service. An unreadable report changes nothing.

    Args:
        status: Where the watch service reports.
        is_shared: Whether the watch service is another process.
        clock: A monotonic clock, in seconds.

    Attributes:
        known: The sources as last reported.
    """

    def __init__(
        self,
        status: StatusBoard,
        *,
        is_shared: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.known = KnownSources()
        self._status = status
        self._is_shared = is_shared
        self._clock = clock
        # When a new report was seen, by our clock, because another machine's clock may be wrong.
        self._seen_at = clock()
        self._latest = 0.0  # when that report was made, by the watch service's clock
        self._inherited: float | None = None  # when an earlier process made its last report

    def inherit(self) -> None:
        """Treat the current report as an earlier process's; this one has compared nothing yet."""
        if last := self._report():
            self._inherited = last.at

    def read(self, collection: str, *, is_served: bool) -> bool:
        """Read the order and the state of the sources, and return whether they changed.

        Args:
            collection: The name of the searched collection; empty if there is no collection.
            is_served: Whether a watch service follows the files. A command checks them itself.
        """
        before, watch = self.known, self._report()
        known = before
        if watch is not None:
            if abs(watch.at - self._latest) > JITTER_S:
                self._latest, self._seen_at = watch.at, self._clock()
            known = self._after(watch, configuration_of(collection), is_served=is_served)
        silence = self._clock() - self._seen_at
        is_silent = is_served and self._is_shared and silence > SILENCE_S
        self.known = replace(known, is_silent=is_silent)
        return self.known != before

    def _after(self, watch: WatchStatus, configuration: str, *, is_served: bool) -> KnownSources:
        if watch.at == self._inherited:  # our own watch service has not compared the sources yet
            watch = watch.inherited()
        elif not is_served:
            watch = replace(watch, saves=SaveTimes(), is_late=False, has_failed=False)
        return self.known.after(watch, configuration)

    def _report(self) -> WatchStatus | None:
        with contextlib.suppress(StoreError):
            return watch_status(self._status)
        return None
