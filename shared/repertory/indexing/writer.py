"""The worker's side: jobs become points, whatever order they come in.

Of two writes of an item the newer observation stays, by revision; of what was deleted a tombstone
stays, so that a late write does not raise it. Nothing here is guarded by a lock: every write is
conditional, and is looked at once more when it is done.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

from repertory.catalogue.item import Item
from repertory.coordination.claims import Claims
from repertory.coordination.deltas import REMOVED, Deltas
from repertory.coordination.status import StatusBoard
from repertory.coordination.tombstones import Tombstones
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.models import Model
from repertory.embedding.words import WORDS
from repertory.errors import ModelError, StoreCorruptError, StoreError
from repertory.index.cache import VectorCache, vector_key
from repertory.index.keywords.snapshot import SnapshotStore
from repertory.index.vectors import Collection, VectorStore
from repertory.indexing.collections import (
    collection_name,
    configuration_of,
    current,
    generation_of,
    generations,
    model_slug,
    next_alias,
)
from repertory.indexing.embed import embed_missing
from repertory.indexing.job import Job
from repertory.indexing.keyword_feed import KeywordFeed
from repertory.indexing.write import write

CLAIM = 15.0  # seconds that a batch of texts is left to whoever said to embed it
_LOOK_AGAIN = 0.05  # seconds, while another worker embeds it

_log = logging.getLogger(__name__)


class Writer:
    """Does jobs. Safe to call from several threads, and beside writers in other processes.

    Args:
        engine: Gives the embedding engine; loads it at the first call.
        cache: Gives the vector cache of a model.
    """

    def __init__(
        self,
        *,
        store: VectorStore,
        engine: Callable[[], EmbeddingEngine],
        cache: Callable[[Model], VectorCache],
        snapshots: SnapshotStore,
        tombstones: Tombstones,
        claims: Claims,
        deltas: Deltas,
        status: StatusBoard,
    ) -> None:
        self._store = store
        self._load = engine
        self._open_cache = cache
        self._snapshots = snapshots
        self._tombstones = tombstones
        self._claims = claims
        self._deltas = deltas
        self._status = status
        self._lock = threading.Lock()
        self._engine: EmbeddingEngine | None = None
        self._cache: VectorCache | None = None

    @property
    def engine(self) -> EmbeddingEngine:
        """The embedding engine, loaded when it is first asked for.

        Raises:
            StoreError: It cannot be had now, which is no job's fault.
        """
        with self._lock:
            if self._engine is None:
                try:
                    self._engine = self._load()
                except ModelError as error:
                    raise StoreError(f"Nothing can be embedded now: {error}") from error
            return self._engine

    def write(self, jobs: Sequence[Job]) -> None:
        """Do jobs together: what all of them have to embed is embedded in one batch.

        Jobs may be repeated, late and out of order. One whose collection is gone, or belongs to
        another model, is passed over: it is out of date.

        Raises:
            StoreError: A store cannot be reached; the same jobs can be done later.
            ModelError: An item of one of the jobs cannot be embedded.
        """
        with contextlib.ExitStack() as stack:
            work = [
                (stack.enter_context(collection), own)
                for name in dict.fromkeys(job.collection for job in jobs)
                if (collection := self._opened(name))
                for own in [[job for job in jobs if job.collection == name]]
            ]
            wanted = [(collection, own, self._newer(collection, own)) for collection, own in work]
            self._embed([item for *_, items in wanted for item, _ in items])
            for collection, own, items in wanted:
                self._write(collection, own, items)
                self._deltas.announce(collection.name, self._settled(collection, own))
        self._count(jobs=len(jobs), batches=1)

    def begin(self, configuration: str, generation: int | None = None) -> None:
        """Point the ``next_alias`` at the collection that is to be filled; see ``JobQueue.begin``.

        Raises:
            StoreError: A store or the model cannot be had now.
        """
        self._reconsider()
        model = self.engine.model
        alias = next_alias(configuration)
        there = generations(self._store, configuration, model.slug)
        newest = max(map(generation_of, there), default=0)
        name = self._store.alias(alias)
        if model == WORDS and name is not None and model_slug(name) != WORDS.slug:
            return  # vectors that are there stay, until there is a model again
        if name is None or model_slug(name) != model.slug:
            name = current(self._store, configuration, model.slug)
        if generation is not None and generation > newest:
            name = None
        if name is not None:
            try:
                self._store.open(name).close()
            except StoreCorruptError:  # what it held is in the sources and in the cache
                _log.exception("collection_corrupt", extra={"collection": name})
                self._store.drop(name)
                name = None
        if name is None:
            name = collection_name(configuration, model.slug, max(newest + 1, generation or 0))
            with contextlib.suppress(StoreError):  # another worker made it a moment ago
                self._store.create(name, model.dimension).close()
        if self._store.alias(alias) != name:
            self._store.set_alias(alias, name)
            _log.info("collection_begun", extra={"collection": name})

    def keep_keywords(self, collection: str) -> None:
        """Store a fresh keyword snapshot of a collection, and forget the deltas that are in it."""
        opened = self._opened(collection)
        if opened is None:
            return
        with opened:
            feed = KeywordFeed(opened, self._snapshots, self._deltas, self._claims)
            feed.open()
            feed.advance()
            feed.save()

    def _reconsider(self) -> None:
        """Load the engine anew at its next use if there was no model: there may be one by now."""
        with self._lock:
            if self._engine is not None and self._engine.model == WORDS:
                self._engine = self._cache = None

    def _opened(self, name: str) -> Collection | None:
        """A collection to write to; None when there is none any more, or it is another model's."""
        model = self.engine.model
        if model_slug(name) != model.slug:
            if model == WORDS:
                self._reconsider()
                raise StoreError(f"Nothing can be written to {name} now: there is no model.")
            _log.warning("job_of_another_model", extra={"collection": name})
            self.begin(configuration_of(name))
            return None
        if name not in self._store.collections():
            _log.info("job_of_a_dropped_collection", extra={"collection": name})
            return None
        return self._store.open(name)

    def _newer(self, collection: Collection, jobs: Iterable[Job]) -> list[tuple[Item, int]]:
        """The items to write with their revisions: newer than what is there or was deleted."""
        newest: dict[str, tuple[Item, int]] = {}
        gone = _removed(jobs)
        for job in sorted(jobs, key=lambda job: job.revision):
            for item in job.items:
                if gone.get(item.id, 0) <= job.revision:
                    newest[item.id] = (item, job.revision)
        ids = list(newest)
        known = {state.item: state.revision for state in collection.states(ids)}
        buried = self._tombstones.buried(collection.name, ids)
        return [
            (item, revision)
            for item, revision in newest.values()
            if revision > max(known.get(item.id, 0), buried.get(item.id, 0))
        ]

    def _embed(self, items: Sequence[Item]) -> None:
        """Put the vectors of items into the cache, each text embedded by one worker only."""
        engine = self.engine
        texts = sorted(
            {view.text for item in items for view in item.views()}, key=len, reverse=True
        )
        missing = {vector_key(engine.model, text): text for text in texts}
        cache = self._vectors(engine.model)
        done = 0
        while missing:
            known = cache.get(list(missing))
            missing = {key: text for key, text in missing.items() if key not in known}
            others: dict[bytes, str] = {}
            for start in range(0, len(missing), engine.batch):
                batch = dict(islice(missing.items(), start, start + engine.batch))
                mine = self._claims.take([key.hex() for key in batch], CLAIM)
                texts = [text for key, text in batch.items() if key.hex() in mine]
                try:
                    done += embed_missing(texts, engine, cache, lambda _done, _total: None)
                finally:
                    self._claims.release(mine)
                others |= {key: text for key, text in batch.items() if key.hex() not in mine}
            if others and len(others) == len(missing):
                time.sleep(_LOOK_AGAIN)
            missing = others
        if done:
            _log.info("texts_embedded", extra={"texts": done})
            self._count(texts=done)

    def _write(
        self,
        collection: Collection,
        jobs: Iterable[Job],
        items: Sequence[tuple[Item, int]],
    ) -> None:
        """Write items with their revisions, and bury what jobs remove."""
        model, removed = self.engine.model, _removed(jobs)
        for revision in sorted({revision for _, revision in items}):
            batch = [item for item, own in items if own == revision]
            for _ in write(collection, batch, revision, model, self._vectors(model)):
                pass
        # Before anything is deleted: a write that looks for the tombstone afterwards finds it.
        self._tombstones.bury(collection.name, removed)
        self._count(written=len(items), removed=len(removed))

    def _settled(self, collection: Collection, jobs: Sequence[Job]) -> dict[str, str]:
        """Delete what is buried, and what an older write left of an item that is newer.

        Others may have written or deleted meanwhile, and whoever did a job before may have been
        killed in the middle of it.

        Returns:
            What the collection holds then of all that the jobs were about, as it is announced; also
            what had been done before, since that may not be known.
        """
        jobs = sorted(jobs, key=lambda job: job.revision)
        newest = {item.id: job.revision for job in jobs for item in job.items}
        about = list(newest | _removed(jobs))
        _delete(collection.delete_items, self._tombstones.buried(collection.name, about))
        there = {state.item: state for state in collection.states(about)}
        outdated = {
            item: there[item].revision
            for item, revision in newest.items()
            if item in there and there[item].revision > revision
        }
        _delete(collection.delete_sections, outdated)
        return {item: there[item].metadata_hash if item in there else REMOVED for item in about}

    def _vectors(self, model: Model) -> VectorCache:
        with self._lock:
            if self._cache is None:
                self._cache = self._open_cache(model)
            return self._cache

    def _count(self, **counters: int) -> None:
        """Counters are for people: a job is done without them."""
        with contextlib.suppress(StoreError):
            self._status.count(counters)


def _removed(jobs: Iterable[Job]) -> dict[str, int]:
    """What jobs remove, each at the newest revision."""
    removed: dict[str, int] = {}
    for job in jobs:
        for item in job.removed:
            removed[item] = max(removed.get(item, 0), job.revision)
    return removed


def _delete(delete: Callable[[Sequence[str], int], None], older: Mapping[str, int]) -> None:
    """Delete what is older than these revisions, by item."""
    for revision in sorted(set(older.values())):
        delete([item for item, own in older.items() if own == revision], revision)
