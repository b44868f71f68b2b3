"""The backend of a running server. All its methods may block."""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache
from msgspec.structs import replace
from typing_extensions import override

from repertory.compose import Parts
from repertory.errors import StoreError
from repertory.indexing.collection_names import configuration_of
from repertory.indexing.job import JobQueue
from repertory.live_search.live import LiveSearch
from repertory.local.backend import read_or_none
from repertory.stats import FailedJob, Jobs, Process, Rebuild, Stats, workers_of
from repertory.watch_status import SILENCE_S, WatchStatus, watch_status
from repertory_query.backend.served_index import ServedIndex
from repertory_query.backend.visible_service import VisibleService
from repertory_query.records.history import History
from repertory_query.records.recent import RecentSearches

if TYPE_CHECKING:
    from repertory.project_search.search import ProjectSearch

MAX_VIEWS = 1_000  # cached sets of groups
MAX_CATALOGUE_SEARCHES = 8  # cached; each holds the texts that some callers see


class Service(ServedIndex):
    """The whole index of a running server. Thread-safe.

    Args:
        parts: The parts of the server.
        live: The search.
        queue: Where rebuilds are requested and failed jobs are retried.
        process: Which of several processes behind one port this is; None if it is the only one.

    Attributes:
        history: The performance in the last day.
    """

    def __init__(
        self, parts: Parts, live: LiveSearch, queue: JobQueue, process: Process | None = None
    ) -> None:
        super().__init__(parts, live, RecentSearches())
        self._process = process
        self._queue = queue
        self.history = History()
        self._views_lock = threading.Lock()
        self._views: LRUCache[frozenset[str], VisibleService] = LRUCache(MAX_VIEWS)
        self._catalogue_searches: LRUCache[frozenset[str], ProjectSearch] = LRUCache(
            MAX_CATALOGUE_SEARCHES
        )

    def for_groups(self, groups: frozenset[str]) -> VisibleService:
        """This server as callers with some groups see it."""
        with self._views_lock:
            if (view := self._views.get(groups)) is None:
                view = self._views[groups] = VisibleService(self, groups)
        return view

    def catalogue_search(self, visible: frozenset[str]) -> "ProjectSearch":
        """The project search for callers who may see only some sources: only in the catalogue."""
        from repertory.project_search.search import ProjectSearch  # noqa: PLC0415 - rarely needed

        directory = self.workspace.directory
        with self._views_lock:
            if (files := self._catalogue_searches.get(visible)) is None:
                files = self._catalogue_searches[visible] = ProjectSearch(directory)
        return files

    @override
    def stats(self) -> Stats:
        return replace(super().stats(), process=self._process)

    def sample(self) -> None:
        """Add a sample of the current state to the history."""
        coordination, now = self.parts.coordination, time.time()
        watch = read_or_none(lambda: watch_status(coordination.status))
        known = watch if watch and watch.at >= now - SILENCE_S else None
        self.history.note(
            now,
            self.recent.counts(),
            pending=known.pending if known else None,
            failed=read_or_none(coordination.failures.count),
            saves=known.saves.durations if known else (),
        )

    def rebuild(self) -> Rebuild:
        """Request a new index beside the active one; see ``request_rebuild``.

        Raises:
            StoreError: A store is unavailable, or no configuration is known yet.
        """
        watch = watch_status(self.parts.coordination.status)
        active = self.parts.store.alias(self.parts.active)
        configuration = watch.configuration if watch else configuration_of(active or "")
        if not configuration:
            raise StoreError(
                "There is nothing to rebuild yet: the watch service has not reported what to "
                "index; check that it runs."
            )
        return self.request_rebuild(self._queue, configuration)

    def jobs(self) -> Jobs:
        """The pending, the running and the failed jobs."""
        coordination, oldest = self.parts.coordination, time.time() - SILENCE_S
        workers = workers_of(coordination.status.reports())
        return Jobs(
            waiting=self._queue.waiting(),
            taken=self._queue.taken(),
            running=[one for one in workers if one.busy and one.at >= oldest],
            failed=[
                FailedJob(
                    id=failure.id,
                    items=sorted(failure.items),
                    error=failure.error,
                    at=failure.at,
                    attempts=failure.attempts,
                )
                for failure in coordination.failures.list()
            ],
        )

    def retry(self, ids: Sequence[str] | None) -> int:
        """Retry failed jobs, all of them if no ids are given; return how many.

        The watch service sends the current items of the sources, which may be newer than those that
        failed.
        """
        from repertory.indexing.maintenance import request_again  # noqa: PLC0415 - rarely needed

        coordination = self.parts.coordination
        failures = coordination.failures
        failed = [one for one in failures.list() if ids is None or one.id in ids]
        count = failures.clear() if ids is None else failures.remove(ids)
        request_again(failed, self._queue, coordination)
        return count

    @override
    def _waiting(self) -> Mapping[str, int]:
        return self._queue.waiting()

    @override
    def _taken(self) -> int:
        return self._queue.taken()

    @override
    def _silent(self, workers: Mapping[str, Mapping[str, Any]], watch: WatchStatus) -> list[str]:
        oldest = time.time() - SILENCE_S
        silent = []
        if watch.at < oldest:
            silent.append("The watch service does not report; start `repertory watch`.")
        alive = [one for one in workers.values() if one["at"] >= oldest]
        if self.parts.is_team and not alive:
            silent.append("No worker reports; start `repertory worker`.")
        models = sorted({one["model"] for one in alive if one.get("model")})
        if len(models) > 1:
            silent.append(
                f"The workers have different models ({', '.join(models)}): give all of them the "
                "same `search.model`."
            )
        errors = [one.get("error") for one in alive]
        return [*silent, *(f"A worker waits: {error}" for error in errors if error)]
