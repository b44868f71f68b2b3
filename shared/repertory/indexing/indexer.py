"""Sources to index: a run over all stages, and the rebuild that makes a new generation."""

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from repertory.catalogue.item import Item
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.words import WORDS
from repertory.errors import StoreCorruptError
from repertory.index.cache import VectorCache
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.snapshot import SnapshotStore
from repertory.index.vectors import Collection, State, VectorStore
from repertory.indexing import keywords
from repertory.indexing.collections import (
    alias_name,
    collection_name,
    current,
    generation_of,
    generations,
)
from repertory.indexing.diff import Changes, diff
from repertory.indexing.embed import embed_missing
from repertory.indexing.report import Progress, Report, SourceReport, Stage
from repertory.indexing.scan import Scanned, scan_all, unite
from repertory.indexing.write import write
from repertory.sources.catalogue import Catalogue


class Indexer:
    """Makes the index of one catalogue equal to its sources.

    Every step can be interrupted and repeated: what was embedded is in the cache, what was written
    is in the collection, and the next run compares both with the sources again.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        engine: EmbeddingEngine,
        store: VectorStore,
        cache: VectorCache,
        snapshots: SnapshotStore,
        progress: Progress,
    ) -> None:
        self._catalogue = catalogue
        self._engine = engine
        self._store = store
        self._cache = cache
        self._snapshots = snapshots
        self._progress = progress
        self._notices: list[str] = []

    def run(self, before: Mapping[str, float]) -> Report:
        """Bring the current collection up to date.

        Args:
            before: When each source was last read whole, by its name.
        """
        started = time.monotonic()
        scanned = self._scan()
        configuration, model = self._catalogue.hash, self._engine.model
        name = current(self._store, configuration, model.slug)
        with contextlib.ExitStack() as stack:
            collection = stack.enter_context(self._open(name))
            states = {state.item: state for state in collection.states()}
            report = self._apply(scanned, collection, states, before, prune=False)
        self._publish(report.collection)
        return msgspec.structs.replace(
            report, notices=self._notices, seconds=time.monotonic() - started
        )

    def rebuild(self, before: Mapping[str, float]) -> Report:
        """Build a new generation beside the old one, and switch to it when it is whole.

        A source that is suddenly empty is believed; of one that cannot be read, the old
        generation's items are carried over.
        """
        started = time.monotonic()
        scanned = self._scan()
        configuration, model = self._catalogue.hash, self._engine.model
        old = current(self._store, configuration, model.slug)
        numbers = [
            generation_of(name) for name in generations(self._store, configuration, model.slug)
        ]
        name = collection_name(configuration, model.slug, max(numbers, default=0) + 1)
        carried = self._carried(old, scanned) if old else []
        with self._store.create(name, model.dimension) as collection:
            report = self._apply(scanned, collection, {}, before, prune=True, carried=carried)
        self._publish(name)
        return msgspec.structs.replace(
            report, notices=self._notices, seconds=time.monotonic() - started
        )

    def _scan(self) -> list[Scanned]:
        sources = self._catalogue.sources
        return scan_all(sources, lambda: self._progress(Stage.SCAN, 1, len(sources)))

    def _open(self, name: str | None) -> Collection:
        """The current collection; a new one where there is none, or none that can be read."""
        configuration, model = self._catalogue.hash, self._engine.model
        if name is not None:
            try:
                return self._store.open(name)
            except StoreCorruptError as error:
                self._notices.append(f"{error} It was built again from the sources.")
                self._store.drop(name)
                self._snapshots.drop(name)
        generation = generation_of(name) + 1 if name else 1
        return self._store.create(
            collection_name(configuration, model.slug, generation), model.dimension
        )

    def _carried(self, old: str, scanned: Sequence[Scanned]) -> list[Item]:
        """The old generation's items of sources and files that cannot be read now."""
        by_name = {one.source.name: one for one in scanned}
        try:
            with self._store.open(old) as collection:
                items = (msgspec.convert(record, Item) for record in collection.scan())
                return [item for item in items if by_name[item.source].keeps(item.id)]
        except StoreCorruptError as error:
            self._notices.append(f"{error} Nothing could be carried over from it.")
            return []

    def _apply(
        self,
        scanned: Sequence[Scanned],
        collection: Collection,
        states: dict[str, State],
        before: Mapping[str, float],
        *,
        prune: bool,
        carried: Sequence[Item] = (),
    ) -> Report:
        items, problems = unite(scanned, self._catalogue)
        problems = [*self._catalogue.problems, *problems]
        for item in carried:
            items.setdefault(item.id, item)
        by_name = {one.source.name: one for one in scanned}
        changes = diff(
            items, states, lambda state: by_name[state.source].keeps(state.item), prune=prune
        )
        latest = max((state.revision for state in states.values()), default=0)
        revision = max(latest + 1, time.time_ns() // 1_000_000)

        embedded = self._embed(changes.written)
        self._write(collection, changes, revision)
        for item in changes.written:
            states[item.id] = _state(item, revision)
        for item_id in changes.removed:
            del states[item_id]
        if changes.written or changes.removed:
            collection.optimize()
        else:
            revision = latest
        self._index_keywords(collection, states, items, revision)
        return Report(
            collection=collection.name,
            model=self._engine.model.id,
            revision=revision,
            sources=[
                _source_report(one, states, changes, {item.id for item in carried}, before)
                for one in scanned
            ],
            items=len(states),
            points=collection.count(),
            added=len(changes.added),
            changed=len(changes.changed),
            removed=len(changes.removed),
            unchanged=changes.unchanged,
            embedded=embedded,
            problems=problems,
        )

    def _embed(self, items: Iterable[Item]) -> int:
        texts = [view.text for item in items for view in item.views()]
        return embed_missing(
            texts,
            self._engine,
            self._cache,
            lambda done, total: self._progress(Stage.EMBED, done, total),
        )

    def _write(self, collection: Collection, changes: Changes, revision: int) -> None:
        written = changes.written
        for done in write(collection, written, revision, self._engine.model, self._cache):
            self._progress(Stage.WRITE, done, len(written))
        collection.delete_items(changes.removed, before=revision)

    def _index_keywords(
        self,
        collection: Collection,
        states: Mapping[str, State],
        items: Mapping[str, Item],
        revision: int,
    ) -> None:
        stored = keywords.load(self._snapshots, collection.name)
        index = stored[0] if stored else KeywordIndex.empty()
        fresh = keywords.synchronised(index, states, items, collection)
        if stored is None or fresh is not index or stored[1] != revision:
            keywords.save(self._snapshots, collection.name, fresh, revision)

    def _publish(self, name: str) -> None:
        """Point the alias at a whole collection, and clear other generations of it away."""
        configuration, model = self._catalogue.hash, self._engine.model
        if self._store.alias(alias_name(configuration)) != name:
            self._store.set_alias(alias_name(configuration), name)
        old = generations(self._store, configuration, model.slug)
        for other in [*old, *generations(self._store, configuration, WORDS.slug)]:
            if other != name:
                self._store.drop(other)
                self._snapshots.drop(other)


def _state(item: Item, revision: int) -> State:
    return State(
        item=item.id,
        source=item.source,
        content_hash=item.content_hash(),
        metadata_hash=item.metadata_hash(),
        revision=revision,
    )


def _source_report(
    one: Scanned,
    states: Mapping[str, State],
    changes: Changes,
    carried: set[str],
    before: Mapping[str, float],
) -> SourceReport:
    name = one.source.name
    kept = carried.union(changes.kept)
    own = [state.item for state in states.values() if state.source == name]
    stale = sum(item in kept for item in own)
    error = one.error
    if name in changes.emptied:
        error = (
            f"It is suddenly empty; its {stale} items are kept. "
            "If it is meant to be empty, run `repertory rebuild`."
        )
    return SourceReport(
        name=name,
        type=one.source.type,
        location=one.source.location,
        items=len(own),
        stale=stale,
        error=error,
        seen=before.get(name, 0.0) if error else one.at,
    )
