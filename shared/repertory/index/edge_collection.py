"""One collection of the embedded vector store: an open shard of Qdrant's own engine.

What the engine does that callers must not meet: it holds Python's lock while it works, so writes
are small; on a full disk it dies of a bus error, so room is asked for before it opens or writes; it
panics on some broken files.
"""

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import qdrant_edge as engine
from numpy.typing import NDArray

from repertory.catalogue.item import item_key, point_id
from repertory.errors import RepertoryError, StoreCorruptError, StoreError
from repertory.index import layout
from repertory.index.lock import StoreLock
from repertory.index.vectors import Filter, Match, Point, State

# Bytes that must be free on the disk: the engine grows its files by 32 MB at a time.
ROOM = 128 * 2**20

# All that points are filtered by is in one field, as ``kind:tool`` or ``tags:git``: each index adds
# 7 ms to opening a collection, which every search from a shell waits for.
_FACETS = "facets"
_OWN = "own"  # on an item's own point, and not on its sections'
_IS_OWN = engine.FieldCondition(_FACETS, match=engine.MatchValue(_OWN))

_OS_ERROR = re.compile(r"\(os error (\d+)\)")
_ENVIRONMENT = {  # what is wrong with the machine, and not with the store
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
}


class EdgeCollection:
    """One shard, open in this process. Threads may share it; the engine serves one at a time."""

    def __init__(self, path: Path, lock: StoreLock) -> None:
        """Open the shard at a path whose lock is held; closing lets go of it."""
        self._path = path
        self._lock = lock
        with translated(path):
            require_room(path)
            self._engine: engine.EdgeShard | None = engine.EdgeShard.load(str(path))

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

    def states(self) -> Iterator[State]:
        """The state of every indexed item, in no order, one for each item."""
        return map(layout.state, self._scroll(layout.STATE))

    def records(self, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The records, by id, of the items of these keys; what is not there is left out."""
        with translated(self._path):
            found = self._shard.retrieve(
                [point_id(key) for key in keys],
                with_payload=list(layout.RECORD),
                with_vector=False,
            )
        return dict(layout.record(point.payload) for point in found)

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
            found = self._shard.query(request)
        return [layout.match(str(point.id), point.score) for point in found]

    def scores(self, vector: NDArray[np.float32], items: Sequence[str]) -> dict[str, float]:
        """The cosine of a vector and the own points of these items (not their sections)."""
        ids: dict[engine.PointId, str] = {point_id(item_key(item)): item for item in items}
        request = engine.QueryRequest(
            limit=len(ids),
            query=engine.Query.Nearest(layout.numbers(vector)),
            filter=engine.Filter(must=[engine.HasIdCondition(set(ids))]),
            params=engine.SearchParams(exact=True),
            with_payload=False,
        )
        with translated(self._path):
            found = self._shard.query(request)
        return {ids[str(point.id)]: point.score for point in found}

    def count(self) -> int:
        """The number of points, sections included."""
        with translated(self._path):
            return self._shard.count(engine.CountRequest(exact=True))

    def optimize(self) -> None:
        """Build the search graph and drop what was deleted, where there is enough of either.

        Holds Python's lock until it is done: a minute or two at 100,000 points.
        """
        with translated(self._path):
            # The new segments are written beside the old ones.
            require_room(self._path, ROOM + _size(self._path))
            self._shard.optimize()

    def flush(self) -> None:
        """Make everything written so far safe against power loss."""
        with translated(self._path):
            self._shard.flush()

    def close(self) -> None:
        """Flush and let go. Closing twice is allowed."""
        shard, self._engine = self._engine, None
        try:
            if shard:
                with translated(self._path):
                    shard.close()
        finally:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def _shard(self) -> engine.EdgeShard:
        if self._engine is None:
            raise StoreError(f"The collection {self.name} has been closed: open it again.")
        return self._engine

    def _update(self, operation: engine.UpdateOperation) -> None:
        with translated(self._path):
            require_room(self._path)
            self._shard.update(operation)

    def _delete(self, items: Sequence[str], before: int, *, sections_only: bool) -> None:
        older = engine.FieldCondition("revision", range=engine.RangeFloat(lt=before))
        for start in range(0, len(items), layout.CHUNK):
            named = _any("item", items[start : start + layout.CHUNK])
            old = engine.Filter(must=[named, older], must_not=[_IS_OWN] if sections_only else None)
            self._update(engine.UpdateOperation.delete_points_by_filter(old))

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
                page, offset = self._shard.scroll(request)
            for point in page:
                yield point.payload
            if offset is None:
                return


def make_shard(path: Path, dimension: int) -> None:
    """Make an empty shard in an empty directory."""
    shard = engine.EdgeShard.create(
        str(path),
        engine.EdgeConfig(
            vectors=engine.EdgeVectorParams(size=dimension, distance=engine.Distance.Cosine),
            hnsw_config=engine.HnswIndexConfig(
                m=layout.GRAPH_M,
                ef_construct=layout.GRAPH_EF_CONSTRUCT,
                full_scan_threshold=layout.GRAPH_FROM,
            ),
            optimizers=engine.EdgeOptimizersConfig(indexing_threshold=layout.GRAPH_FROM),
            wal_enabled=True,
        ),
    )
    shard.update(
        engine.UpdateOperation.create_field_index(_FACETS, engine.PayloadSchemaType.Keyword)
    )
    shard.close()


def _facets(point: Point) -> dict[str, Any]:
    facets = [
        f"item:{point.item}",
        f"kind:{point.kind}",
        f"source:{point.source}",
        f"server:{point.server}",
        *(f"tags:{tag}" for tag in point.tags),
    ]
    return {_FACETS: facets if point.section is not None else [*facets, _OWN]}


def _any(field: str, values: Sequence[str]) -> engine.FieldCondition:
    """That a point has one of these values in this field."""
    facets = [f"{field}:{value}" for value in values]
    return engine.FieldCondition(_FACETS, match=engine.MatchAny(facets))


def require_room(directory: Path, room: int = ROOM) -> None:
    """Refuse to write on a disk that is all but full."""
    if shutil.disk_usage(directory).free < room:
        raise StoreError(
            f"The disk of {directory} has less than {room >> 20} MB free: "
            "make room, or choose another data directory."
        )


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*"))


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn what the engine raises into our own errors.

    The engine raises plain ``Exception`` with a text, and its panics come as a class that derives
    from ``BaseException`` and cannot be imported: hence the wide net, and what is let through.
    """
    try:
        yield
    except RepertoryError:
        raise
    except OSError as exc:
        raise StoreError(f"{path} cannot be used: {exc.strerror}.") from exc
    except BaseException as exc:
        if not (type(exc) is Exception or type(exc).__name__ == "PanicException"):
            raise
        raise _ours(exc, path) from exc


def _ours(exc: BaseException, path: Path) -> StoreError:
    text = str(exc)
    if "Vector dimension error" in text:
        return StoreError(f"{path} holds vectors of another length ({text}): rebuild the index.")
    known = [int(number) for number in _OS_ERROR.findall(text)]
    if known and known[-1] in _ENVIRONMENT:
        return StoreError(f"{path} cannot be used: {os.strerror(known[-1])}.")
    return StoreCorruptError(f"{path} cannot be read ({text[:300]}): rebuild the index.")
