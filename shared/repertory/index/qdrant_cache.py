"""The vector cache on a Qdrant server, which a team's workers share."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID, uuid4

import numpy as np
from typing_extensions import override

from repertory.embedding.models import Model
from repertory.errors import StoreError
from repertory.index import layout
from repertory.index.cache import MAX_VECTORS, Vector, VectorCache
from repertory.index.qdrant_connection import QdrantServer, Replication, Result
from repertory.index.qdrant_remote import RemoteCollection, StoredPoint
from repertory.values import NAMESPACE

INTERVAL = 10_000  # vectors that a process writes between two counts of all


class QdrantVectorCache(VectorCache):
    """The vectors of one model, in a collection of their own that nothing searches.

    A point's id is the first half of its key. The whole key is its payload, so that a point of
    another key is not taken for this one. Of more than ``MAX_VECTORS`` any are removed.
    """

    def __init__(
        self,
        urls: str,
        api_key: str | None,
        model: Model,
        replication: Replication | None = None,
        *,
        namespace: str = NAMESPACE,
    ) -> None:
        """Use a server; nothing is sent to it yet. The collection is made on first use.

        Args:
            urls: One address, or several of one cluster, separated by commas.
            api_key: Its key.
            model: Its vectors are stored.
            replication: How the collection is spread over a cluster.
            namespace: The prefix of the collection's name.

        Raises:
            StoreError: A URL is invalid.
        """
        self._server = QdrantServer(urls, api_key, replication)
        # No index has such a name: an index has a hash in the place of "vectors".
        self._name = layout.checked_name(f"{namespace}_vectors_{model.slug}")
        missing = f"The vector cache {self._name} was deleted: try again, which creates it."
        self._remote = RemoteCollection(self._server, self._name, missing)
        self._dimension = model.dimension
        self._made = False
        self._closed = False
        self._written = INTERVAL  # since all were counted

    @override
    def get(self, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        wanted = {_point_id(key): key for key in keys}
        ids = list(wanted)
        found = {}
        for start in range(0, len(ids), layout.CHUNK):
            chunk = ids[start : start + layout.CHUNK]
            body = {"ids": chunk, "with_payload": True, "with_vector": True}
            with self._use() as stored:
                points = stored.read("", body, Result[list[StoredPoint]])
            for point in points:
                key, vector = wanted[point.id], np.asarray(point.vector, np.float32)
                if point.payload == _payload(key) and vector.shape == (self._dimension,):
                    found[key] = vector
        return found

    @override
    def put(self, vectors: Mapping[bytes, Vector]) -> None:
        points = [
            {"id": _point_id(key), "vector": layout.numbers(vector), "payload": _payload(key)}
            for key, vector in vectors.items()
        ]
        size = layout.points_of(self._dimension)
        for start in range(0, len(points), size):
            with self._use() as stored:
                stored.write(points[start : start + size])
        self._written += len(points)
        if points and self._written >= INTERVAL:
            self._written = 0
            self._forget()

    def stored(self) -> Iterator[tuple[bytes, Vector]]:
        """Every vector, with its key."""
        with self._use() as stored:
            for point in stored.scroll(limit=layout.CHUNK, with_payload=True, with_vector=True):
                key = (point.payload or {}).get("key")
                if isinstance(key, str):
                    yield bytes.fromhex(key), np.asarray(point.vector, np.float32)

    @override
    def count(self) -> int:
        with self._use() as stored:
            return stored.count()

    @override
    def close(self) -> None:
        self._closed = True
        self._server.close()

    def _forget(self) -> None:
        """Remove some vectors if there are too many: their ids are random numbers."""
        surplus = min(self.count() - MAX_VECTORS, 2 * INTERVAL)  # the next time goes on
        while surplus > 0:
            asked = {"limit": min(surplus, layout.CHUNK), "with_payload": False}
            with self._use() as stored:
                found = stored.page(offset=str(uuid4()), **asked) or stored.page(**asked)
                if not found:
                    return
                stored.delete({"must": [{"has_id": [point.id for point in found]}]})
            surplus -= len(found)

    @contextlib.contextmanager
    def _use(self) -> Iterator[RemoteCollection]:
        if self._closed:
            raise StoreError(f"The vector cache {self._name} has been closed.")
        if not self._made:
            self._make()
        try:
            yield self._remote
        except StoreError:
            self._made = False
            raise

    def _make(self) -> None:
        """Make the collection, unless it exists."""
        # Nothing is searched, so there is no graph; cosine would scale what is stored.
        vectors = {"size": self._dimension, "distance": "Dot", "on_disk": True}
        try:
            self._server.create(self._name, {"vectors": vectors, "hnsw_config": {"m": 0}})
        except StoreError:
            if not self._server.exists(self._name):
                raise
        self._made = True


def _point_id(key: bytes) -> str:
    return str(UUID(bytes=key[:16]))


def _payload(key: bytes) -> dict[str, str]:
    return {"key": key.hex()}
