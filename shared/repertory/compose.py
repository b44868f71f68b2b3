"""One directory's repertory, put together: all that an entry point without a server needs.

Whatever a command does not need is not even imported: a search loads no source, and the model is
loaded while the index is being opened.
"""

import contextlib
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

import msgspec

from repertory.adapters import Adapters
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.lazy import RETRY_AFTER, LazyEngine
from repertory.embedding.load import load_engine
from repertory.embedding.words import WORDS, WordsEngine
from repertory.errors import ModelError, NothingIndexedError, StoreError, WeightsUnavailableError
from repertory.index.keywords.index import KeywordIndex
from repertory.index.vectors import Collection, VectorStore
from repertory.indexing import keywords
from repertory.indexing.collections import current, model_slug
from repertory.indexing.report import Progress, Report
from repertory.local import Local
from repertory.search.answer import Answer, Query
from repertory.search.engine import SearchEngine
from repertory.search.explanation import Explanation
from repertory.settings import Settings
from repertory.sources.source import Problem, Severity
from repertory.workspace import Pointer, Workspace

Download = Callable[[int, int], None]  # bytes there, bytes in all

SEARCH_PATIENCE = 1.0  # seconds that a search waits for another process before it does without


class Repertory(Local):
    """One directory's repertory: index it, search it, look at it. A context manager.

    Args:
        settings: What is in force.
        directory: Where the user is.
        download: Told how far a model's download is.
    """

    def __init__(
        self,
        settings: Settings,
        directory: Path,
        *,
        download: Download | None = None,
    ) -> None:
        self._stack = contextlib.ExitStack()
        self.settings = settings
        self.workspace = Workspace(settings, directory)
        # Where the index is: models and trust are kept even when nothing of the index is.
        self._folder = settings.data_dir
        self._unsaved: Pointer | None = None
        if settings.values.no_cache:
            folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="repertory-"))
            self._folder = Path(folder)
        self._download = download
        self._adapters = Adapters(settings, self._folder)
        self._search: SearchEngine | None = None
        self._store: VectorStore | None = None
        self._queries = LazyEngine(lambda: self._load(queries_only=True))
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="keywords")
        self._lock = threading.RLock()
        self._retry_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of everything. Closing twice is allowed."""
        super().close()
        self._reader.shutdown(cancel_futures=True)
        self._close_search()
        self._stack.close()

    def index(self, progress: Progress, *, words_suffice: bool = False) -> Report:
        """Make the index equal to the sources; see ``Indexer.run``.

        Args:
            progress: Told how far the run is.
            words_suffice: Where no model can be had and nothing was indexed with one, index words
                alone rather than nothing.

        Raises:
            ModelError: There is no model, or it cannot be used.
        """
        return self._run(progress, words_suffice=words_suffice)

    def rebuild(self, progress: Progress) -> Report:
        """Build the index anew beside the old one; see ``Indexer.rebuild``."""
        return self._run(progress, rebuild=True)

    @property
    def is_indexed(self) -> bool:
        """Whether a search can answer without indexing first."""
        return self.stats() is not None

    def search(self, query: Query) -> Answer:
        """Search the index as it is; see ``SearchEngine.search``.

        Raises:
            StoreError: Nothing is indexed here, or nothing can answer.
        """
        self._queries.begin()
        return super().search(query)

    def explain(self, query: Query, item: str) -> Explanation:
        """Tell why a search shows an item, or why not; see ``SearchEngine.explain``.

        Raises:
            StoreError: Nothing is indexed here, or the items cannot be read now.
        """
        self._queries.begin()
        return super().explain(query, item)

    @property
    def engine(self) -> SearchEngine:
        """The search engine; one that had to do without the store is made anew after a while."""
        with self._lock:
            if self._search and self._search.is_waiting and time.monotonic() >= self._retry_at:
                self._search = None
            if self._search is None:
                self._search = self._open_search()
                self._retry_at = time.monotonic() + RETRY_AFTER
            return self._search

    def embedding(self) -> EmbeddingEngine:
        """The engine that embeds queries, waiting for it; ModelError when there is none."""
        return self._queries.get()

    def vector_store(self) -> VectorStore:
        """The vector store, which waits for another process as long as a search does."""
        with self._lock:
            if self._store is None:
                self._store = self._adapters.store(SEARCH_PATIENCE)
            return self._store

    def stats(self) -> Pointer | None:
        """What the last run here did; None before the first."""
        return self._unsaved if self.settings.values.no_cache else self.workspace.pointer()

    def _run(
        self, progress: Progress, *, rebuild: bool = False, words_suffice: bool = False
    ) -> Report:
        from repertory.indexing.indexer import Indexer  # noqa: PLC0415 - a search needs none

        self._close_search()
        make_directory(self.settings.data_dir)
        sources = self.workspace.catalogue()
        last = self.stats()
        notices: list[str] = []
        engine: EmbeddingEngine
        try:
            engine = self._load(queries_only=False, warn=notices.append)
        except WeightsUnavailableError as error:
            if not words_suffice or (last and last.report.model):
                raise
            engine = WordsEngine(str(error))
        with contextlib.closing(self._adapters.cache(engine.model)) as cache:
            indexer = Indexer(
                sources, engine, self._adapters.store(), cache, self._adapters.snapshots, progress
            )
            seen = {one.name: one.seen for one in last.report.sources} if last else {}
            report = indexer.rebuild(seen) if rebuild else indexer.run(seen)
        if isinstance(engine, WordsEngine):
            only = Problem(
                severity=Severity.ERROR, message=f"Only words are indexed: {engine.reason}"
            )
            report = msgspec.structs.replace(report, embedded=0, problems=[only, *report.problems])
        report = msgspec.structs.replace(report, notices=[*notices, *report.notices])
        pointer = Pointer(
            configuration=sources.hash,
            collection=report.collection,
            at=time.time(),
            report=report,
            servers={
                source.name: dict(source.identity())
                for source in sources.sources
                if source.type == "mcp"
            },
            rules=self.workspace.rules_digest,
        )
        if self.settings.values.no_cache:
            self._unsaved = pointer
        else:
            self.workspace.remember(pointer)
        return report

    def _close_search(self) -> None:
        if self._search is not None and self._search.collection is not None:
            self._search.collection.close()
        self._search = None

    def _open_search(self) -> SearchEngine:
        pointer = self.stats()
        if pointer is None:
            raise NothingIndexedError("Nothing is indexed here yet; run `repertory index`.")
        slug = model_slug(pointer.collection)
        degraded: list[str] = []
        collection: Collection | None = None
        name = pointer.collection
        try:
            store = self.vector_store()
            if name not in store.collections():  # another directory's run made a new generation
                name = current(store, pointer.configuration, slug) or name
            collection = store.open(name)
        except StoreError as error:
            degraded.append(str(error))
        index = self._keywords(name, collection, degraded)
        return SearchEngine(
            keywords=index,
            collection=collection,
            embedding=lambda: self._engine(slug),
            reader=self._reader,
            degraded=degraded,
            precedence=[source.name for source in pointer.report.sources],
            stale=pointer.report.stale_sources,
            version=pointer.report.revision,
        )

    def _load(
        self, *, queries_only: bool, warn: Callable[[str], None] | None = None
    ) -> EmbeddingEngine:
        values = self.settings.values
        return load_engine(
            values.model,
            values.device,
            self.settings.data_dir,
            queries_only=queries_only,
            progress=self._download,
            warn=warn,
        )

    def _engine(self, slug: str) -> EmbeddingEngine:
        """The engine for queries, once it is loaded, if it fits the vectors that are stored."""
        if slug == WORDS.slug:
            raise ModelError(
                "No model could be had when this was indexed, so words alone are searched; run "
                "`repertory index` when there is one."
            )
        engine = self._queries.get()
        if engine.model.slug != slug:
            raise ModelError(
                f"The index holds vectors of {slug}, but the model is {engine.model.slug}; "
                "run `repertory index`."
            )
        return engine

    def _keywords(
        self, name: str, collection: Collection | None, degraded: list[str]
    ) -> KeywordIndex | None:
        """The stored keyword index, or one built from the collection; None if neither is there."""
        try:
            stored = keywords.load(self._adapters.snapshots, name)
        except StoreError as error:
            degraded.append(str(error))
            stored = None
        if stored:
            return stored[0]
        if collection is None:
            return None
        try:
            states = {state.item: state for state in collection.states()}
            index = keywords.synchronised(KeywordIndex.empty(), states, {}, collection)
        except StoreError as error:
            degraded.append(str(error))
            return None
        revision = max((state.revision for state in states.values()), default=0)
        # A search that cannot store what it built answers all the same.
        with contextlib.suppress(StoreError):
            keywords.save(self._adapters.snapshots, name, index, revision)
        return index


def make_directory(path: Path) -> None:
    """Make the data directory.

    Raises:
        StoreError: It cannot be made or written.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"The data directory {path} cannot be made: {error.strerror}; choose another with "
            "--data-dir or REPERTORY_DATA_DIR."
        ) from error


def open_corpus(settings: Settings, folder: Path, download: Download | None = None) -> Repertory:
    """The repertory of a labelled set's corpus, apart from the user's own items and policies."""
    entry = {"type": "corpus", "path": str(folder.resolve() / "corpus.jsonl")}
    alone = msgspec.structs.replace(
        settings, sources=(entry,), rules=(), base=folder.resolve(), file=None, mcp_configs=()
    )
    # No directory can be a file, so nobody has given this one other paths to index.
    return Repertory(alone, folder.resolve() / "corpus.jsonl", download=download)
