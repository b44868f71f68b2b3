"""The live search follows the active collection, and keeps answering when parts fail."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Self

from repertory.coordination.ports import Coordination
from repertory.embedding.engine import EmbeddingEngine
from repertory.errors import ModelError, NothingIndexedError, StoreError
from repertory.index.keywords.document import Entry
from repertory.index.vectors import Collection, VectorStore
from repertory.indexing import keyword_sync
from repertory.live_search.engine_factory import NO_VECTORS, EngineFactory, has_vectors
from repertory.live_search.followed_index import FollowedIndex, followed
from repertory.live_search.known_sources import KnownSources
from repertory.live_search.visible_subsets import Subsets
from repertory.live_search.watch_reports import WatchReports
from repertory.search.engine import SearchEngine
from repertory.stats import Verification

POLL_INTERVAL_S = 1.0  # between two reads of the alias, and the longest wait for a delta
FIRST_POLL_S = POLL_INTERVAL_S / 4  # the same until a first index is complete
URGENT_WAIT_S = POLL_INTERVAL_S / 20  # the wait for a delta between urgent verification slices
WORDS_INTERVAL_S = 10.0  # between reloads of a stored keyword index that is searched alone
GRACE_S = 10.0  # after this time no search uses a replaced collection any more
OPENING = "The index has not been opened yet."
NOTHING_INDEXED = (
    "Nothing is indexed yet: run `repertory index`, or wait for the server's first index."
)

_log = logging.getLogger(__name__)


class LiveSearch:
    """Provides the current search engine. Thread-safe.

    A server enters the context. One thread then follows the active alias and the deltas of its
    collection, verifies the keyword index, and replaces the engine, which is immutable. Another
    thread checks whether queries can be embedded. A one-shot command calls ``refresh`` on its own
    thread instead.

    Args:
        active: The alias of the collection that is searched.
        embedding: Returns the engine for queries, and waits while it loads; raises ModelError.
        reader: Runs the keyword arm of searches.
        is_shared: Whether other processes write to the store.
        folder: Where a large keyword index may keep files. If None, all of it stays in memory.
        clock: A monotonic clock, in seconds.
        is_gone: As for ``SearchEngine``.

    Attributes:
        refreshed_at: When ``refresh`` last ended, by the clock.
    """

    def __init__(  # noqa: PLR0913 - one for each part
        self,
        *,
        store: VectorStore,
        coordination: Coordination,
        active: str,
        embedding: Callable[[], EmbeddingEngine],
        reader: Executor,
        is_shared: bool = False,
        folder: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
        is_gone: Callable[[Entry], bool] | None = None,
    ) -> None:
        self._store = store
        self._coordination = coordination
        self._alias = active
        self._factory = EngineFactory(embedding, reader, is_gone)
        self._is_shared = is_shared
        self._folder = folder
        self._clock = clock
        self._missing: dict[str, str] = {"index": OPENING}
        self._subsets: Subsets | None = None
        self._replacing = threading.RLock()  # replaces the engine together with the known sources
        self._index: FollowedIndex | None = None
        self._repaired = 0  # items repaired in earlier collections
        self._reports = WatchReports(coordination.status, is_shared=is_shared, clock=clock)
        self._old: list[tuple[float, Collection]] = []
        self._polled_at = float("-inf")
        self.refreshed_at = float("-inf")
        # The collection whose stored keyword index is searched alone, and when that was loaded.
        self._words = ("", float("-inf"))
        self._stopping = threading.Event()
        self._ready = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        if not self._is_shared:
            self._reports.inherit()
        # Loading a model may take long, and its first calibration longer.
        for name, step in (("live-search", self.step), ("model", self._watch_model)):
            thread = threading.Thread(target=self._run, args=(step,), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.close()

    def stop(self) -> None:
        """Stop the threads, if any."""
        self._stopping.set()
        while self._threads:
            self._threads.pop().join()

    def close(self) -> None:
        """Close the collections. Closing twice is allowed."""
        self._close_replaced(float("inf"))
        if self._index is not None:
            self._index.collection.close()
        self._index = self._subsets = None
        self.refreshed_at = float("-inf")

    def refresh(self) -> None:
        """Catch up with the active collection on the caller's thread.

        Only for searches without threads. Failures are reported in ``missing``.
        """
        before = self._index
        self._poll(self._clock())
        self._close_replaced(float("inf"))
        # A feed that was just opened is up to date, because every write first drops the snapshot.
        if before is not None and before is self._index and "vectors" not in self._missing:
            self._advance(before, 0.0)
        self.refreshed_at = self._clock()  # not the start: it may have waited for another process

    def save(self) -> None:
        """Store the keyword index as a snapshot. Only while no thread runs.

        An index that may lack recent writes is not stored, because later processes could not tell.
        """
        if self._index is not None and self._missing.keys().isdisjoint(("vectors", "deltas")):
            with contextlib.suppress(StoreError):  # the next process builds the index instead
                self._index.feed.save()

    @property
    def engine(self) -> SearchEngine:
        """The current search engine.

        Raises:
            NothingIndexedError: Nothing has been indexed yet.
            StoreError: No search is possible now; the message says why.
        """
        return self.subsets.engine

    @property
    def subsets(self) -> Subsets:
        """The current engine with its subsets for callers who may not see everything."""
        subsets = self._subsets  # another thread may close them
        if subsets is None:
            if self._missing.get("index") == NOTHING_INDEXED:
                raise NothingIndexedError(NOTHING_INDEXED)
            raise StoreError(" ".join(self._missing.values()) or "The index is being opened.")
        return subsets

    @property
    def sources(self) -> KnownSources:
        """The sources as last reported."""
        return self._reports.known

    def count(self) -> int:
        """The number of points in the searched collection, including sections."""
        return self._index.collection.count() if self._index else 0

    @property
    def missing(self) -> dict[str, str]:
        """The unavailable parts (``index``, ``vectors``, ``model``, ``deltas``), and why."""
        return dict(self._missing)

    @property
    def verification(self) -> Verification | None:
        """When this process last verified its index, and the repairs; None without an index."""
        if (index := self._index) is None:
            return None
        repaired = self._repaired + index.verifier.repaired
        return Verification(at=index.verifier.verified_at, repaired=repaired)

    def wait(self, seconds: float) -> bool:
        """Wait until a search is possible.

        Returns:
            Whether it is.
        """
        return self._ready.wait(seconds)

    def await_first(self, seconds: float) -> None:
        """If nothing is indexed yet, wait for the first index, if possible until it is complete."""
        if self._missing.get("index") in {OPENING, NOTHING_INDEXED}:
            end = self._clock() + seconds
            self.wait(seconds)
            # Without a collection, only words can be searched, or nothing.
            while self._index is not None and self._is_first and self._clock() < end:
                if self._stopping.wait(FIRST_POLL_S):
                    return

    @property
    def _is_first(self) -> bool:
        """Whether the first index is not complete yet."""
        return self._index is None or self.sources.missing(len(self._index.feed.index)) > 0

    def _run(self, step: Callable[[], None]) -> None:
        while not self._stopping.is_set():
            try:
                step()
            # Searches continue with the current engine, whatever fails on this thread.
            except Exception:
                _log.exception("live_search_failed")
                self._stopping.wait(POLL_INTERVAL_S)

    def step(self) -> None:
        """Follow the index for a moment. The loop of a server's thread."""
        now = self._clock()
        interval = FIRST_POLL_S if self._is_first else POLL_INTERVAL_S
        if now - self._polled_at >= interval:
            self._poll(now)
            self._close_replaced(now)
            if self._index is not None:
                self._index.free_memory(now)
        if self._index is None:
            self._stopping.wait(FIRST_POLL_S)
        elif "vectors" in self._missing:
            self._stopping.wait(POLL_INTERVAL_S)
        else:
            is_urgent = self._index.verifier.is_urgent
            self._advance(self._index, URGENT_WAIT_S if is_urgent else interval / 2)
            self._index.verify(self._clock())
            self._use_new_index()

    def _poll(self, now: float) -> None:
        """Read the alias and the state of the sources."""
        self._polled_at = now
        name = None
        try:
            name = self._store.alias(self._alias)
            if name is None and self._index is None:
                self._missing["index"] = NOTHING_INDEXED
            elif name is not None and name != self._searched:
                self._open(name)
            is_changed = self._regain("vectors")
        except StoreError as error:
            if self._index is None:
                self._missing["index"] = str(error)
                if name is not None:
                    self._search_words_of(name, now)
                return
            is_changed = self._lose_vectors(name, str(error))
        self._follow_sources(is_changed=is_changed)  # also while the store is unavailable

    @property
    def _searched(self) -> str:
        """The name of the searched collection; empty if there is no collection."""
        return self._index.collection.name if self._index else ""

    def _follow_sources(self, *, is_changed: bool = False) -> None:
        """Take over the watch's report, which also says who may see what.

        ``is_changed`` says that the engine needs to be replaced in any case.
        """
        with self._replacing:
            if self._read_sources(self._searched) or is_changed:
                self._replace_engine()

    def _lose_vectors(self, name: str | None, error: str) -> bool:
        """Record why the store is unavailable, and return whether it was available before.

        If only another collection ``name`` cannot be opened, the current one still answers.
        """
        if name not in (None, self._searched):
            _log.warning("index_not_opened", extra={"collection": name, "error": error})
            return False
        return self._lose("vectors", error)

    def _lose(self, part: str, error: str) -> bool:
        """Record and log that a part of the search is missing, and return whether this is new."""
        is_new = part not in self._missing
        self._missing[part] = error
        if is_new:
            _log.warning("part_lost", extra={"part": part, "error": error})
        return is_new

    def _regain(self, part: str) -> bool:
        """Record and log that a part is no longer missing, and return whether this is new."""
        is_new = self._missing.pop(part, None) is not None
        if is_new:
            _log.info("part_regained", extra={"part": part})
        return is_new

    def _open(self, name: str) -> None:
        """Switch to another collection once its keyword index is loaded."""
        collection = self._store.open(name)
        is_served = bool(self._threads)
        index = followed(
            collection, self._coordination, is_shared=self._is_shared, is_served=is_served
        )
        with self._replacing:
            if (before := self._index) is not None:
                self._old.append((self._clock(), before.collection))
                self._repaired += before.verifier.repaired
            self._index = index
            self._missing.pop("index", None)
            self._read_sources(name)
            self._replace_engine()
        _log.info("index_opened", extra={"collection": name, "items": len(index.feed.index)})

    def _search_words_of(self, name: str, now: float) -> None:
        """Search the stored keyword index of a collection that cannot be opened now."""
        read, at = self._words
        if self._subsets is not None and read == name and now - at < WORDS_INTERVAL_S:
            return
        try:
            stored = keyword_sync.load(self._coordination.snapshots, name)
        except StoreError:
            return
        if stored is not None:
            self._words = name, now
            self._read_sources(name)
            keywords, version, _ = stored
            degraded = [self._missing["index"]]
            engine = self._factory.engine(keywords, None, version, self.sources, degraded)
            self._make_current(engine)

    def _advance(self, index: FollowedIndex, wait: float) -> None:
        """Apply the deltas. Without them, the verification finds changes."""
        try:
            index.feed.advance(wait)
            self._regain("deltas")
        except StoreError as error:
            self._lose("deltas", f"Changes are found later than usual: {error}")
            self._stopping.wait(wait)
        if not self._use_new_index():
            index.return_memory()

    def _use_new_index(self) -> bool:
        """Use the feed's current keyword index; whether it is a new one."""
        searched = self._subsets.engine.keywords if self._subsets else None
        if self._index is None or searched is self._index.feed.index:
            return False
        self._replace_engine()
        return True

    def _watch_model(self) -> None:
        """Record whether queries can be embedded; the engine checks again at every search.

        This thread also follows the watch's report, because the other thread may take minutes to
        open a collection.
        """
        if self._index is not None:
            self._follow_sources()
        try:
            self._factory.embedding(self._index.collection if self._index else None)
            self._missing.pop("model", None)
        except ModelError as error:
            self._missing["model"] = str(error)
        self._stopping.wait(POLL_INTERVAL_S)

    def _read_sources(self, collection: str) -> bool:
        """Read the watch's report on the sources; whether it changed."""
        return self._reports.read(collection, is_served=bool(self._threads))

    def _replace_engine(self) -> None:
        """Make a search engine from the current parts."""
        with self._replacing:
            if self._index is None:
                return
            feed, collection = self._index.feed, self._index.collection
            if self._threads:  # without a server, a search builds only what it needs
                feed.index.prepare(self._folder)
            if not has_vectors(collection):
                self._missing["model"] = NO_VECTORS
            elif self._missing.get("model") == NO_VECTORS:
                self._missing.pop("model", None)  # with a default: the other thread may do the same
            unavailable = self._missing.get("vectors")
            engine = self._factory.engine(
                feed.index,
                None if unavailable else collection,
                feed.revision,
                self.sources,
                [unavailable] if unavailable else [],
            )
            self._make_current(engine)

    def _make_current(self, engine: SearchEngine) -> None:
        """Make an engine the current one."""
        before, self._subsets = self._subsets, Subsets(engine, self.sources)
        self._ready.set()
        if before is not None and self._threads:
            self._subsets.prepare(before)

    def _close_replaced(self, now: float) -> None:
        """Close replaced collections that no search uses any more."""
        for _, collection in [old for old in self._old if now - old[0] > GRACE_S]:
            collection.close()
        self._old = [old for old in self._old if now - old[0] <= GRACE_S]
