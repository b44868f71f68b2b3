"""The vector store on a Qdrant server or cluster."""

from collections.abc import Iterable
from typing import Any

import msgspec
from typing_extensions import override

from repertory.index import layout
from repertory.index.qdrant_collection import QdrantCollection
from repertory.index.qdrant_connection import QdrantServer, Replication, Result
from repertory.index.vectors import VectorStore

# The payload indexes, which are created before the first point is written. Indexes with an entry
# per point are on disk.
_INDEXES: dict[str, dict[str, Any]] = {
    "kind": {"type": "keyword"},
    "source": {"type": "keyword"},
    "server": {"type": "keyword"},
    "tags": {"type": "keyword"},
    "item": {"type": "keyword", "on_disk": True},
    "section": {"type": "integer", "on_disk": True},
    "revision": {"type": "integer", "on_disk": True},
}


class _Named(msgspec.Struct):
    name: str


class _Collections(msgspec.Struct):
    collections: list[_Named]


class _Schema(msgspec.Struct):
    """The payload indexes of a collection, by their fields."""

    payload_schema: dict[str, object]


class _Alias(msgspec.Struct):
    alias_name: str
    collection_name: str


class _Aliases(msgspec.Struct):
    aliases: list[_Alias]


class QdrantStore(VectorStore):
    """The collections of one server. Threads may share it."""

    def __init__(
        self, urls: str, api_key: str | None = None, replication: Replication | None = None
    ) -> None:
        """Use a server, such as ``http://host:6333``; no request is sent yet.

        A user and a password in the URL are sent for basic authentication, and not shown in
        messages.

        Args:
            urls: One address, or several of one cluster, separated by commas.
            api_key: The server's API key.
            replication: How new collections are distributed over a cluster.

        Raises:
            StoreError: A URL is invalid.
        """
        self._server = QdrantServer(urls, api_key, replication)

    @override
    def collections(self) -> list[str]:
        found = self._server.ask("/collections", Result[_Collections]).collections
        return sorted(collection.name for collection in found)

    @override
    def create(self, name: str, dimension: int) -> QdrantCollection:
        self._server.check_version()
        numbers = {"type": "int8", "quantile": layout.QUANTILE, "always_ram": True}
        settings = {
            "vectors": {"size": dimension, "distance": "Cosine", "on_disk": True},
            "hnsw_config": {
                "m": layout.GRAPH_M,
                "ef_construct": layout.GRAPH_EF_CONSTRUCT,
                "full_scan_threshold": layout.GRAPH_FROM,
            },
            "quantization_config": {"scalar": numbers},
            "optimizers_config": {"indexing_threshold": layout.GRAPH_FROM},
        }
        self._server.create(layout.checked_name(name), settings)
        return self.open(name)

    @override
    def open(self, name: str) -> QdrantCollection:
        """Open an existing collection, and add missing payload indexes.

        Some are missing if the process that created the collection was interrupted.
        """
        self._server.check_version()
        path = f"/collections/{layout.checked_name(name)}"
        missing = f"There is no collection {name}: index first."
        known = self._server.ask(path, Result[_Schema], missing=missing)
        for field in _INDEXES.keys() - known.payload_schema.keys():
            body = {"field_name": field, "field_schema": _INDEXES[field]}
            self._server.change("PUT", f"{path}/index", body, missing=missing, waits=True)
        return QdrantCollection(self._server, name)

    @override
    def drop(self, name: str) -> None:
        self._server.change("DELETE", f"/collections/{layout.checked_name(name)}")

    @override
    def alias(self, name: str) -> str | None:
        return self.aliases().get(name)

    @override
    def aliases(self, names: Iterable[str] | None = None) -> dict[str, str]:
        wanted = None if names is None else {*names}
        found = self._server.ask("/aliases", Result[_Aliases]).aliases
        return {
            one.alias_name: one.collection_name
            for one in found
            if wanted is None or one.alias_name in wanted
        }

    @override
    def set_alias(self, name: str, collection: str) -> None:
        # ``create_alias`` replaces an existing alias. Do not delete that first: a server does the
        # actions one by one, so the alias would be lost if the second one failed.
        new = {"alias_name": layout.checked_name(name), "collection_name": collection}
        self._server.change(
            "POST",
            "/collections/aliases",
            {"actions": [{"create_alias": new}]},
            missing=f"There is no collection {collection} for {name} to point at.",
        )
