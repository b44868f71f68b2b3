"""The search of a running server: it follows what is in force, and answers whatever goes away."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, Self

from repertory.coordination.claims import Claims
from repertory.coordination.deltas import Deltas
from repertory.coordination.status import StatusBoard
from repertory.embedding.engine import EmbeddingEngine
from repertory.errors import ModelError, NothingIndexedError, StoreError
from repertory.index.keywords.snapshot import SnapshotStore
from repertory.index.vectors import Collection, VectorStore
from repertory.indexing.collections import model_slug
from repertory.indexing.keyword_feed import KeywordFeed
from repertory.search.engine import SearchEngine

POLL = 1.0  # seconds between two looks at the alias, and at most for a delta
COMPARE = 5.0  # seconds between two comparisons with the collection while deltas cannot be had
NOTHING_YET = (
    "Nothing is indexed yet: the first index is still being built, or no worker and no watch "
    "service run."
)
LET_GO = 10.0  # seconds after which no search can be using a collection that was replaced

_log = logging.getLogger(__name__)


class LiveSearch:
    """Gives the search engine in force. A context manager; safe to call from several threads.

    It follows an alias and the deltas of the collection behind it on a thread of its own, and
    replaces the engine, which never changes, by another one.

    Args:
        in_force: The alias of what is searched.
        embedding: Gives the engine for queries, waiting for it; raises ModelError.
        reader: Runs the keyword arm of searches.
    """

    def __init__(
        self,
        *,
        store: VectorStore,
        snapshots: SnapshotStore,
        deltas: Deltas,
        claims: Claims,
        status: StatusBoard,
        in_force: str,
        embedding: Callable[[], EmbeddingEngine],
        reader: Executor,
    ) -> None:
        self._store = store
        self._snapshots = snapshots
        self._deltas = deltas
        self._claims = claims
        self._status = status
        self._alias = in_force
        self._embedding = embedding
        self._reader = reader
        self._missing: dict[str, str] = {"index": "The index has not been opened yet."}
        self._engine: SearchEngine | None = None
        self._feed: KeywordFeed | None = None
        self._sources: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        self._old: list[tuple[float, Collection]] = []
        self._polled = self._compared = float("-inf")
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="live-search", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        for _since, collection in self._old:
            collection.close()
        if self._feed is not None:
            self._feed.collection.close()

    @property
    def engine(self) -> SearchEngine:
        """The search engine in force.

        Raises:
            StoreError: There is nothing to search now; the message says why.
        """
        if self._engine is None:
            if self._missing.get("index") == NOTHING_YET:
                raise NothingIndexedError(NOTHING_YET)
            raise StoreError(" ".join(self._missing.values()) or "The index is being opened.")
        return self._engine

    @property
    def missing(self) -> dict[str, str]:
        """What is missing, by part (``index``, ``vectors``, ``model``, ``deltas``), and why."""
        return dict(self._missing)

    def wait(self, seconds: float) -> bool:
        """Wait until there is something to search.

        Returns:
            Whether there is.
        """
        return self._ready.wait(seconds)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._step()
            # A boundary: whatever happens on this thread, searches go on with what there is.
            except Exception:
                _log.exception("live_search_failed")
                self._stop.wait(POLL)

    def _step(self) -> None:
        now = time.monotonic()
        if now - self._polled >= POLL:
            self._polled = now
            self._look(now)
        if self._feed is None:
            self._stop.wait(POLL / 4)
        elif "vectors" in self._missing:
            self._stop.wait(POLL)
        else:
            self._advance(self._feed, now)

    def _look(self, now: float) -> None:
        """See what is in force, what is said of the sources, and whether there is a model."""
        try:
            name = self._store.alias(self._alias)
            if name is None and self._feed is None:
                self._missing["index"] = NOTHING_YET
            elif name is not None and (self._feed is None or self._feed.collection.name != name):
                self._open(name, now)
            back = self._missing.pop("vectors", None)
        except StoreError as error:
            part = "index" if self._feed is None else "vectors"
            if part not in self._missing or part == "index":
                self._missing[part] = str(error)
                self._replace()
            return
        self._check_model()
        if self._look_at_sources() or back:
            self._replace()
        for _, collection in [old for old in self._old if now - old[0] > LET_GO]:
            collection.close()
        self._old = [old for old in self._old if now - old[0] <= LET_GO]

    def _open(self, name: str, now: float) -> None:
        """Take over another collection, once its keyword index is there as well."""
        collection = self._store.open(name)
        feed = KeywordFeed(collection, self._snapshots, self._deltas, self._claims)
        try:
            feed.open()
        except BaseException:
            collection.close()
            raise
        if self._feed is not None:
            self._old.append((now, self._feed.collection))
        self._feed = feed
        self._missing.pop("index", None)
        self._replace()
        _log.info("index_opened", extra={"collection": name, "items": len(feed.index)})

    def _advance(self, feed: KeywordFeed, now: float) -> None:
        """Follow the deltas; without them, compare with the collection every few seconds."""
        try:
            changed = feed.advance(POLL / 2)
            self._missing.pop("deltas", None)
        except StoreError as error:
            self._missing["deltas"] = f"Changes are found later than usual: {error}"
            self._stop.wait(POLL / 2)
            if now - self._compared < COMPARE:
                return
            self._compared = now
            with contextlib.suppress(StoreError):  # the next look says that vectors are missing
                if feed.compare():
                    self._replace()
            return
        if changed:
            self._replace()

    def _check_model(self) -> None:
        """Note whether queries can be embedded; the engine asks again at every search."""
        try:
            self._fitting()
            self._missing.pop("model", None)
        except ModelError as error:
            self._missing["model"] = str(error)

    def _look_at_sources(self) -> bool:
        """Take over the order of the sources and which are stale; whether that changed."""
        try:
            said: dict[str, Any] = self._status.said().get("watch", {})
        except StoreError:
            return False
        sources = said.get("sources", [])
        names = tuple(one["name"] for one in sources)
        stale = tuple(one["name"] for one in sources if one["error"] or one["stale"])
        changed = (names, stale) != self._sources and bool(said)
        if changed:
            self._sources = names, stale
        return changed

    def _replace(self) -> None:
        """Make a search engine of what there is now."""
        if self._feed is None:
            return
        self._feed.index.prepare()
        away = self._missing.get("vectors")
        precedence, stale = self._sources
        self._engine = SearchEngine(
            keywords=self._feed.index,
            collection=None if away else self._feed.collection,
            embedding=self._fitting,
            reader=self._reader,
            degraded=[away] if away else [],
            precedence=precedence,
            stale=stale,
            version=self._feed.revision,
        )
        self._ready.set()

    def _fitting(self) -> EmbeddingEngine:
        """The engine for queries, if it fits the vectors that are searched."""
        engine = self._embedding()
        slug = model_slug(self._feed.collection.name) if self._feed else engine.model.slug
        if engine.model.slug != slug:
            raise ModelError(
                f"The index holds vectors of {slug}, but queries are embedded with "
                f"{engine.model.slug}; give all parts of the server the same model."
            )
        return engine
