"""The repertory of one directory without a server: the same lifecycle, one command at a time."""

import contextlib
import math
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace
from typing_extensions import override

from repertory.catalogue.item import Item
from repertory.compose import Parts
from repertory.errors import DeviceUnavailableError, ModelError, NothingIndexedError, StoreError
from repertory.index.keywords.document import Entry
from repertory.index.vectors import NO_FILTER, Filter
from repertory.indexing.collection_names import configuration_of, is_complete, model_slug
from repertory.local.backend import Local
from repertory.notices import about_servers
from repertory.project.freshness import Freshness
from repertory.project.workspace import owners
from repertory.search import lookup
from repertory.search.answer import Answer, Hit
from repertory.search.engine import SearchEngine
from repertory.search.explanation import Explanation
from repertory.search.query import Query
from repertory.settings import Settings
from repertory.stats import Contents, Run, Stats
from repertory.system.files import make_directory
from repertory.system.progress import Download, Progress, no_progress
from repertory.watch_status import SILENCE_S, SourceState, WatchStatus, watch_status

if TYPE_CHECKING:  # a search needs none of them
    from repertory.indexing.job import JobQueue
    from repertory.sources.source import Source

LOCK_TIMEOUT_S = 2.5  # a search waits so long for another process, then goes without vectors
INDEX_LOCK_TIMEOUT_S = 30.0  # a command that indexes waits so long for other processes
BUDGET_S = 1.0  # a search spends at most this time on indexing changes
FIRST_BUDGET_S = 30.0  # the same for the first index; see ``update.MIN_WRITING``
UNFINISHED = (
    f"The next search continues the first index for {FIRST_BUDGET_S:.0f} s; "
    "`repertory index` completes it."
)
MANY = 2  # if a source lost all its items, and at least so many, it is assumed to be unmounted
REFRESH_INTERVAL_S = 1.0  # how often searches look up the active collection


class Repertory(Local):
    """Index and search one directory in this process. A context manager.

    Args:
        settings: The active settings.
        directory: The directory whose catalogue is indexed and searched.
        download: Called with the progress of a model's download.
        progress: Called with the progress of a model's calibration.
        budget_s: Seconds that a search may spend on indexing changes.

    Attributes:
        behind: A sentence about changes of files that are not indexed yet; empty without any.
    """

    def __init__(
        self,
        settings: Settings,
        directory: Path,
        *,
        download: Download | None = None,
        progress: Progress | None = None,
        budget_s: float = BUDGET_S,
    ) -> None:
        self._stack = contextlib.ExitStack()
        folder = None
        if settings.values.no_cache:
            # A file that is still mapped cannot be removed everywhere.
            temporary = tempfile.TemporaryDirectory(prefix="repertory-", ignore_cleanup_errors=True)
            folder = Path(self._stack.enter_context(temporary))
        parts = Parts(
            settings,
            directory,
            folder=folder,
            lock_timeout=LOCK_TIMEOUT_S,
            download=download,
            progress=progress,
        )
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="keywords")
        super().__init__(parts, parts.live_search(self._reader, self._is_gone))
        self._lock = threading.RLock()
        self._checked_at = float("-inf")
        self._budget_s = budget_s
        self.behind = ""
        self._servers: tuple[str, ...] = ()  # sentences about servers and their tools
        self._away: set[str] = set()  # the sources that may not be mounted
        self._status_at = float("-inf")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @override
    def close(self) -> None:
        """Close everything. Closing twice is allowed."""
        super().close()
        self._reader.shutdown()  # searches on other threads end first
        self.live.close()
        self._stack.close()

    @property
    @override
    def engine(self) -> SearchEngine:
        """The search engine. It lags other commands' indexing by at most a second."""
        with self._lock:
            is_held = not self.live.missing.keys().isdisjoint(("index", "vectors"))
            interval = LOCK_TIMEOUT_S if is_held else REFRESH_INTERVAL_S
            if time.monotonic() - self.live.refreshed_at >= interval:
                self.live.refresh()
            return self.live.engine

    @override
    def search(self, query: Query) -> Answer:
        """Search the index as it is, without items whose file is gone; see ``SearchEngine``."""
        self.parts.queries.begin()  # the model loads while the index is opened
        self._check_device()
        answer = super().search(query)
        hits = [hit for hit in answer.hits if not self._is_gone(hit)]  # also the hits for a task
        return replace(answer, hits=hits, notices=self._noted(answer.notices))

    @override
    def explain(self, query: Query, item: str) -> Explanation:
        """Explain why a search shows an item or not; see ``SearchEngine.explain``."""
        self.parts.queries.begin()
        self._check_device()
        found = super().explain(query, item)
        if self._is_gone(found.hit):
            raise lookup.unknown(None, item)
        return replace(found, notices=self._noted(found.notices))

    @override
    def entries(self, where: Filter = NO_FILTER) -> list[Entry]:
        return [entry for entry in super().entries(where) if not self._is_gone(entry)]

    @override
    def page(
        self, where: Filter, limit: int, offset: int = 0, after: str = ""
    ) -> tuple[Sequence[Entry], int]:
        found = self.entries(where)
        left = [entry for entry in found if entry.id > after][offset:]
        return left[:limit], len(found)

    @override
    def contents(self) -> Contents:
        kinds: dict[str, Counter[str]] = {}
        for entry in self.entries():
            kinds.setdefault(entry.kind, Counter())[entry.source] += 1
        return replace(super().contents(), kinds={kind: dict(one) for kind, one in kinds.items()})

    @override
    def item(self, item: str) -> Item:
        found = super().item(item)
        if self._is_gone(found):
            raise lookup.unknown(None, item)
        return found

    @override
    def items(self, ids: Sequence[str]) -> dict[str, Item]:
        found = super().items(ids)
        return {item_id: item for item_id, item in found.items() if not self._is_gone(item)}

    @override
    def stats(self) -> Stats:
        """The statistics of the index. No source starts if the process that reported it has ended.

        Raises:
            NothingIndexedError: Nothing was indexed here yet.
        """
        with contextlib.suppress(StoreError):
            self.engine  # noqa: B018 - opens the index
        self.require_index()
        found = super().stats()
        if found.watch and time.time() - found.watch.at <= SILENCE_S:
            return found
        return replace(found, sources=[replace(one, is_starting=False) for one in found.sources])

    @property
    def is_indexed(self) -> bool:
        """Whether a search can answer without indexing first."""
        return is_complete(self.parts.store, self.parts.active)

    @property
    def lacks_first_index(self) -> bool:
        """Whether the first index is incomplete, so that all files are read.

        An empty index counts as incomplete once something has changed.
        """
        if not self.is_indexed:
            return True
        if self.settings.values.no_cache:
            return False
        watch = watch_status(self.parts.coordination.status)
        indexed = configuration_of(self._active)
        if watch is None or watch.configuration != indexed or any(s.items for s in watch.sources):
            return False
        return not Freshness(self.workspace).is_current(indexed)

    def require_index(self) -> None:
        """Check that a search can answer without indexing first.

        Raises:
            NothingIndexedError: Nothing was indexed here yet, or only with other options.
        """
        if self._active:
            return
        if models := self._indexed_models():
            raise NothingIndexedError(
                "Nothing is indexed here yet with these options; run `repertory index`, or use the "
                f"options of the existing index, whose model is {' or '.join(models)}."
            )
        raise NothingIndexedError("Nothing is indexed here yet; run `repertory index`.")

    def _indexed_models(self) -> list[str]:
        """The models of the indexes that other options made of this directory."""
        settings, here = self.settings, self.parts.workspace.directory
        found = {
            self.parts.store.alias(f"{settings.values.namespace}_{key}")
            for key, directory in owners(settings.data_dir).items()
            if directory == here
        }
        return sorted({model_slug(name) for name in found if name})

    @override
    def ensure_indexed(self) -> None:
        """Continue the first index, or if it is complete, index changed files.

        No server is asked. Notices in the answers name changes that exceeded the time budget.
        """
        with self._lock:
            if self.lacks_first_index:
                self.index_files()
            elif not self.settings.values.no_cache:
                self._index_changes()

    @override
    def refresh(self) -> Stats:
        return self.index(words_suffice=True).stats

    def index(
        self,
        progress: Progress = no_progress,
        *,
        words_suffice: bool = False,
        asks: "Callable[[Source], bool]" = lambda _: True,
    ) -> Run:
        """Make the index equal to the sources.

        Args:
            progress: Called with the progress of the run.
            words_suffice: If no model is available and nothing was indexed with one, index
                keywords alone instead of failing.
            asks: Whether to ask a server; other servers keep their last known tools.

        Raises:
            ModelError: There is no model, or it cannot be used.
            StoreError: A store is unavailable.
        """
        return self._run(progress, words_suffice=words_suffice, asks=asks)

    def index_files(self, progress: Progress = no_progress, *, words_suffice: bool = True) -> Run:
        """Index without asking a server, within the time budget; see ``index``.

        The next call continues. There is no time limit with ``no_cache``, because the next call
        could not continue, or if an empty index is replaced. If the user set ``no_cache``, servers
        are asked, because their tools are not stored.

        Raises:
            ModelError, StoreError: As for ``index``.
        """
        no_cache = self.settings.values.no_cache
        asks = no_cache and "no_cache" in self.settings.origins
        return self._run(
            progress,
            words_suffice=words_suffice,
            asks=lambda _: asks,
            budget_s=math.inf if no_cache or self.is_indexed else FIRST_BUDGET_S,
        )

    def rebuild(self, progress: Progress = no_progress) -> Run:
        """Build a new index beside the old one, and switch to it when it is complete.

        Raises:
            ModelError, StoreError: As for ``index``.
        """
        return self._run(progress, rebuild=self.request_rebuild)

    def _run(
        self,
        progress: Progress,
        *,
        words_suffice: bool = False,
        asks: "Callable[[Source], bool]" = lambda _: True,
        rebuild: "Callable[[JobQueue, str], object] | None" = None,
        budget_s: float = math.inf,
    ) -> Run:
        from repertory.local.update import Update  # noqa: PLC0415 - a search needs none of it

        started = time.monotonic()
        with self._lock, self.parts.store.waiting(INDEX_LOCK_TIMEOUT_S):
            make_directory(self.settings.data_dir)
            update = Update(self.parts, self.live, Freshness(self.workspace))
            embedded = self._embedded
            ledger = update.whole(
                progress, asks, words_suffice=words_suffice, rebuild=rebuild, budget_s=budget_s
            )
            self._checked_at = time.monotonic()
            self.behind = UNFINISHED if ledger.outstanding else ""
            self._status_at = float("-inf")
            for failure in self.parts.coordination.failures.list():
                items = ", ".join(sorted(failure.items))
                self.parts.notices.append(f"Not indexed: {items}: {failure.error}")
        said = (*self.workspace.notices, *self.parts.notices)
        notices, self.parts.notices[:] = list(dict.fromkeys(said)), []
        stats, sent, written = self.stats(), ledger.counts, ledger.written
        return Run(
            added=written["added"],
            changed=written["changed"],
            removed=written["removed"],
            unchanged=len(ledger.states) - sent["added"] - sent["changed"],
            embedded=self._embedded - embedded,
            seconds=time.monotonic() - started,
            notices=notices,
            stats=stats,
        )

    def _index_changes(self) -> None:
        """Index the files that changed since the last command, within the time budget."""
        if time.monotonic() - self._checked_at < REFRESH_INTERVAL_S:
            return
        name = self._active
        self.behind = self._changes_since(name)
        if self.behind and self._active != name:  # another command has just switched the index
            self.behind = self._changes_since(self._active)
        self._checked_at = time.monotonic()

    def _changes_since(self, collection: str) -> str:
        """Index changes since a collection was written; a sentence about those that remain."""
        freshness = Freshness(self.workspace)
        if freshness.is_current(configuration_of(collection)):
            return ""
        from repertory.local.update import Update  # noqa: PLC0415 - only after a change

        self._status_at = float("-inf")
        return Update(self.parts, self.live, freshness).changes(self._budget_s)

    @property
    def _active(self) -> str:
        """The name of the searched collection; empty if none."""
        return self.parts.store.alias(self.parts.active) or ""

    def _check_device(self) -> None:
        """Raise DeviceUnavailableError if the settings require a GPU and none is available."""
        if self.settings.values.device == "gpu":
            try:
                self.parts.queries.get()
            except DeviceUnavailableError:
                raise
            except ModelError:  # words alone answer
                pass

    def _noted(self, notices: tuple[str, ...]) -> tuple[str, ...]:
        """The notices of an answer, with those of this process."""
        self._read_status()
        behind = (self.behind,) if self.behind else ()
        # A server that ran here may have left the same notices.
        return tuple(dict.fromkeys((*behind, *self.workspace.notices, *self._servers, *notices)))

    def _read_status(self) -> None:
        """Read the last command's report about the sources, at most once a second."""
        if time.monotonic() - self._status_at < REFRESH_INTERVAL_S:
            return
        watch = watch_status(self.parts.coordination.status) or WatchStatus()
        max_age_s = self.settings.values.tools_max_age * 3_600
        to_index = self.settings.to_index
        self._servers = about_servers(watch.sources, max_age_s, time.time(), to_index)
        self._away = {one.name for one in watch.sources if one.error and _is_away(one)}
        self._status_at = time.monotonic()

    def _is_gone(self, found: Hit | Entry | Item) -> bool:
        """Whether the file of an item has been deleted; a path may be relative on another machine.

        If a source's folder is missing or suddenly empty, it may be unmounted, so its items stay.
        """
        if not os.path.isabs(found.path):  # noqa: PTH117 - speed
            return False
        try:
            os.lstat(found.path)
        except (FileNotFoundError, NotADirectoryError):
            self._read_status()
            return found.source not in self._away
        except OSError:  # it cannot be looked at
            pass
        return False

    @property
    def _embedded(self) -> int:
        """How many texts this process has embedded."""
        return int(self.parts.coordination.status.counters().get("texts", 0))


def _is_away(source: SourceState) -> bool:
    """Whether a failing source's items may come back. A single item may have been deleted."""
    if source.stale >= max(source.items, MANY):
        return True
    place = source.location
    return Path(place).is_absolute() and not os.path.lexists(place)  # Path.exists may raise
