"""The sources as a search knows them: by the last report of the watch service."""

import contextlib

from msgspec.structs import replace

from repertory.coordination.status import StatusBoard
from repertory.errors import StoreError
from repertory.indexing.collection_names import configuration_of
from repertory.search.known_sources import KnownSources
from repertory.stats import SaveTimes, WatchStatus, watch_status


class ReportedSources:
    """Follows the reports of the watch service. An unreadable report changes nothing.

    Args:
        status: Where it reports.

    Attributes:
        known: What is known of the sources.
    """

    def __init__(self, status: StatusBoard) -> None:
        self.known = KnownSources()
        self._status = status
        self._inherited: float | None = None  # when an earlier process reported

    def inherit(self) -> None:
        """Take the present report for that of an earlier process: it has compared nothing yet."""
        if last := self._report():
            self._inherited = last.at

    def read(self, collection: str, *, is_served: bool) -> bool:
        """Read the order and the state of the sources; whether that changed.

        Args:
            collection: The name of the collection that is searched; empty for none.
            is_served: Whether a watch service follows the files; a command looks at them itself.
        """
        watch = self._report()
        if watch is None:
            return False
        if watch.at == self._inherited:  # the own watch service has not compared them yet
            watch = watch.inherited()
        elif not is_served:
            watch = replace(watch, saves=SaveTimes(), has_failed=False)
        before = self.known
        self.known = before.after(watch, configuration_of(collection))
        return self.known != before

    def _report(self) -> WatchStatus | None:
        with contextlib.suppress(StoreError):
            return watch_status(self._status)
        return None
