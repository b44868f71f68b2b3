"""Subsets: the search as callers see it who may see some of the sources only.

A subset is an engine of its own. Its keyword index is made without the hidden items, so that no
part of the keyword arm can know them, and each question to the vectors names the visible sources.
An item of an unknown source is hidden.
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
from repertory.search.engine import SearchEngine
from repertory.search.known_sources import KnownSources

MAX_SUBSETS = 16  # that are kept; each has a keyword index, which takes memory
KEEP_S = 60.0  # after the last search in a subset until changes are left to the next one
MAX_CALLERS = 1_000  # sets of groups that are remembered
NOTHING = ("",)  # no source has an empty name


class _OfSource(msgspec.Struct):
    source: str


class VisibleCollection(Searched):
    """A collection of which only some sources can be seen.

    Args:
        collection: The collection.
        index: The visible items; None if there is no keyword index.
        sources: The names of the visible sources.
        is_filtered: Whether the collection may hold points of other sources.
    """

    def __init__(
        self,
        collection: Searched,
        index: KeywordIndex | None,
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
        """As of a collection; hidden items are not requested, so they take as long as none."""
        if self._index is not None:
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

    def _within(self, where: Filter | None) -> Filter:
        """A filter, and that the source is visible."""
        where = where or Filter()
        wanted = tuple(one for one in where.sources if one in self._sources)
        return replace(where, sources=(wanted or NOTHING) if where.sources else self._names)


def _source_of(record: str) -> str | None:
    """The source in a record, JSON; None if it cannot be read."""
    try:
        return msgspec.json.decode(record, type=_OfSource).source
    except msgspec.DecodeError:
        return None


def subset_of(engine: SearchEngine, sources: KnownSources, visible: frozenset[str]) -> SearchEngine:
    """An engine as callers see it who may see some sources.

    Args:
        engine: The engine of all items.
        sources: What is known of all sources.
        visible: The names of those that may be seen.
    """
    index = engine.keywords.only(visible) if engine.keywords is not None else None
    is_whole = index is engine.keywords and visible.issuperset(sources.audiences)
    hides = index is None or not is_whole
    collection = engine.collection
    if collection is not None:
        collection = VisibleCollection(collection, index, visible, is_filtered=hides)
    seen = sources.only(visible)
    return engine.over(
        index,
        collection,
        precedence=seen.names,
        stale=seen.stale,
        notices=seen.every_notice(engine.searched_items),
        hides=hides,
    )


class Subsets:
    """An engine, and its subsets, each made at its first use. Thread-safe.

    Args:
        engine: The engine of all items, which never changes.
        sources: What is known of their sources.
    """

    def __init__(self, engine: SearchEngine, sources: KnownSources) -> None:
        self.engine = engine
        self._sources = sources
        # By the groups of a caller.
        self._visible: LRUCache[frozenset[str], frozenset[str]] = LRUCache(MAX_CALLERS)
        self._asked: LRUCache[frozenset[str], float] = LRUCache(MAX_CALLERS)  # when
        self._subsets: LRUCache[frozenset[str], _Subset] = LRUCache(MAX_SUBSETS)
        self._lock = threading.Lock()

    def visible(self, groups: frozenset[str]) -> frozenset[str]:
        """The names of the sources that callers with some groups may see.

        Raises:
            StoreError: Nothing is known of the sources.
        """
        with self._lock:  # a look changes the order
            found = self._visible.get(groups)
        if found is None:
            found = self._sources.visible(groups)
            with self._lock:
                self._visible[groups] = found
        return found

    def of(self, groups: frozenset[str]) -> SearchEngine:
        """The engine as callers with some groups see it; see ``visible`` for errors."""
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
        """Make the subsets that were searched a moment ago, of the engine before."""
        oldest = time.monotonic() - KEEP_S
        with before._lock:
            asked = sorted(before._asked.items(), key=lambda one: one[1])
        for groups, at in asked[-MAX_SUBSETS:]:
            if at >= oldest:
                with self._lock:
                    self._asked.setdefault(groups, at)
                self._of(groups)


class _Subset:
    """A subset that is made once, by the first thread that asks."""

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
