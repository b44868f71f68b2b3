"""One collection of a Qdrant server."""

from collections.abc import Iterable, Iterator, Sequence
from time import monotonic, sleep
from typing import Any
from uuid import UUID

import msgspec
import numpy as np
from typing_extensions import override

from repertory.catalogue.item import point_id
from repertory.errors import StoreError
from repertory.index import layout
from repertory.index.qdrant_connection import QdrantServer, Result
from repertory.index.qdrant_remote import RemoteCollection
from repertory.index.stored_collection import StoredCollection
from repertory.index.vectors import Point, VectorAnswer, VectorQuery

OPTIMIZE_TIMEOUT_S = 3_600.0
_POLL_INTERVAL_S = 1.0
DIGITS = 8  # of each number of a query's vector; as good as all 17, with half the text

_OWN_POINT = {"is_empty": {"key": "section"}}
_SEARCH = {
    "hnsw_ef": layout.SEARCH_EF,
    "quantization": {"rescore": True, "oversampling": layout.OVERSAMPLING_OF_SERVER},
}
# Qdrant links the points with the same value only if the value is rare. A search filtered by a
# common value needs ACORN, which also traverses points that do not match.
_FILTERED_SEARCH = _SEARCH | {"acorn": {"enable": True, "max_selectivity": 1.0}}
_EXACT = {"exact": True, "quantization": {"ignore": True}}


class _Stored(msgspec.Struct):
    item: Any = None
    record: Any = None


class _Found(msgspec.Struct):
    id: UUID
    score: float
    payload: _Stored | None = None


class _Points(msgspec.Struct):
    points: list[_Found]


class _Payload(msgspec.Struct):
    payload: dict[str, Any] | None = None


class _Info(msgspec.Struct):
    """The server's information about a collection."""

    status: str
    optimizer_status: object


class QdrantCollection(StoredCollection):
    """One collection of a server. Threads may share it."""

    def __init__(self, server: QdrantServer, name: str) -> None:
        self._name = name
        missing = f"There is no collection {name} any more: index again."
        self._open: RemoteCollection | None = RemoteCollection(server, name, missing)

    @property
    @override
    def name(self) -> str:
        return self._name

    @override
    def upsert(self, points: Sequence[Point]) -> None:
        for revision, chunk in layout.writes(points):
            written = [
                {"id": point.id, "vector": layout.numbers(point.vector), "payload": stored}
                for point, stored in chunk
            ]
            self._remote.write(written, {"must_not": [_since(revision)]})

    @override
    def query(self, queries: Sequence[VectorQuery]) -> list[VectorAnswer]:
        asked = [request for one in queries for request in _requests(one)]
        answers = self._remote.read("/query/batch", {"searches": asked}, Result[list[_Points]])
        found = iter(answer.points for answer in answers)
        return [
            _answer(
                one,
                next(found),
                next(found) if one.keys else [],
                next(found) if one.likely else [],
            )
            for one in queries
        ]

    @override
    def count(self) -> int:
        return self._remote.count()

    @override
    def count_items(self) -> int:
        return self._remote.count({"must": [_OWN_POINT]})

    @override
    def is_ready(self) -> bool:
        """Whether the server has built its indexes, which it does by itself.

        After a restart it starts only at the next write or change of a setting, so this sends one.

        Raises:
            StoreError: The server failed to build them.
        """
        info = self._remote.about(Result[_Info])
        if info.status == "grey":
            self._remote.touch()
        if info.status == "red":
            raise StoreError(  # the status stays red until a restart
                f"The Qdrant server cannot optimize {self._name} ({info.optimizer_status}): "
                "fix the cause, and restart the server."
            )
        return info.status == "green"

    @override
    def optimize(self) -> None:
        """Wait until the server has built its indexes, for at most an hour."""
        deadline = monotonic() + OPTIMIZE_TIMEOUT_S
        while not self.is_ready() and monotonic() < deadline:
            sleep(_POLL_INTERVAL_S)

    @override
    def close(self) -> None:
        self._open = None

    @property
    def _remote(self) -> RemoteCollection:
        if self._open is None:
            raise StoreError(f"The collection {self._name} has been closed: open it again.")
        return self._open

    @override
    def _delete(self, items: Sequence[str], before: int, *, sections_only: bool) -> None:
        for start in range(0, len(items), layout.CHUNK):
            named = {"key": "item", "match": {"any": items[start : start + layout.CHUNK]}}
            kept: list[object] = [_since(before)]
            old: dict[str, object] = {"must": [named], "must_not": kept}
            if sections_only:
                kept.append(_OWN_POINT)
                # Count first, because most items never had a section. An empty deletion costs as
                # much as a write, since the server logs it and does one at a time.
                if not self._remote.count(old):
                    continue
            self._remote.delete(old)

    @override
    def _retrieve(
        self, keys: Sequence[int], fields: Sequence[str]
    ) -> Iterator[dict[str, Any] | None]:
        for ids in layout.pages(keys):
            body = {"ids": ids, "with_payload": fields}
            for point in self._remote.read("", body, Result[list[_Payload]]):
                yield point.payload

    @override
    def _page(
        self, start: UUID, limit: int, since: int
    ) -> Iterator[tuple[UUID, dict[str, Any] | None]]:
        recent = [_since(since)] if since else []
        page = self._remote.page(
            filter={"must": [_OWN_POINT, *recent]},
            limit=limit,
            offset=start,
            with_payload=layout.STATE,
        )
        return ((UUID(point.id), point.payload) for point in page)

    @override
    def _scroll(self, fields: Sequence[str]) -> Iterator[dict[str, Any] | None]:
        own = {"must": [_OWN_POINT]}
        for point in self._remote.scroll(filter=own, limit=layout.PAGE, with_payload=fields):
            yield point.payload

    @override
    def _scroll_whole(self) -> Iterator[tuple[UUID, Sequence[float], dict[str, Any] | None]]:
        for point in self._remote.scroll(limit=layout.CHUNK, with_payload=True, with_vector=True):
            yield UUID(point.id), point.vector, point.payload


def _requests(query: VectorQuery) -> Iterator[dict[str, Any]]:
    """The searches for matches, and if needed for cosines and records of items, as JSON."""
    numbers = layout.numbers(query.vector.astype(np.float64).round(DIGITS))
    vector = msgspec.Raw(msgspec.json.encode(numbers))  # encoded once for all searches
    must = [
        {"key": field, "match": {"any": values}} for field, values in query.where.conditions.items()
    ]
    nearest = {"query": vector, "limit": query.limit, "params": _SEARCH}
    yield nearest | ({"filter": {"must": must}, "params": _FILTERED_SEARCH} if must else {})
    exact = {"query": vector, "params": _EXACT}
    if ids := layout.compared(query):
        yield exact | {"limit": len(ids), "filter": {"must": [{"has_id": ids}]}}
    if own := [point_id(key) for key in query.likely]:
        named = {"must": [{"has_id": own}]}
        yield exact | {"limit": len(own), "filter": named, "with_payload": layout.RECORD}


def _answer(
    query: VectorQuery,
    nearest: Sequence[_Found],
    exact: Sequence[_Found],
    likely: Sequence[_Found],
) -> VectorAnswer:
    matches = [layout.match(one.id, one.score) for one in nearest]
    wanted = {*query.keys}.difference(one.key for one in matches)
    found = layout.scores((one.id, one.score) for one in exact)
    return VectorAnswer(
        matches=matches,
        scores={key: score for key, score in found.items() if key in wanted},
        records=dict(_records(likely)),
    )


def _records(found: Iterable[_Found]) -> Iterator[tuple[str, str]]:
    """The records as JSON, by item. Damaged ones are left out; a later read reports them."""
    for point in found:
        match point.payload:
            case _Stored(item=str(item), record=str(record)):
                yield item, record


def _since(revision: int) -> dict[str, object]:
    """The condition that a point has at least this revision; a damaged point never has."""
    return {"key": "revision", "range": {"gte": revision}}
