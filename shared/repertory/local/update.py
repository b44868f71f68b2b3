"""Updates of a directory's index by one command: from all sources, or only changed files."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from repertory.catalogue.item import Item
from repertory.catalogue.policies import Policies
from repertory.compose import Parts
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.words import WORDS_MODEL, WordsEngine
from repertory.errors import ModelError, StoreBusyError, StoreError
from repertory.index.keywords.document import Entry
from repertory.index.vectors import State
from repertory.indexing.collection_names import configuration_of, current, model_slug
from repertory.indexing.coordinator import Coordinator
from repertory.indexing.diff import diff
from repertory.indexing.in_process_queue import InProcessQueue
from repertory.indexing.known_tools import known_tools
from repertory.indexing.ledger import Ledger
from repertory.indexing.run import run
from repertory.indexing.scan import ScanResult
from repertory.indexing.writer import Writer
from repertory.live_search.live import LiveSearch
from repertory.project.freshness import Freshness
from repertory.project.workspace import Indexed
from repertory.sources.source import Source
from repertory.system.progress import Progress, no_progress
from repertory.text import counted, cut
from repertory.watch_status import Building, WatchStatus, report_watch, watch_status

# How long a command waits for a process that took the index after everything was written. A search
# has ended by then; a server that has just started keeps the index.
TAKEN_TIMEOUT_S = 2.5
MAX_NOTICE_LENGTH = 200  # characters of a notice about the model
MIN_WRITING = 1 / 3  # share of the budget reserved for writing once all files are read
# Items written between two checks of the budget: those with texts to embed, and items in all.
# Opening and flushing a collection takes as long as writing hundreds of already embedded items.
BATCH_SIZE, MAX_BATCH = 8, 250


class Stopwatch:
    """Counts the seconds since it was first read, so that a first piece of work is never late."""

    _started: float | None = None

    def seconds(self) -> float:
        """The seconds since the first reading, which is 0."""
        now = time.monotonic()
        if self._started is None:
            self._started = now
        return now - self._started


class Update:
    """One update. Not thread-safe.

    Create it before the sources are read, so that later changes are noticed next time.

    Args:
        parts: The parts of the process.
        live: The search, whose keyword index follows the update.
        freshness: The record of what the last command read.
    """

    def __init__(self, parts: Parts, live: LiveSearch, freshness: Freshness) -> None:
        self._parts = parts
        self._live = live
        self._freshness = freshness
        self._request = parts.workspace.request
        freshness.note_configuration()
        self._catalogue = parts.workspace.catalogue()
        freshness.note_sources(self._catalogue)

    def whole(
        self,
        progress: Progress,
        asks: Callable[[Source], bool],
        *,
        words_suffice: bool,
        rebuild: Callable[[InProcessQueue, str], object] | None,
        budget_s: float,
    ) -> Ledger:
        """Index all sources, as far as the budget allows.

        Files can be searched as soon as they are read, and each server's tools once it answers.

        Args:
            progress: Called with the progress.
            asks: Whether to ask a server or fetch a remote source. The last known items of other
                sources are kept.
            words_suffice: If no model is available and nothing was indexed with one, index only
                keywords instead of failing.
            rebuild: Requests a new generation of a configuration's collection; None for no rebuild.
            budget_s: Seconds in all; a share of ``MIN_WRITING`` is reserved for writing after all
                files are read.

        Returns:
            The ledger of what was written.

        Raises:
            ModelError, StoreError: The model or a store is unavailable.
        """
        engine = self._engine(words_suffice=words_suffice)
        sources = self._catalogue.sources
        scanned = [one for one in sources if not one.asks_server or asks(one)]
        with self._lifecycle(engine) as (coordinator, queue):
            known = self._known_tools(engine.model.slug)
            if rebuild is not None:
                rebuild(queue, self._catalogue.hash)
                queue.work()  # this creates the generation
            self._begin(coordinator, known)
            deadline, writing = time.monotonic() + budget_s, Stopwatch()

            def is_late() -> bool:
                """Whether time is up; first called when all files are read."""
                is_reserve_used = writing.seconds() >= budget_s * MIN_WRITING
                return is_reserve_used and time.monotonic() >= deadline

            def commit() -> None:
                """Let other processes search and write while this one waits for servers."""
                self._commit(coordinator)
                self._live.close()

            run(
                scanned,
                coordinator,
                queue,
                progress,
                refreshes=lambda one: one.fetches and asks(one),
                is_late=is_late,
                on_wait=commit,
            )
        ledger = coordinator.ledger
        assert ledger is not None
        with self._parts.store.waiting(TAKEN_TIMEOUT_S):
            self._live.refresh()
        with self._parts.store.waiting(0.0):  # do not wait for that process again
            if ledger.counts.total() and coordinator.is_finished:
                try:
                    with self._parts.store.open(ledger.collection) as collection:
                        collection.optimize()
                except StoreBusyError:  # a server optimises by itself, and a search ends soon
                    pass
                except StoreError as error:  # it needs space for a copy; searches work without it
                    self._parts.notices.append(f"The index was not optimised: {error}")
            self._commit(coordinator)
        return ledger

    def changes(self, budget_s: float) -> str:
        """Index changed files within the time budget, without asking servers.

        Args:
            budget_s: Seconds for reading files and writing items, half for each, counted from the
                first file and the first item, so that each search makes progress.

        Returns:
            A sentence about the changes that are not indexed yet; empty if all are.
        """
        active = self._parts.store.alias(self._parts.active) or ""
        reading, writing = Stopwatch(), Stopwatch()
        scans, has_news = self._freshness.scan(
            self._catalogue, configuration_of(active), lambda: reading.seconds() >= budget_s / 2
        )
        if not has_news:
            self._freshness.remember(self._catalogue)
            return ""
        read = [scan.scan for scan in scans if scan.scan]
        behind = {path for scan in read for path in scan.postponed}
        try:
            engine = self._engine_of_queries()
            with self._lifecycle(engine, in_small_batches=True) as (coordinator, queue):
                for part in ("index", "vectors"):  # another process holds the store
                    if why := self._live.missing.get(part):
                        raise StoreError(why)
                self._begin(coordinator, [*self._known_tools(engine.model.slug), *scans])

                def is_late() -> bool:
                    """Whether time is up; a build that only needs publishing gets all of it."""
                    share = 2 if coordinator.is_busy else 1
                    return writing.seconds() >= budget_s / share

                run((), coordinator, queue, no_progress, is_late=is_late)
            self._commit(coordinator)
        except (ModelError, StoreError) as error:
            behind |= self._differing(scans)
            return _not_yet(behind, f" ({str(error).rstrip('.')})") if behind else ""
        if coordinator.is_building and coordinator.ledger:
            build = coordinator.ledger.building()
            is_same = configuration_of(coordinator.active) == self._catalogue.hash
            # If it has no items, its report says why it waits.
            return _still_building(build, is_same=is_same) if build.total else ""
        behind.update(coordinator.unwritten.values())
        return "" if coordinator.is_finished and not behind else _not_yet(behind)

    def _differing(self, scans: Sequence[ScanResult]) -> set[str]:
        """The files whose items differ from the searched ones; all that were read if unknown."""
        read = [item for one in scans if one.scan for item in one.scan.items]
        try:
            entries = list(self._live.engine.keywords.all())
        except StoreError:
            return {item.path for item in read}
        policies = Policies(self._catalogue.rules, self._catalogue.may_change())
        of = {one.source.name: one for one in scans}
        changes = diff(
            {item.id: policies.apply(item).item for item in read},
            {entry.id: _state(entry) for entry in entries},
            lambda one: one.source not in of or of[one.source].keeps(one.item),
        )
        paths = {entry.id: entry.path for entry in entries}
        return {item.path for item in changes.written} | {paths[one] for one in changes.removed}

    def _engine(self, *, words_suffice: bool) -> EmbeddingEngine:
        """The engine for texts. An index with vectors is never replaced by one without vectors."""
        parts, slug = self._parts, self._slug
        has_vectors = slug not in ("", WORDS_MODEL.slug)
        engine = parts.text_engine(words_suffice=words_suffice and not has_vectors)
        # Only the first run with a fallback model says so, and briefly.
        said = [] if engine.model.slug == slug else parts.notices
        parts.notices[:] = [cut(notice, MAX_NOTICE_LENGTH) for notice in said]
        if isinstance(engine, WordsEngine):
            parts.notices.append(f"Only keywords are indexed: {engine.reason}")
        elif engine.device == "cpu":  # the device that embeds queries
            parts.calibrate(engine)
        return engine

    def _engine_of_queries(self) -> EmbeddingEngine:
        """The engine for queries, which is loaded anyway; it must have the index's model."""
        if self._slug == WORDS_MODEL.slug:
            return WordsEngine("the index has no vectors")
        engine = self._parts.queries.get()
        if engine.model.slug != self._slug:
            raise ModelError(
                f"the index has the model {self._slug}, but {engine.model.slug} is configured"
            )
        return engine

    @property
    def _slug(self) -> str:
        """The model of the searched index; empty if there is no index."""
        name = self._parts.store.alias(self._parts.active)
        return "" if name is None else model_slug(name)

    @contextlib.contextmanager
    def _lifecycle(
        self, engine: EmbeddingEngine, *, in_small_batches: bool = False
    ) -> Iterator[tuple[Coordinator, InProcessQueue]]:
        parts = self._parts
        with contextlib.closing(parts.writer(lambda: engine)) as writer:
            queue = InProcessQueue(writer, parts.coordination, self._freshness.forget)
            self._live.refresh()  # its keyword index follows the update
            if in_small_batches:
                yield parts.coordinator(queue, partial(_small_batch, writer)), queue
            else:
                yield parts.coordinator(queue), queue

    def _begin(self, coordinator: Coordinator, known: list[ScanResult]) -> None:
        coordinator.adopt(self._catalogue)
        for scan in known:
            coordinator.observe(scan)

    def _known_tools(self, slug: str) -> list[ScanResult]:
        """The known tools, even if only a command with other settings has indexed them."""
        parts = self._parts
        servers = [source for source in self._catalogue.sources if source.asks_server]
        if not servers:
            return []
        last = watch_status(parts.coordination.status) or WatchStatus()
        namespace, configuration = parts.settings.values.namespace, self._catalogue.hash
        # After another configuration, the searched index may lack servers that this one knows.
        searched = parts.store.alias(parts.active)
        own = current(parts.store, namespace, configuration, slug)
        known: list[ScanResult] = []
        for name in dict.fromkeys(filter(None, (searched, own))):
            if servers:
                with parts.store.open(name) as collection:
                    found = known_tools(servers, collection, last)
                known += [one for one in found if one.at or (one.scan and one.scan.items)]
                servers = [one for one in servers if one.name not in {k.source.name for k in known}]
        return [*known, *known_tools(servers, None, last)]

    def _commit(self, coordinator: Coordinator) -> None:
        """Publish the index for the search and the next command."""
        parts = self._parts
        self._live.refresh()  # holds the index, so no other command reports older data
        report_watch(parts.coordination.status, coordinator.status())
        with parts.store.waiting(0.0):  # skip collections that another process has open
            self._live.refresh()  # reads the report and closes what is no longer searched
            self._live.save()
            coordinator.retire()
        name = parts.store.alias(parts.active)
        if name is None or configuration_of(name) != self._catalogue.hash:
            return  # the new index is still being built
        if not parts.settings.values.no_cache:
            parts.workspace.remember(Indexed.of(self._request, self._catalogue))
            self._freshness.remember(
                self._catalogue, coordinator.unwritten, is_finished=coordinator.is_finished
            )


def _small_batch(writer: Writer, items: Sequence[Item]) -> Sequence[Item]:
    """The first items, up to ``MAX_BATCH``, of which at most ``BATCH_SIZE`` need new vectors."""
    embedded = 0
    for number, item in enumerate(items[:MAX_BATCH]):
        embedded += not writer.has_vectors(item.whole())
        if embedded > BATCH_SIZE:
            return items[:number]
    return items[:MAX_BATCH]


def _still_building(build: Building, *, is_same: bool) -> str:
    """The notice of a search about an unfinished build.

    Args:
        build: The build.
        is_same: Whether the searched index has the same sources, so this is an interrupted rebuild.
    """
    missing = f"{build.total - build.done:,} of {build.total:,} items are missing"
    if is_same:
        return (
            f"A rebuild is not finished: {missing} in the new index, and the latest changes may "
            "be missing in this one; run `repertory index`."
        )
    return (
        "The sources or the release have changed, so each search continues a new index, in which "
        f"{missing}. Until it is complete, the old index answers, without the latest changes; "
        "`repertory index` completes it."
    )


def _state(entry: Entry) -> State:
    """An indexed item as a comparison by metadata sees it."""
    return State(
        item=entry.id,
        source=entry.source,
        content_hash="",  # not compared
        metadata_hash=entry.hash,
        revision=0,
    )


def _not_yet(files: set[str], why: str = "") -> str:
    number = len(files)
    if not number:
        return f"The latest changes are not searchable yet{why}; run `repertory index`."
    what = counted(number, "changed file is", "changed files are")
    return f"{what} not searchable yet{why}; run `repertory index`."
