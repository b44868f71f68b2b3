"""One collection of a Qdrant server."""

import contextlib
from collections.abc import Iterator, Sequence
from time import monotonic, sleep
from typing import Any, cast
from uuid import UUID

import msgspec
import numpy as np
from qdrant_client import QdrantClient, models
from typing_extensions import override

from repertory.catalogue.item import point_id
from repertory.errors import StoreError
from repertory.index import layout
from repertory.index.qdrant_connection import QdrantServer
from repertory.index.stored_collection import StoredCollection
from repertory.index.vectors import Point, VectorAnswer, VectorQuery

OPTIMIZE_TIMEOUT_S = 3_600.0
_POLL_INTERVAL_S = 1.0
DIGITS = 8  # of a number of a query's vector: as good as all 17, and half the text

_OWN_POINT = models.IsEmptyCondition(is_empty=models.PayloadField(key="section"))
_SEARCH = {
    "hnsw_ef": layout.SEARCH_EF,
    "quantization": {"rescore": True, "oversampling": layout.OVERSAMPLING_OF_SERVER},
}
# Qdrant links the points of one value only if the value is rare: a search among the points of a
# common one would be stranded without ACORN, which also steps over points that do not match.
_FILTERED_SEARCH = _SEARCH | {"acorn": {"enable": True, "max_selectivity": 1.0}}
_EXACT = {"exact": True, "quantization": {"ignore": True}}


class _Stored(msgspec.Struct):
    item: str
    record: str


class _Found(msgspec.Struct):
    id: UUID
    score: float
    payload: _Stored | None = None


class _Points(msgspec.Struct):
    points: list[_Found]


class _Answers(msgspec.Struct):
    """What a server answers to a batch of searches."""

    result: list[_Points]


class _Record(msgspec.Struct):
    payload: dict[str, Any] | None = None


class _Records(msgspec.Struct):
    """What a server answers to a request for points by their ids."""

    result: list[_Record]


class QdrantCollection(StoredCollection):
    """One collection of a server. Threads may share it."""

    def __init__(self, server: QdrantServer, name: str) -> None:
        self._server = server
        self._name = name
        self._closed = False

    @property
    @override
    def name(self) -> str:
        return self._name

    @override
    def upsert(self, points: Sequence[Point]) -> None:
        for revision, chunk in layout.writes(points):
            written = [
                models.PointStruct(id=point.id, vector=layout.numbers(point.vector), payload=stored)
                for point, stored in chunk
            ]
            with self._use() as client:
                client.upsert(
                    self._name,
                    written,
                    wait=True,
                    update_filter=models.Filter(must=[_older(revision)]),
                )

    @override
    def query(self, queries: Sequence[VectorQuery]) -> list[VectorAnswer]:
        asked = [request for one in queries for request in _requests(one)]
        with self._use():
            answers = self._server.read(
                f"/collections/{self._name}/points/query/batch", {"searches": asked}, _Answers
            ).result
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
        with self._use() as client:
            return client.count(self._name, exact=True).count

    @override
    def count_items(self) -> int:
        own = models.Filter(must=[_OWN_POINT])
        with self._use() as client:
            return client.count(self._name, count_filter=own, exact=True).count

    @override
    def is_ready(self) -> bool:
        """Whether the server has built its indexes, which it does by itself.

        After a restart it begins only at the next write or change of a setting: this makes one.

        Raises:
            StoreError: It failed to.
        """
        with self._use() as client:
            info = client.get_collection(self._name)
            if info.status is models.CollectionStatus.GREY:
                empty = models.OptimizersConfigDiff()
                client.update_collection(self._name, optimizers_config=empty)
        if info.status is models.CollectionStatus.RED:
            raise StoreError(
                f"The Qdrant server cannot optimize {self._name} ({info.optimizer_status}): "
                "see its log."
            )
        return info.status is models.CollectionStatus.GREEN

    @override
    def optimize(self) -> None:
        """Wait until the server has built its indexes, an hour at most."""
        deadline = monotonic() + OPTIMIZE_TIMEOUT_S
        while not self.is_ready() and monotonic() < deadline:
            sleep(_POLL_INTERVAL_S)

    @override
    def close(self) -> None:
        self._closed = True

    @contextlib.contextmanager
    def _use(self) -> Iterator[QdrantClient]:
        if self._closed:
            raise StoreError(f"The collection {self._name} has been closed: open it again.")
        missing = f"There is no collection {self._name} any more: index again."
        with self._server.translated(missing=missing):
            yield self._server.client

    @override
    def _delete(self, items: Sequence[str], before: int, *, sections_only: bool) -> None:
        for start in range(0, len(items), layout.CHUNK):
            named = _any("item", items[start : start + layout.CHUNK])
            old = models.Filter(
                must=[named, _older(before)], must_not=[_OWN_POINT] if sections_only else None
            )
            with self._use() as client:
                # Most items never had a section, and a deletion of nothing costs as much as a
                # write: the server records it, and does one at a time.
                if sections_only and not client.count(self._name, old, exact=True).count:
                    continue
                client.delete(self._name, models.FilterSelector(filter=old), wait=True)

    @override
    def _retrieve(
        self, keys: Sequence[int], fields: Sequence[str]
    ) -> Iterator[dict[str, Any] | None]:
        for ids in layout.pages(keys):
            body = {"ids": ids, "with_payload": fields}
            with self._use():
                found = self._server.read(f"/collections/{self._name}/points", body, _Records)
            for point in found.result:
                yield point.payload

    @override
    def _page(self, start: UUID, limit: int, since: int) -> Iterator[dict[str, Any] | None]:
        must: list[models.Condition] = [_OWN_POINT]
        if since:
            recent = models.Range(gte=since)
            must.append(models.FieldCondition(key="revision", range=recent))
        with self._use() as client:
            page, _ = client.scroll(
                self._name,
                scroll_filter=models.Filter(must=must),
                limit=limit,
                offset=str(start),
                with_payload=list(layout.STATE),
            )
        return (point.payload for point in page)

    @override
    def _scroll(self, fields: Sequence[str]) -> Iterator[dict[str, Any] | None]:
        offset: Any = None  # opaque: the client returns the next page's
        while True:
            with self._use() as client:
                page, offset = client.scroll(
                    self._name,
                    scroll_filter=models.Filter(must=[_OWN_POINT]),
                    limit=layout.PAGE,
                    offset=offset,
                    with_payload=list(fields),
                )
            for point in page:
                yield point.payload
            if offset is None:
                return

    @override
    def _scroll_whole(self) -> Iterator[tuple[UUID, Sequence[float], dict[str, Any] | None]]:
        with self._use() as client:
            for point in whole_points(client, self._name):
                yield UUID(str(point.id)), cast("list[float]", point.vector), point.payload


def whole_points(client: QdrantClient, name: str) -> Iterator[models.Record]:
    """Every point of a collection with its vector, in the order of the ids."""
    offset: Any = None  # opaque: the client returns the next page's
    while True:
        page, offset = client.scroll(
            name, limit=layout.CHUNK, offset=offset, with_payload=True, with_vectors=True
        )
        yield from page
        if offset is None:
            return


def _requests(query: VectorQuery) -> Iterator[dict[str, Any]]:
    """The search for matches, and those for the cosines and the records of items, as JSON."""
    numbers = layout.numbers(query.vector.astype(np.float64).round(DIGITS))
    vector = msgspec.Raw(msgspec.json.encode(numbers))  # once, and sent twice
    must = [
        {"key": field, "match": {"any": values}} for field, values in layout.conditions(query.where)
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
        records={one.payload.item: one.payload.record for one in likely if one.payload},
    )


def _any(field: str, values: Sequence[str]) -> models.FieldCondition:
    """That a point has one of these values in this field."""
    return models.FieldCondition(key=field, match=models.MatchAny(any=list(values)))


def _older(revision: int) -> models.FieldCondition:
    return models.FieldCondition(key="revision", range=models.Range(lt=revision))
