"""One collection of a Qdrant server."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient, models
from typing_extensions import override

from repertory.errors import StoreError
from repertory.index import layout
from repertory.index.qdrant_connection import QdrantServer
from repertory.index.stored_collection import StoredCollection
from repertory.index.vectors import Filter, Match, Point

OPTIMIZE_TIMEOUT_S = 3_600.0
_POLL_INTERVAL_S = 1.0

_OWN_POINT = models.IsEmptyCondition(is_empty=models.PayloadField(key="section"))
# A graph over int8 vectors in memory finds twice the requested points; the float32 vectors on disk
# then put them in order: a million points of 384 numbers take 0.4 GB of memory, not 1.5.
_SEARCH = models.SearchParams(
    hnsw_ef=layout.SEARCH_EF,
    quantization=models.QuantizationSearchParams(rescore=True, oversampling=2.0),
)
_EXACT = models.SearchParams(exact=True, quantization=models.QuantizationSearchParams(ignore=True))


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
    def search(
        self, vector: NDArray[np.float32], limit: int, where: Filter | None = None
    ) -> list[Match]:
        must: list[models.Condition] = [
            _any(field, values) for field, values in layout.conditions(where)
        ]
        found = self._nearest(vector, limit, must, _SEARCH)
        return [layout.match(UUID(str(point.id)), point.score) for point in found]

    @override
    def scores(self, vector: NDArray[np.float32], keys: Sequence[int]) -> dict[int, float]:
        ids = [str(point) for point in layout.own_and_leads(keys)]
        if not ids:
            return {}
        found = self._nearest(vector, len(ids), [models.HasIdCondition(has_id=[*ids])], _EXACT)
        return layout.scores((UUID(str(point.id)), point.score) for point in found)

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
    def optimize(self) -> None:
        """Wait until the server, which optimizes by itself, has done so; an hour at most."""
        deadline = time.monotonic() + OPTIMIZE_TIMEOUT_S
        while time.monotonic() < deadline:
            with self._use() as client:
                status = client.get_collection(self._name).status
            if status is not models.CollectionStatus.YELLOW:
                return
            time.sleep(_POLL_INTERVAL_S)

    @override
    def close(self) -> None:
        self._closed = True

    def _nearest(
        self,
        vector: NDArray[np.float32],
        limit: int,
        must: list[models.Condition],
        params: models.SearchParams,
    ) -> list[models.ScoredPoint]:
        with self._use() as client:
            return client.query_points(
                self._name,
                layout.numbers(vector),
                limit=limit,
                query_filter=models.Filter(must=must) if must else None,
                search_params=params,
                with_payload=False,
                timeout=self._server.query_timeout,
            ).points

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
                client.delete(self._name, models.FilterSelector(filter=old), wait=True)

    @override
    def _retrieve(
        self, keys: Sequence[int], fields: Sequence[str]
    ) -> Iterator[dict[str, Any] | None]:
        for ids in layout.pages(keys):
            with self._use() as client:
                found = client.retrieve(
                    self._name, ids, with_payload=list(fields), timeout=self._server.query_timeout
                )
            for point in found:
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


def _any(field: str, values: Sequence[str]) -> models.FieldCondition:
    """That a point has one of these values in this field."""
    return models.FieldCondition(key=field, match=models.MatchAny(any=list(values)))


def _older(revision: int) -> models.FieldCondition:
    return models.FieldCondition(key="revision", range=models.Range(lt=revision))
