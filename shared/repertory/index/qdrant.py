"""The vector store on a Qdrant server, or a cluster of them.

Import this module only when a server is configured: ``qdrant_client`` takes most of a second.
"""

from qdrant_client import models
from typing_extensions import override

from repertory.index import layout
from repertory.index.qdrant_collection import QdrantCollection
from repertory.index.qdrant_connection import QdrantServer, Replication
from repertory.index.vectors import VectorStore

_KEYWORD = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD)
_INTEGER = models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER, on_disk=True)
# The payload indexes, made before the first point is written. Those that are as large as the points
# are on disk.
_INDEXES: dict[str, models.PayloadSchemaParams] = {
    "kind": _KEYWORD,
    "source": _KEYWORD,
    "server": _KEYWORD,
    "tags": _KEYWORD,
    "item": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, on_disk=True),
    "section": _INTEGER,
    "revision": _INTEGER,
}


class QdrantStore(VectorStore):
    """The collections of one server. Threads may share it."""

    def __init__(
        self, urls: str, api_key: str | None = None, replication: Replication | None = None
    ) -> None:
        """Use a server, like ``http://host:6333``; nothing is sent to it yet.

        A user and a password in the URL are not shown in messages.

        Args:
            urls: One address, or several of one cluster, separated by commas.
            api_key: Its key.
            replication: How new collections are spread over a cluster.

        Raises:
            StoreError: A URL is invalid.
        """
        self._server = QdrantServer(urls, api_key, replication)

    @override
    def collections(self) -> list[str]:
        with self._server.translated():
            found = self._server.client.get_collections().collections
        return sorted(collection.name for collection in found)

    @override
    def create(self, name: str, dimension: int) -> QdrantCollection:
        self._server.check_version()
        self._server.create(
            layout.checked_name(name),
            models.VectorParams(size=dimension, distance=models.Distance.COSINE, on_disk=True),
            models.HnswConfigDiff(
                m=layout.GRAPH_M,
                ef_construct=layout.GRAPH_EF_CONSTRUCT,
                full_scan_threshold=layout.GRAPH_FROM,
            ),
            quantization_config=models.ScalarQuantization(
                scalar=models.ScalarQuantizationConfig(
                    type=models.ScalarType.INT8, quantile=layout.QUANTILE, always_ram=True
                )
            ),
            optimizers_config=models.OptimizersConfigDiff(indexing_threshold=layout.GRAPH_FROM),
        )
        return self.open(name)

    @override
    def open(self, name: str) -> QdrantCollection:
        """Open a collection that exists, and add missing payload indexes.

        Some are missing when the process that made it was interrupted.
        """
        self._server.check_version()
        missing = f"There is no collection {name}: index first."
        with self._server.translated(missing=missing):
            info = self._server.client.get_collection(layout.checked_name(name))
            for field, params in _INDEXES.items():
                if field not in info.payload_schema:
                    self._server.client.create_payload_index(name, field, params, wait=True)
        return QdrantCollection(self._server, name)

    @override
    def drop(self, name: str) -> None:
        with self._server.translated():
            self._server.client.delete_collection(layout.checked_name(name))

    @override
    def alias(self, name: str) -> str | None:
        return self.aliases().get(name)

    @override
    def aliases(self) -> dict[str, str]:
        with self._server.translated():
            found = self._server.client.get_aliases().aliases
        return {one.alias_name: one.collection_name for one in found}

    @override
    def set_alias(self, name: str, collection: str) -> None:
        # It replaces an alias. A server does the actions of one request one by one and keeps those
        # before the first that fails: a deletion before it would be the end of the alias.
        new = models.CreateAlias(alias_name=layout.checked_name(name), collection_name=collection)
        missing = f"There is no collection {collection} for {name} to point at."
        with self._server.translated(missing=missing):
            self._server.client.update_collection_aliases(
                [models.CreateAliasOperation(create_alias=new)]
            )
