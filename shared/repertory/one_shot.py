"""The repertory of one directory without a server: the same lifecycle, one command at a time."""

import contextlib
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

import msgspec
from typing_extensions import override

from repertory.compose import Download, Parts
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.words import WORDS, WordsEngine
from repertory.errors import NothingIndexedError, StoreError
from repertory.files import make_directory
from repertory.indexing.collections import configuration_of, model_slug
from repertory.local import Local
from repertory.search.answer import Answer
from repertory.search.engine import SearchEngine
from repertory.search.explanation import Explanation
from repertory.search.query import Query
from repertory.settings import Settings
from repertory.stats import Run, Stats
from repertory.workspace import Indexed

LOCK_TIMEOUT_S = 1.0  # that a search waits for another process before it does without the vectors
REFRESH_INTERVAL_S = 1.0  # after which a search reads again which collection is active

Progress = Callable[[str, int, int], None]  # the stage, how much of it is done, how much in all


def no_progress(_stage: str, _done: int, _total: int) -> None:
    """Report nothing."""


class Repertory(Local):
    """Index and search one directory in this process. A context manager.

    Args:
        settings: The active settings.
        directory: The directory whose catalogue is meant.
        download: Called with the progress of a model's download.
        progress: Called with the progress of a model's calibration.
    """

    def __init__(
        self,
        settings: Settings,
        directory: Path,
        *,
        download: Download | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._stack = contextlib.ExitStack()
        folder = None
        if settings.values.no_cache:
            temporary = tempfile.TemporaryDirectory(prefix="repertory-")
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
        super().__init__(parts, parts.live_search(self._reader))
        self._lock = threading.RLock()
        self._refreshed_at = float("-inf")
        self._is_checked = False
        self._indexed: Indexed | None = None  # by this process, where nothing is stored

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @override
    def close(self) -> None:
        """Close everything. Closing twice is allowed."""
        super().close()
        self._reader.shutdown(cancel_futures=True)
        self.live.close()
        self._stack.close()

    @property
    @override
    def engine(self) -> SearchEngine:
        """The search engine, at most a second behind what other commands have indexed."""
        with self._lock:
            now = time.monotonic()
            if now - self._refreshed_at >= REFRESH_INTERVAL_S:
                self._refreshed_at = now
                self.live.refresh()
            return self.live.engine

    @override
    def search(self, query: Query) -> Answer:
        """Search the index as it is; see ``SearchEngine.search``."""
        self.parts.queries.begin()  # the model loads while the index is opened
        return super().search(query)

    @override
    def explain(self, query: Query, item: str) -> Explanation:
        """Explain why a search shows an item or not; see ``SearchEngine.explain``."""
        self.parts.queries.begin()
        return super().explain(query, item)

    @override
    def stats(self) -> Stats:
        """The statistics of the index.

        Raises:
            NothingIndexedError: Nothing was indexed here yet.
        """
        with contextlib.suppress(StoreError):
            self.engine  # noqa: B018 - opens the index
        if self.parts.store.alias(self.parts.active) is None:
            raise NothingIndexedError("Nothing is indexed here yet; run `repertory index`.")
        return super().stats()

    @property
    def is_indexed(self) -> bool:
        """Whether a search can answer for the present configuration without indexing first."""
        indexed = self._indexed or self.workspace.indexed()
        if indexed is None or indexed.request != self.workspace.request:
            return False
        name = self.parts.store.alias(self.parts.active)
        return name is not None and configuration_of(name) == indexed.configuration

    @override
    def ensure_indexed(self) -> None:
        """Index, unless that was done for the present configuration."""
        with self._lock:
            if not (self._is_checked or self.is_indexed):
                self.index(words_suffice=True)
            self._is_checked = True

    @override
    def refresh(self) -> Stats:
        return self.index(words_suffice=True).stats

    def index(self, progress: Progress = no_progress, *, words_suffice: bool = False) -> Run:
        """Make the index equal to the sources.

        Args:
            progress: Called with the progress of the run.
            words_suffice: If no model is available and nothing was indexed with one, index
                keywords alone instead of failing.

        Raises:
            ModelError: There is no model, or it cannot be used.
            StoreError: A store is unavailable.
        """
        return self._run(progress, words_suffice=words_suffice)

    def rebuild(self, progress: Progress = no_progress) -> Run:
        """Build the index beside the old one, and switch to it when it is complete.

        Raises:
            ModelError, StoreError: As for ``index``.
        """
        return self._run(progress, rebuild=True)

    def _run(
        self, progress: Progress, *, rebuild: bool = False, words_suffice: bool = False
    ) -> Run:
        from repertory.indexing.run import run  # noqa: PLC0415 - a search needs none of it

        started = time.monotonic()
        with self._lock:
            make_directory(self.settings.data_dir)
            request = self.workspace.request
            catalogue = self.workspace.catalogue()
            engine = self._text_engine(words_suffice=words_suffice)
            if isinstance(engine, WordsEngine):
                self.parts.notices.append(f"Only keywords are indexed: {engine.reason}")
            elif engine.device == "cpu":  # the one that embeds queries
                self.parts.calibrate(engine)
            embedded = self._embedded
            with contextlib.closing(self.parts.writer(lambda: engine)) as writer:
                queue = self.parts.in_process_queue(writer)
                coordinator = self.parts.coordinator(queue)
                self.live.refresh()  # its keyword index follows the run
                if rebuild:
                    self.request_rebuild(queue, catalogue.hash)
                    queue.work()  # creates the generation
                run(catalogue, coordinator, queue, progress)
            ledger = coordinator.ledger
            assert ledger is not None
            if ledger.added or ledger.changed or ledger.removed:
                with self.parts.store.open(ledger.collection) as collection:
                    collection.optimize()
            self.live.refresh()
            self.live.save()
            self._refreshed_at = time.monotonic()
            coordinator.retire()
            status = msgspec.to_builtins(coordinator.status())
            self.parts.coordination.status.report("watch", status)
            self._remember(Indexed.of(request, catalogue))
            for failure in self.parts.coordination.failures.list():
                items = ", ".join(sorted(failure.items))
                self.parts.notices.append(f"Not indexed: {items}: {failure.error}")
        notices, self.parts.notices[:] = list(dict.fromkeys(self.parts.notices)), []
        stats = self.stats()
        return Run(
            added=ledger.added,
            changed=ledger.changed,
            removed=ledger.removed,
            unchanged=len(ledger.states) - ledger.added - ledger.changed,
            embedded=self._embedded - embedded,
            seconds=time.monotonic() - started,
            notices=notices,
            stats=stats,
        )

    def _text_engine(self, *, words_suffice: bool) -> EmbeddingEngine:
        """The engine for texts; an index with vectors is never replaced by one without."""
        name = self.parts.store.alias(self.parts.active)
        has_vectors = name is not None and model_slug(name) != WORDS.slug
        return self.parts.text_engine(words_suffice=words_suffice and not has_vectors)

    @property
    def _embedded(self) -> int:
        """How many texts this process has embedded."""
        return int(self.parts.coordination.status.counters().get("texts", 0))

    def _remember(self, indexed: Indexed) -> None:
        if self.settings.values.no_cache:
            self._indexed = indexed
        else:
            self.workspace.remember(indexed)


def open_corpus(settings: Settings, folder: Path, download: Download | None = None) -> Repertory:
    """The repertory of a labelled set's corpus, without the user's own items and policies."""
    entry = {"type": "corpus", "path": str(folder.resolve() / "corpus.jsonl")}
    alone = msgspec.structs.replace(
        settings, sources=(entry,), rules=(), base=folder.resolve(), file=None, mcp_configs=()
    )
    # A file cannot be anyone's directory, so no other paths were given for this one.
    return Repertory(alone, folder.resolve() / "corpus.jsonl", download=download)
