"""The worker's side: turns jobs into points, in whatever order they arrive.

Of two writes of one item the higher revision wins. A deletion leaves a tombstone, so that a late
write does not restore the item. There are no locks. Every write is conditional, and its result is
checked again afterwards.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError

from repertory.catalogue.item import Item
from repertory.coordination.deltas import REMOVED
from repertory.coordination.ports import Coordination
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.models import Model
from repertory.embedding.words import WORDS_MODEL
from repertory.errors import ModelError, StoreCorruptError, StoreError
from repertory.index.cache import Vector, VectorCache, vector_key
from repertory.index.vectors import Collection, VectorStore
from repertory.indexing.collection_names import (
    collection_name,
    configuration_of,
    current,
    generation_of,
    generations,
    is_writable,
    model_slug,
    namespace_of,
    next_alias,
)
from repertory.indexing.embed import embed
from repertory.indexing.job import Job
from repertory.indexing.write import write
from repertory.system import cancellation
from repertory.telemetry import spans

_log = logging.getLogger(__name__)


class Writer:
    """Does jobs. Thread-safe, also with writers in other processes.

    Args:
        engine: Returns the embedding engine, and loads it at the first call.
        cache: Returns the vector cache of a model.
        active: The alias of the collection that is searched.
        notify: Called with a notice, one sentence, for the user.
    """

    def __init__(
        self,
        *,
        store: VectorStore,
        engine: Callable[[], EmbeddingEngine],
        cache: Callable[[Model], VectorCache],
        coordination: Coordination,
        active: str,
        notify: Callable[[str], None],
    ) -> None:
        self._store = store
        self._load = engine
        self._open_cache = cache
        self._coordination = coordination
        self._tombstones = coordination.tombstones
        self._active = active
        self._namespace = namespace_of(active)
        self._notify = notify
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._engine: EmbeddingEngine | None = None
        self._cache: VectorCache | None = None

    @property
    def engine(self) -> EmbeddingEngine:
        """The embedding engine, loaded at the first use.

        Raises:
            StoreError: It is unavailable now, which is no job's fault.
        """
        with self._lock:
            if self._engine is None:
                try:
                    self._engine = self._load()
                except ModelError as error:
                    raise StoreError(f"Nothing can be embedded now: {error}") from error
            return self._engine

    @property
    def loaded(self) -> EmbeddingEngine | None:
        """The embedding engine, if it is loaded."""
        return self._engine

    def free_memory(self) -> None:
        """Release the memory that the engine keeps for the next texts."""
        if self._engine is not None:
            self._engine.free_memory()

    def end(self) -> None:
        """Stop embedding. A job that needs it fails with ``StoreError``."""
        self._ending.set()

    def write(self, jobs: Sequence[Job]) -> None:
        """Do jobs together, and embed their texts in common batches.

        Jobs may be repeated, late and out of order. A job is obsolete and skipped if its collection
        is gone, or belongs to another model or embedding recipe.

        Raises:
            StoreRefusedError: The store refuses an item of one of the jobs.
            StoreError: A store is unavailable; the same jobs can be done later.
            ModelError: An item of one of the jobs cannot be embedded.
        """
        with contextlib.ExitStack() as stack:
            work = []
            for name in dict.fromkeys(job.collection for job in jobs):
                collection = self._opened(name)
                if collection is not None:
                    stack.enter_context(collection)
                    own = [job for job in jobs if job.collection == name]
                    work.append((collection, own, self._newer(collection, own)))
            vectors = self._embed([item for *_, items in work for item, _ in items])
            for collection, own, items in work:
                with spans.span("write to the store", {"repertory.items": len(items)}):
                    self._write(collection, own, items, vectors)
                    changed = self._settled(collection, own)
                self._coordination.deltas.announce(collection.name, changed)
        self.count(jobs=len(jobs), batches=1)

    def begin(self, configuration: str, generation: int | None = None) -> None:
        """Find or create the target collection, and point ``next_alias`` to it.

        See ``JobQueue.begin``.

        Raises:
            StoreError: A store or the model is unavailable now.
        """
        self._reload_missing_model()
        model = self.engine.model
        alias = next_alias(self._active, configuration)
        stored = generations(self._store, self._namespace, configuration, model.slug)
        newest = max(map(generation_of, stored), default=0)
        name = before = self._store.alias(alias)
        if model == WORDS_MODEL and name is not None and model_slug(name) != WORDS_MODEL.slug:
            return  # keep the vectors until a model is available again
        if name is None or not is_writable(name, model.slug):
            name = current(self._store, self._namespace, configuration, model.slug)
        if generation is not None and generation > newest:
            name = None
        if name is not None:
            try:
                self._store.open(name).close()
            except StoreCorruptError as error:  # it can be rebuilt from the sources and the cache
                self._notify(f"{error} It is built again from the sources.")
                self._store.drop(name)
                self._coordination.snapshots.drop(name)
                name = None
        if name is None:
            number = max(newest + 1, generation or 0)
            name = collection_name(self._namespace, configuration, model.slug, number)
            try:
                self._store.create(name, model.dimension).close()
            except StoreError:
                if name not in self._store.collections():
                    raise
                # Another worker has just created it.
        if name != before:  # otherwise keep a newer alias of another worker
            self._store.set_alias(alias, name)
            _log.info("collection_begun", extra={"collection": name})

    @contextlib.contextmanager
    def holding(self, collections: Iterable[str]) -> Iterator[None]:
        """Keep collections open, so that no other process opens an embedded one.

        Raises:
            StoreError: A store is unavailable.
        """
        with contextlib.ExitStack() as stack:
            for name in collections:
                if name in self._store.collections():
                    stack.enter_context(self._store.open(name))
            yield

    def has_vectors(self, item: Item) -> bool:
        """Whether all texts of an item were embedded before, so that writing it is cheap.

        Raises:
            StoreError: The model or the cache is unavailable.
        """
        model = self.engine.model
        keys = {vector_key(model, view.text) for view in item.views()}
        return len(self._vectors(model).get([*keys])) == len(keys)

    def close(self) -> None:
        """Close the vector cache."""
        with self._lock:
            if self._cache is not None:
                self._cache.close()
                self._cache = None

    def _reload_missing_model(self) -> None:
        """If no model was available, load the engine again at its next use."""
        with self._lock:
            if self._engine is not None and self._engine.model == WORDS_MODEL:
                self._engine = self._cache = None

    def _opened(self, name: str) -> Collection | None:
        """Open a collection for writing; None if it is gone, or has another model or recipe."""
        model = self.engine.model
        if model_slug(name) != model.slug:
            if model == WORDS_MODEL:
                self._reload_missing_model()
                raise StoreError(f"Nothing can be written to {name} now: there is no model.")
            _log.warning("job_of_another_model", extra={"collection": name})
            self.begin(configuration_of(name))
            return None
        if not is_writable(name, model.slug):  # its successor gets the items
            _log.info("job_of_another_recipe", extra={"collection": name})
            return None
        if name not in self._store.collections():
            _log.info("job_of_a_dropped_collection", extra={"collection": name})
            return None
        return self._store.open(name)

    def _newer(self, collection: Collection, jobs: Iterable[Job]) -> list[tuple[Item, int]]:
        """The items to write whose revisions are newer than the stored ones and any deletion."""
        newest: dict[str, tuple[Item, int]] = {}
        removed = _removed(jobs)
        for job in sorted(jobs, key=lambda job: job.revision):
            for item in job.items:
                if removed.get(item.id, 0) <= job.revision:
                    newest[item.id] = (item, job.revision)
        ids = list(newest)
        stored = {state.item: state.revision for state in collection.states(ids)}
        deleted = self._tombstones.deleted(collection.name, ids)
        return [
            (item, revision)
            for item, revision in newest.values()
            if revision > max(stored.get(item.id, 0), deleted.get(item.id, 0))
        ]

    @spans.traced("embed texts")
    def _embed(self, items: Sequence[Item]) -> dict[bytes, Vector]:
        """The vectors of all texts of some items."""
        if not items:
            return {}
        engine = self.engine
        texts = (view.text for item in items for view in item.views())
        cache, claims = self._vectors(engine.model), self._coordination.claims
        try:
            with cancellation.until(self._ending.is_set):
                vectors, embedded = embed(texts, engine, cache, claims)
        except CancelledError as error:
            raise StoreError("The worker ends.") from error
        if embedded and engine.model != WORDS_MODEL:
            _log.info("texts_embedded", extra={"texts": embedded})
            self.count(texts=embedded)
        return vectors

    def _write(
        self,
        collection: Collection,
        jobs: Iterable[Job],
        items: Sequence[tuple[Item, int]],
        vectors: Mapping[bytes, Vector],
    ) -> None:
        """Write items with their revisions, and record deletions."""
        removed = _removed(jobs)
        for revision in sorted({revision for _, revision in items}):
            batch = [item for item, own in items if own == revision]
            write(collection, batch, revision, self.engine.model, vectors)
        # Recorded before the deletion itself, so that a late write finds the tombstone.
        self._tombstones.record_deletions(collection.name, removed)
        self.count(written=len(items), removed=len(removed))

    def _settled(self, collection: Collection, jobs: Sequence[Job]) -> dict[str, str]:
        """Delete removed items, and sections that an older write added to a newer item.

        Other workers may have written or deleted in the meantime, or may have been killed while
        doing the same job.

        Returns:
            The stored hash of every item of the jobs. All are announced, including unchanged ones,
            because an earlier write may not have been announced.
        """
        written = {item.id: job.revision for job in jobs for item in job.items}
        about = list(written | _removed(jobs))
        _delete(collection.delete_items, self._tombstones.deleted(collection.name, about))
        stored = {state.item: state for state in collection.states(about)}
        outdated = {
            item: stored[item].revision
            for item, revision in written.items()
            if item in stored and stored[item].revision > revision
        }
        _delete(collection.delete_sections, outdated)
        return {item: stored[item].metadata_hash if item in stored else REMOVED for item in about}

    def _vectors(self, model: Model) -> VectorCache:
        with self._lock:
            if self._cache is None:
                self._cache = self._open_cache(model)
            return self._cache

    def count(self, **counters: int) -> None:
        """Add to the informational counters of the status board; store errors are ignored."""
        with contextlib.suppress(StoreError):
            self._coordination.status.count(counters)


def _removed(jobs: Iterable[Job]) -> dict[str, int]:
    """The items that jobs remove, each with its highest revision."""
    removed: dict[str, int] = {}
    for job in jobs:
        for item in job.removed:
            removed[item] = max(removed.get(item, 0), job.revision)
    return removed


def _delete(delete: Callable[[Sequence[str], int], None], older: Mapping[str, int]) -> None:
    """Delete points older than these revisions, which are by item."""
    for revision in sorted(set(older.values())):
        delete([item for item, own in older.items() if own == revision], revision)
