"""Subsets: the search for callers who may see only some of the sources.

A subset has its own engine. Its keyword index is built without the hidden items, so no part of the
keyword arm knows them, and each vector query is filtered by the visible sources. Items of unknown
sources are hidden.
"""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
from cachetools import LRUCache
from msgspec.structs import replace
from typing_extensions import override

from repertory.index.keywords.index import KeywordIndex
from repertory.index.vectors import Filter, Searched, State, VectorAnswer, VectorQuery
from repertory.live_search.known_sources import KnownSources
from repertory.search.engine import SearchEngine

MAX_SUBSETS = 16  # cached subsets; each has its own keyword index in memory
KEEP_S = 60.0  # a subset is kept up to date for this time after its last search
MAX_CALLERS = 1_000  # cached sets of groups
NOTHING = ("",)  # a filter that matches nothing, because no source has an empty name


class _OfSource(msgspec.Struct):
    source: str


class VisibleCollection(Searched):
    """A collection with only some sources visible.

    Args:
        collection: The collection.
        index: The visible items.
        sources: The names of the visible sources.
        is_filtered: Whether the collection may hold points of other sources.
    """

    def __init__(
        self,
        collection: Searched,
        index: KeywordIndex,
        sources: frozenset[str],
        *,
        is_filtered: bool,
    ) -> None:
        self._collection = collection
        self._index = index
        self._sources = sources
        self._is_filtered = is_filtered
        self._names = tuple(sorted(sources)) or NOTHING

    @property
    @override
    def name(self) -> str:
        return self._collection.name

    @override
    def records(self, keys: Sequence[int]) -> dict[str, dict[str, Any]]:
        """The records of visible items. Hidden items are not read, so timing reveals nothing."""
        keys = [*self._index.rows_of(keys)]
        found = self._collection.records(keys) if keys else {}
        seen = self._sources
        return {one: record for one, record in found.items() if record.get("source") in seen}

    @override
    def states(self, items: Sequence[str] | None = None) -> Iterator[State]:
        return (one for one in self._collection.states(items) if one.source in self._sources)

    @override
    def query(self, queries: Sequence[VectorQuery]) -> list[VectorAnswer]:
        if self._is_filtered:
            queries = [replace(one, where=self._within(one.where)) for one in queries]
        answers = self._collection.query(queries)
        return [replace(one, records=self._visible(one.records)) for one in answers]

    def _visible(self, records: Mapping[str, str]) -> dict[str, str]:
        return {one: text for one, text in records.items() if _source_of(text) in self._sources}

    def _within(self, where: Filter) -> Filter:
        """A filter, restricted to the visible sources."""
        wanted = tuple(one for one in where.sources if one in self._sources)
        return replace(where, sources=(wanted or NOTHING) if where.sources else self._names)


def _source_of(record: str) -> str | None:
    """The source in a JSON record; None if invalid."""
    try:
        return msgspec.json.decode(record, type=_OfSource).source
    except (msgspec.DecodeError, RecursionError):
        return None


def subset_of(engine: SearchEngine, sources: KnownSources, visible: frozenset[str]) -> SearchEngine:
    """The engine for callers who may see only some sources.

    Args:
        engine: The engine of all items.
        sources: The state of all sources.
        visible: The names of the visible sources.
    """
    index = engine.keywords.only(visible)
    hides = index is not engine.keywords or not visible.issuperset(sources.audiences)
    collection = engine.collection
    if collection is not None:
        collection = VisibleCollection(collection, index, visible, is_filtered=hides)
    seen = sources.only(visible)
    return engine.over(
        index,
        collection,
        precedence=seen.names,
        stale=seen.stale,
        notices=seen.every_notice(len(engine.keywords)),
        hides=hides,
    )


class Subsets:
    """An engine and its subsets, each made at its first use. Thread-safe.

    Args:
        engine: The engine of all items, which never changes.
        sources: The state of their sources.
    """

    def __init__(self, engine: SearchEngine, sources: KnownSources) -> None:
        self.engine = engine
        self._sources = sources
        # By the groups of a caller: the visible sources, and the time of the last search.
        self._visible: LRUCache[frozenset[str], frozenset[str]] = LRUCache(MAX_CALLERS)
        self._asked: LRUCache[frozenset[str], float] = LRUCache(MAX_CALLERS)
        self._subsets: LRUCache[frozenset[str], _Subset] = LRUCache(MAX_SUBSETS)  # by sources
        self._lock = threading.Lock()

    def visible(self, groups: frozenset[str]) -> frozenset[str]:
        """The names of the sources that callers with some groups may see.

        Raises:
            StoreError: The sources are not known yet.
        """
        with self._lock:  # a read changes the LRU order
            found = self._visible.get(groups)
        if found is None:
            found = self._sources.visible(groups)
            with self._lock:
                self._visible[groups] = found
        return found

    def of(self, groups: frozenset[str]) -> SearchEngine:
        """The engine for callers with some groups. For errors see ``visible``."""
        engine = self._of(groups)
        with self._lock:
            self._asked[groups] = time.monotonic()
        return engine

    def _of(self, groups: frozenset[str]) -> SearchEngine:
        visible = self.visible(groups)
        with self._lock:
            if (subset := self._subsets.get(visible)) is None:
                subset = _Subset(self.engine, self._sources, visible)
                self._subsets[visible] = subset
        return subset.engine

    def prepare(self, before: "Subsets") -> None:
        """Make the subsets that were recently searched in the previous engine."""
        oldest = time.monotonic() - KEEP_S
        with before._lock:
            asked = sorted(before._asked.items(), key=lambda one: one[1])
        for groups, at in asked[-MAX_SUBSETS:]:
            if at >= oldest:
                with self._lock:
                    self._asked.setdefault(groups, at)
                self._of(groups)


class _Subset:
    """A subset that is made once, by the first thread that needs it."""

    def __init__(
        self, engine: SearchEngine, sources: KnownSources, visible: frozenset[str]
    ) -> None:
        self._args = engine, sources, visible
        self._lock = threading.Lock()

    @property
    def engine(self) -> SearchEngine:
        """The engine."""
        with self._lock:
            return self._made

    @cached_property
    def _made(self) -> SearchEngine:
        return subset_of(*self._args)
