"""One collection of the embedded vector store: a handle on a shard of Qdrant's own engine.

Where a user waits, ids are given to the engine as UUIDs: with each that is text it lets go of
Python's lock, which costs milliseconds where many search at once.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self
from uuid import UUID

import numpy as np
import qdrant_edge as engine
from numpy.typing import NDArray

from repertory.catalogue.item import item_key
from repertory.errors import StoreError
from repertory.index import layout
from repertory.index.edge_shard import FACETS, ROOM, OpenShard, require_room, translated
from repertory.index.vectors import Filter, Match, Point, State

_OWN = "own"  # on an item's own point, and not on its sections'
_IS_OWN = engine.FieldCondition(FACETS, match=engine.MatchValue(_OWN))


class EdgeCollection:
    """One handle on an open shard. Threads may share it; the engine serves one at a time."""

    def __init__(self, shard: OpenShard, let_go: "Callable[[EdgeCollection], None]") -> None:
        """Use a shard that is open; closing calls ``let_go``."""
        self._path = shard.path
        self._open: OpenShard | None = shard
        self._let_go = let_go

    @property
    def name(self) -> str:
        """The collection's name."""
        return self._path.name

    def upsert(self, points: Sequence[Point]) -> None:
        """Write points, each only if there is none of its id, or one of an older revision."""
        for revision, chunk in layout.writes(points):
            older = engine.FieldCondition("revision", range=engine.RangeFloat(lt=revision))
            written = [
                engine.Point(point.id, layout.numbers(point.vector), stored | _facets(point))
                for point, stored in chunk
            ]
            self._update(
                engine.UpdateOperation.upsert_points(written, condition=engine.Filter(must=[older]))
            )

    def delete_items(self, items: Sequence[str], before: int) -> None:
        """Delete all points of these items whose revision is lower than ``before``."""
        self._delete(items, before, sections_only=False)

    def delete_sections(self, items: Sequence[str], before: int) -> None:
        """Delete the sections of these items, not their own points, likewise."""
        self._delete(items, before, sections_only=True)

    def states(self, items: Sequence[str] | None = None) -> Iterator[State]:
        """The states of these items, or of every item, in no order, one for each item."""
        if items is None:
            return map(layout.state, self._scroll(layout.STATE))
        return map(layout.state, self._named([item_key(item) for item in items], layout.STATE))

    def records(self, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The records, by id, of the items of these keys; what is not there is left out."""
        return dict(map(layout.record, self._named(keys, layout.RECORD)))

    def scan(self) -> Iterator[dict[str, Any]]:
        """The record of every item, in no order. Sections are left out."""
        return (layout.record(stored)[1] for stored in self._scroll(layout.RECORD))

    def search(
        self, vector: NDArray[np.float32], limit: int, where: Filter | None = None
    ) -> list[Match]:
        """The points nearest to a vector, best first, filtered inside the search."""
        must: list[engine.ConditionType] = [
            _any(field, values) for field, values in layout.conditions(where)
        ]
        request = engine.QueryRequest(
            limit=limit,
            query=engine.Query.Nearest(layout.numbers(vector)),
            filter=engine.Filter(must=must) if must else None,
            params=engine.SearchParams(hnsw_ef=layout.SEARCH_EF),
            with_payload=False,
        )
        with translated(self._path):
            found = self._shard.engine.query(request)
        return [layout.match(str(point.id), point.score) for point in found]

    def scores(self, vector: NDArray[np.float32], items: Sequence[str]) -> dict[str, float]:
        """The cosine of a vector with each of these items: its own point's, or its lead's."""
        ids: dict[engine.PointId, str] = {
            UUID(point): item for point, item in layout.own_and_leads(items).items()
        }
        request = engine.QueryRequest(
            limit=len(ids),
            query=engine.Query.Nearest(layout.numbers(vector)),
            filter=engine.Filter(must=[engine.HasIdCondition({*ids})]),
            params=engine.SearchParams(exact=True),
            with_payload=False,
        )
        with translated(self._path):
            found = self._shard.engine.query(request)
        # Best first, so that the better of an item's two is kept.
        return {ids[point.id]: point.score for point in reversed(found)}

    def count(self) -> int:
        """The number of points, sections included."""
        with translated(self._path):
            return self._shard.engine.count(engine.CountRequest(exact=True))

    def optimize(self) -> None:
        """Build the search graph and drop what was deleted, where there is enough of either.

        Holds Python's lock until it is done: a minute or two at 100,000 points.
        """
        with translated(self._path):
            # The new segments are written beside the old ones.
            require_room(self._path, ROOM + _size(self._path))
            self._shard.engine.optimize()

    def flush(self) -> None:
        """Make everything written so far safe against power loss."""
        self._shard.flush()

    def close(self) -> None:
        """Flush and let go. Closing twice is allowed."""
        self._open = None
        self._let_go(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _shard(self) -> OpenShard:
        shard = self._open
        if shard is None:
            raise StoreError(f"The collection {self.name} has been closed: open it again.")
        return shard

    def _update(self, operation: engine.UpdateOperation) -> None:
        with translated(self._path):
            require_room(self._path)
            self._shard.engine.update(operation)

    def _delete(self, items: Sequence[str], before: int, *, sections_only: bool) -> None:
        older = engine.FieldCondition("revision", range=engine.RangeFloat(lt=before))
        for start in range(0, len(items), layout.CHUNK):
            named = _any("item", items[start : start + layout.CHUNK])
            old = engine.Filter(must=[named, older], must_not=[_IS_OWN] if sections_only else None)
            self._update(engine.UpdateOperation.delete_points_by_filter(old))

    def _named(self, keys: Sequence[str], fields: Sequence[str]) -> Iterator[dict[str, Any] | None]:
        """These payload fields of the own points of the items of these keys."""
        for ids in layout.pages(keys):
            with translated(self._path):
                found = self._shard.engine.retrieve(
                    [UUID(point) for point in ids], with_payload=list(fields), with_vector=False
                )
            for point in found:
                yield point.payload

    def _scroll(self, fields: Sequence[str]) -> Iterator[dict[str, Any] | None]:
        """These payload fields of every item's own point."""
        offset: engine.PointId | None = None
        while True:
            request = engine.ScrollRequest(
                offset=offset,
                limit=layout.PAGE,
                filter=engine.Filter(must=[_IS_OWN]),
                with_payload=list(fields),
                with_vector=False,
            )
            with translated(self._path):
                page, offset = self._shard.engine.scroll(request)
            for point in page:
                yield point.payload
            if offset is None:
                return


def _facets(point: Point) -> dict[str, Any]:
    facets = [
        f"item:{point.item}",
        f"kind:{point.kind}",
        f"source:{point.source}",
        f"server:{point.server}",
        *(f"tags:{tag}" for tag in point.tags),
    ]
    return {FACETS: facets if point.section is not None else [*facets, _OWN]}


def _any(field: str, values: Sequence[str]) -> engine.FieldCondition:
    """That a point has one of these values in this field."""
    facets = [f"{field}:{value}" for value in values]
    return engine.FieldCondition(FACETS, match=engine.MatchAny(facets))


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*"))
