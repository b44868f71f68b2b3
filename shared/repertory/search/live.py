"""The live search: it follows the active collection, and keeps answering when parts fail."""

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
from repertory.search.engine import SearchEngine
from repertory.search.engine_factory import NO_VECTORS, EngineFactory, has_vectors
from repertory.search.followed_index import FollowedIndex, followed
from repertory.search.known_sources import KnownSources
from repertory.search.visible_subsets import Subsets
from repertory.search.watch_reports import WatchReports
from repertory.stats import Verification

POLL_INTERVAL_S = 1.0  # between two reads of the alias, and the longest wait for a delta
FIRST_POLL_S = POLL_INTERVAL_S / 4  # the same until a first index is whole
URGENT_WAIT_S = POLL_INTERVAL_S / 20  # for a delta between two urgent slices of a verification
WORDS_INTERVAL_S = 10.0  # after which a keyword index that is searched alone is read again
GRACE_S = 10.0  # after which no search can be using a replaced collection
OPENING = "The index has not been opened yet."
NOTHING_INDEXED = (
    "Nothing is indexed yet: run `repertory index`, or wait for the server's first index."
)

_log = logging.getLogger(__name__)


class LiveSearch:
    """Gives the current search engine. Thread-safe.

    A server enters the context: a thread then follows the alias of the active collection and the
    deltas of that collection, verifies the keyword index, and replaces the engine, which itself
    never changes; another checks whether queries can be embedded. A one-shot command calls
    ``refresh`` instead, on its own thread.

    Args:
        active: The alias of the collection that is searched.
        embedding: Gives the engine for queries, waiting for it; raises ModelError.
        reader: Runs the keyword arm of searches.
        is_shared: Whether other processes write to the store.
        folder: Where a large keyword index may keep files; None keeps all of it in memory.
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
        self._replacing = threading.RLock()  # of the engine, with the sources that it is made for
        self._index: FollowedIndex | None = None
        self._repaired = 0  # in earlier collections
        self._reports = WatchReports(coordination.status, is_shared=is_shared, clock=clock)
        self._old: list[tuple[float, Collection]] = []
        self._polled_at = float("-inf")
        self.refreshed_at = float("-inf")
        self._words = ("", float("-inf"))  # the stored index that is searched alone, and since when
        self._stopping = threading.Event()
        self._ready = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        if not self._is_shared:
            self._reports.inherit()
        # A model may take long to load, and its first calibration longer.
        for name, step in (("live-search", self.step), ("model", self._watch_model)):
            thread = threading.Thread(target=self._run, args=(step,), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.close()

    def stop(self) -> None:
        """Stop the threads, if there are any."""
        self._stopping.set()
        while self._threads:
            self._threads.pop().join()

    def close(self) -> None:
        """Close the collections. Closing twice is allowed."""
        self._let_go(float("inf"))
        if self._index is not None:
            self._index.collection.close()
        self._index = self._subsets = None
        self.refreshed_at = float("-inf")

    def refresh(self) -> None:
        """Catch up with the active collection on the caller's thread.

        Only for searches without a thread of their own. What fails is found in ``missing``.
        """
        before = self._index
        self._poll(self._clock())
        self._let_go(float("inf"))
        # A feed that was just opened is up to date: a snapshot is dropped before any write.
        if before is not None and before is self._index and "vectors" not in self._missing:
            self._advance(before, 0.0)
        self.refreshed_at = self._clock()  # it may have waited for another process

    def save(self) -> None:
        """Store the keyword index as a snapshot, without a thread running.

        One that may lack what was written is not stored: later processes would not notice.
        """
        if self._index is not None and self._missing.keys().isdisjoint(("vectors", "deltas")):
            with contextlib.suppress(StoreError):  # the next process builds it
                self._index.feed.save()

    @property
    def engine(self) -> SearchEngine:
        """The current search engine.

        Raises:
            NothingIndexedError: Nothing has been indexed yet.
            StoreError: Nothing can be searched now; the message says why.
        """
        return self.subsets.engine

    @property
    def subsets(self) -> Subsets:
        """The same, and what callers see of it who may not see everything."""
        if self._subsets is None:
            if self._missing.get("index") == NOTHING_INDEXED:
                raise NothingIndexedError(NOTHING_INDEXED)
            raise StoreError(" ".join(self._missing.values()) or "The index is being opened.")
        return self._subsets

    @property
    def sources(self) -> KnownSources:
        """What is known of the sources."""
        return self._reports.known

    def count(self) -> int:
        """The number of points of the collection that is searched, sections included."""
        return self._index.collection.count() if self._index else 0

    @property
    def missing(self) -> dict[str, str]:
        """The unavailable parts (``index``, ``vectors``, ``model``, ``deltas``), and why."""
        return dict(self._missing)

    @property
    def verification(self) -> Verification | None:
        """When this process last verified its index, and what it repaired; None without one."""
        if (index := self._index) is None:
            return None
        repaired = self._repaired + index.verifier.repaired
        return Verification(at=index.verifier.verified_at, repaired=repaired)

    def wait(self, seconds: float) -> bool:
        """Wait until something can be searched.

        Returns:
            Whether it can.
        """
        return self._ready.wait(seconds)

    def await_first(self, seconds: float) -> None:
        """If nothing is indexed yet, wait for the first index, at best until it is whole."""
        if self._missing.get("index") in {OPENING, NOTHING_INDEXED}:
            end = self._clock() + seconds
            self.wait(seconds)
            # Without a collection, words alone are searched, or nothing can be.
            while self._index is not None and self._is_first and self._clock() < end:
                if self._stopping.wait(FIRST_POLL_S):
                    return

    @property
    def _is_first(self) -> bool:
        """Whether the first index is not whole yet."""
        return self._index is None or self.sources.missing(len(self._index.feed.index)) > 0

    def _run(self, step: Callable[[], None]) -> None:
        while not self._stopping.is_set():
            try:
                step()
            # A boundary: whatever happens on this thread, searches go on with what there is.
            except Exception:
                _log.exception("live_search_failed")
                self._stopping.wait(POLL_INTERVAL_S)

    def step(self) -> None:
        """Follow the index for a moment; a server's thread does nothing else."""
        now = self._clock()
        interval = FIRST_POLL_S if self._is_first else POLL_INTERVAL_S
        if now - self._polled_at >= interval:
            self._poll(now)
            self._let_go(now)
            if self._index is not None:
                self._index.rest(now)
        if self._index is None:
            self._stopping.wait(FIRST_POLL_S)
        elif "vectors" in self._missing:
            self._stopping.wait(POLL_INTERVAL_S)
        else:
            is_urgent = self._index.verifier.is_urgent
            self._advance(self._index, URGENT_WAIT_S if is_urgent else interval / 2)
            self._index.verify(self._clock())
            self._show()

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
            back = self._missing.pop("vectors", None) is not None
        except StoreError as error:
            back = self._note_failure(name, str(error), now)
            if self._index is None:
                return
        self._follow_sources(is_new=back)  # also while the store is away

    @property
    def _searched(self) -> str:
        """The name of the collection that is searched; empty for none."""
        return self._index.collection.name if self._index else ""

    def _follow_sources(self, *, is_new: bool = False) -> None:
        """Take over what the watch reports: it says who may see what."""
        with self._replacing:
            if self._read_sources(self._searched) or is_new:
                self._replace()

    def _note_failure(self, name: str | None, error: str, now: float) -> bool:
        """Note why the store or a collection cannot be read; whether that takes something away."""
        if self._index is not None and name not in (None, self._searched):
            # The one that is searched still answers.
            _log.warning("index_not_opened", extra={"collection": name, "error": error})
            return False
        part = "index" if self._index is None else "vectors"
        if part in self._missing and part != "index":
            return False
        self._missing[part] = error
        if name is not None:
            self._search_words_of(name, now)
        return True

    def _open(self, name: str) -> None:
        """Switch to another collection, once its keyword index is loaded, too."""
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
            self._replace()
        _log.info("index_opened", extra={"collection": name, "items": len(index.feed.index)})

    def _search_words_of(self, name: str, now: float) -> None:
        """Search a stored keyword index alone: its collection cannot be opened now."""
        read, at = self._words
        is_new = self._subsets is not None and read == name and now - at < WORDS_INTERVAL_S
        if self._index is not None or is_new:
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
            self._become(self._factory.engine(keywords, None, version, self.sources, degraded))

    def _advance(self, index: FollowedIndex, wait: float) -> None:
        """Apply the deltas; without them, the verification finds what changes."""
        try:
            index.feed.advance(wait)
            self._missing.pop("deltas", None)
        except StoreError as error:
            self._missing["deltas"] = f"Changes are found later than usual: {error}"
            self._stopping.wait(wait)
        if not self._show():
            index.settle()

    def _show(self) -> bool:
        """Search the keyword index as it is now; whether that is another one."""
        searched = self._subsets.engine.keywords if self._subsets else None
        if self._index is None or searched is self._index.feed.index:
            return False
        self._replace()
        return True

    def _watch_model(self) -> None:
        """Note whether queries can be embedded; the engine asks again at every search.

        This thread also follows the report of the watch, since the other one may be opening another
        collection for minutes.
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
        """Read what the watch reports of the sources; whether that changed."""
        return self._reports.read(collection, is_served=bool(self._threads))

    def _replace(self) -> None:
        """Make a search engine from the current parts."""
        with self._replacing:
            if self._index is None:
                return
            feed, collection = self._index.feed, self._index.collection
            if self._threads:  # else one search builds what it needs
                feed.index.prepare(self._folder)
            if not has_vectors(collection):
                self._missing["model"] = NO_VECTORS
            elif self._missing.get("model") == NO_VECTORS:
                self._missing.pop("model", None)  # the other thread may be doing so, too
            unavailable = self._missing.get("vectors")
            engine = self._factory.engine(
                feed.index,
                None if unavailable else collection,
                feed.revision,
                self.sources,
                [unavailable] if unavailable else [],
            )
            self._become(engine)

    def _become(self, engine: SearchEngine) -> None:
        """Search with another engine from now on."""
        before, self._subsets = self._subsets, Subsets(engine, self.sources)
        self._ready.set()
        if before is not None and self._threads:
            self._subsets.prepare(before)

    def _let_go(self, now: float) -> None:
        """Close replaced collections that no search can be using."""
        for _, collection in [old for old in self._old if now - old[0] > GRACE_S]:
            collection.close()
        self._old = [old for old in self._old if now - old[0] <= GRACE_S]
