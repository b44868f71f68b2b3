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

INTERVAL = 10_000  # vectors that a process writes before it counts the stored ones again


class QdrantVectorCache(VectorCache):
    """The vectors of one model, in a separate collection that is never searched.

    A point's id is the first half of its key. Its payload has the whole key, to detect collisions.
    If there are more than ``MAX_VECTORS``, random ones are removed.
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
        """Use a server; no request is sent yet. The collection is created at the first use.

        Args:
            urls: One address, or several of one cluster, separated by commas.
            api_key: The server's API key.
            model: The model whose vectors are stored.
            replication: How the collection is distributed over a cluster.
            namespace: The prefix of the collection's name.

        Raises:
            StoreError: A URL is invalid.
        """
        self._server = QdrantServer(urls, api_key, replication)
        # No index has such a name, because it has a hash in place of "vectors".
        self._name = layout.checked_name(f"{namespace}_vectors_{model.slug}")
        missing = f"The vector cache {self._name} was deleted: try again, which creates it."
        self._remote = RemoteCollection(self._server, self._name, missing)
        self._dimension = model.dimension
        self._made = False
        self._closed = False
        self._written = INTERVAL  # vectors written since the last count

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
        """All vectors with their keys."""
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
        """Remove vectors if there are too many, at random places of their hashed ids."""
        surplus = min(self.count() - MAX_VECTORS, 2 * INTERVAL)  # the next call removes the rest
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
        """Create the collection, unless it exists."""
        # It is never searched, so it needs no graph. "Cosine" would normalise the stored vectors.
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
