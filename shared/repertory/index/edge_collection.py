"""One collection of the embedded vector store: a handle on a shard of Qdrant's engine.

Ids are passed to the engine as UUIDs where a user waits. For each textual id it would release the
GIL, which costs milliseconds during concurrent searches.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import starmap
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import numpy as np
import qdrant_edge as engine
from typing_extensions import override

from repertory.errors import StoreError
from repertory.index import edge_graph, layout
from repertory.index.edge_files import ROOM, graphs, require_room
from repertory.index.edge_shard import DROPPED_FROM, FACETS, WRITTEN_FROM, OpenShard
from repertory.index.stored_collection import StoredCollection
from repertory.index.vectors import Point, VectorAnswer, VectorQuery
from repertory.system.files import narrow

_OWN = "own"  # the facet of an item's own point, which its sections do not have
_IS_OWN = engine.FieldCondition(FACETS, match=engine.MatchValue(_OWN))
_EXACT = engine.SearchParams(exact=True, quantization=engine.QuantizationSearchParams(ignore=True))
_RESCORED = engine.QuantizationSearchParams(rescore=True, oversampling=layout.OVERSAMPLING)


class EdgeCollection(StoredCollection):
    """A handle on an open shard. Threads may share it; the engine serves one at a time."""

    def __init__(self, shard: OpenShard, on_close: "Callable[[EdgeCollection], None]") -> None:
        """Use an open shard; closing calls ``on_close``."""
        self._path = shard.path
        self._open: OpenShard | None = shard
        self._on_close = on_close

    @property
    @override
    def name(self) -> str:
        return self._path.name

    @override
    def upsert(self, points: Sequence[Point]) -> None:
        for revision, chunk in layout.writes(points):
            is_older = engine.Filter(must_not=[_since(revision)])
            written = [
                engine.Point(point.id, layout.numbers(point.vector), stored | _facets(point))
                for point, stored in chunk
            ]
            operation = engine.UpdateOperation.upsert_points(written, condition=is_older)
            self._shard.update(operation, len(written))

    @override
    def query(self, queries: Sequence[VectorQuery]) -> list[VectorAnswer]:
        return [self._answer(one) for one in queries]

    @override
    def count(self) -> int:
        with self._shard.using() as shard:
            return shard.count(engine.CountRequest(exact=True))

    @override
    def count_items(self) -> int:
        own = engine.Filter(must=[_IS_OWN])
        with self._shard.using() as shard:
            return shard.count(engine.CountRequest(exact=True, filter=own))

    @override
    def is_ready(self) -> bool:
        return True  # only ``optimize`` and ``build_graph`` build anything

    @override
    def optimize(self) -> None:
        """Build the search graph and drop deleted points, if there are enough points."""
        self.build_graph(threading.Event())
        with self._shard.using() as shard:
            require_room(self._path, ROOM + _size(self._path))
            self._shard.is_flushed = False
            shard.optimize()  # drops points; it holds the GIL, but is fast
            narrow(self._path)

    @override
    def build_graph(self, stopping: threading.Event) -> bool:
        without = self._kilobytes_without_graph()
        written = self._shard.written
        are_many = written >= WRITTEN_FROM and written >= self.count()
        is_sparse = self._shard.sparse >= DROPPED_FROM or are_many
        if without < layout.GRAPH_FROM and not is_sparse:
            return False
        with self._shard.using():  # so that no write removes a file while it is measured
            # Room for a copy, and for its new segments with 8-bit vectors beside the old ones.
            require_room(self._path, ROOM + 9 * _size(self._path) // 4)
        return self._shard.rebuild(lambda copy: edge_graph.build(copy, stopping))

    @override
    def close(self) -> None:
        self._open = None
        self._on_close(self)

    @property
    def _shard(self) -> OpenShard:
        shard = self._open
        if shard is None:
            raise StoreError(f"The collection {self.name} has been closed: open it again.")
        return shard

    def _kilobytes_without_graph(self) -> int:
        first = engine.ScrollRequest(limit=1, with_vector=True)
        self._shard.flush()  # so that ``graphs`` reads current files
        with self._shard.using() as shard:
            info, gone = shard.info(), sum(gone for _, gone in graphs(self._path))
            [point], _ = shard.scroll(first) if info.points_count else ([None], None)
        if point is None:
            return 0
        size = np.float32().nbytes * len(cast("list[float]", point.vector))
        return (info.points_count + gone - info.indexed_vectors_count) * size // 1024

    def _answer(self, query: VectorQuery) -> VectorAnswer:
        must: list[engine.ConditionType] = [
            _any(field, values) for field, values in query.where.conditions.items()
        ]
        nearest = engine.Query.Nearest(layout.numbers(query.vector))
        params = _EXACT if self._shard.sparse else _params(is_filtered=bool(must))
        found = self._found(nearest, query.limit, must, params)
        matches = [*starmap(layout.match, found)]
        scores = {}
        known = {one.key for one in matches}
        if ids := {one for one in layout.compared(query) if layout.key_of(one) not in known}:
            named = engine.HasIdCondition(cast("set[engine.PointId]", ids))
            scores = layout.scores(self._found(nearest, len(ids), [named], _EXACT))
        return VectorAnswer(matches=matches, scores=scores)

    def _found(
        self,
        nearest: engine.Query,
        limit: int,
        must: "list[engine.ConditionType]",  # the name exists only in the stubs
        params: engine.SearchParams,
    ) -> list[tuple[UUID, float]]:
        """The ids of the points that a search finds, with their scores, best first."""
        request = engine.QueryRequest(
            limit=limit,
            query=nearest,
            filter=engine.Filter(must=must) if must else None,
            params=params,
            with_payload=False,
        )
        with self._shard.using() as shard:
            found = shard.query(request)
        return cast("list[tuple[UUID, float]]", [(point.id, point.score) for point in found])

    @override
    def _delete(self, items: Sequence[str], before: int, *, sections_only: bool) -> None:
        kept = [_since(before), _IS_OWN] if sections_only else [_since(before)]
        for start in range(0, len(items), layout.CHUNK):
            named = _any("item", items[start : start + layout.CHUNK])
            old = engine.Filter(must=[named], must_not=[*kept])
            self._shard.update(engine.UpdateOperation.delete_points_by_filter(old))

    @override
    def _retrieve(
        self, keys: Sequence[int], fields: Sequence[str]
    ) -> Iterator[dict[str, Any] | None]:
        for ids in layout.pages(keys):
            with self._shard.using() as shard:
                found = shard.retrieve([*ids], with_payload=list(fields), with_vector=False)
            for point in found:
                yield point.payload

    @override
    def _page(
        self, start: UUID, limit: int, since: int
    ) -> Iterator[tuple[UUID, dict[str, Any] | None]]:
        must: list[engine.ConditionType] = [_IS_OWN]
        if since:  # there is no index of revisions, so this reads every payload
            must.append(_since(since))
        request = engine.ScrollRequest(
            offset=start,
            limit=limit,
            filter=engine.Filter(must=must),
            with_payload=list(layout.STATE),
            with_vector=False,
        )
        with self._shard.using() as shard:
            page, _ = shard.scroll(request)
        return ((_uuid(point.id), point.payload) for point in page)

    @override
    def _scroll(self, fields: Sequence[str]) -> Iterator[dict[str, Any] | None]:
        own, named = engine.Filter(must=[_IS_OWN]), list(fields)
        for point in self._all(
            limit=layout.PAGE, filter=own, with_payload=named, with_vector=False
        ):
            yield point.payload

    @override
    def _scroll_whole(self) -> Iterator[tuple[UUID, Sequence[float], dict[str, Any] | None]]:
        for point in self._all(limit=layout.CHUNK, with_payload=True, with_vector=True):
            yield _uuid(point.id), cast("list[float]", point.vector), point.payload

    def _all(self, **asked: Any) -> Iterator[engine.Record]:  # noqa: ANN401 - the engine's types
        """All points in the order of their ids, read page by page; see ``ScrollRequest``."""
        offset: engine.PointId | None = None
        while True:
            request = engine.ScrollRequest(offset=offset, **asked)
            with self._shard.using() as shard:
                page, offset = shard.scroll(request)
            yield from page
            if offset is None:
                return


def _uuid(number: "engine.PointId") -> UUID:
    return number if isinstance(number, UUID) else UUID(str(number))


def _params(*, is_filtered: bool) -> engine.SearchParams:
    acorn = engine.AcornSearchParams(enable=True, max_selectivity=1.0) if is_filtered else None
    return engine.SearchParams(hnsw_ef=layout.SEARCH_EF, acorn=acorn, quantization=_RESCORED)


def _facets(point: Point) -> dict[str, Any]:
    facets = [
        f"item:{point.item}",
        f"kind:{point.kind}",
        f"source:{point.source}",
        f"server:{point.server}",
        *(f"tags:{tag}" for tag in point.tags),
    ]
    return {FACETS: facets if point.section is not None else [*facets, _OWN]}


def _since(revision: int) -> engine.FieldCondition:
    """The condition that a point has at least this revision; a damaged point never has."""
    return engine.FieldCondition("revision", range=engine.RangeFloat(gte=revision))


def _any(field: str, values: Sequence[str]) -> engine.FieldCondition:
    """The condition that a point has one of these values in a field."""
    facets = [f"{field}:{value}" for value in values]
    return engine.FieldCondition(FACETS, match=engine.MatchAny(facets))


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*"))
