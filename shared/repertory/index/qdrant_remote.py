"""Requests to one collection of a Qdrant server, shared by index and cache."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from repertory.index.qdrant_connection import QdrantServer, Result

T = TypeVar("T")


class StoredPoint(msgspec.Struct):
    """A point in a server's answer; only requested fields are set."""

    id: str
    payload: dict[str, Any] | None = None
    vector: list[float] = []


class _Page(msgspec.Struct):
    points: list[StoredPoint]
    next_page_offset: str | None = None


class _Count(msgspec.Struct):
    count: int


class RemoteCollection:
    """Sends requests about one collection and its points. Threads may share it."""

    def __init__(self, server: QdrantServer, name: str, missing: str) -> None:
        """Use a collection; no request is sent yet.

        Args:
            server: The server of the collection.
            name: The collection's name.
            missing: The message if it does not exist.
        """
        self._server = server
        self._about = f"/collections/{name}"
        self._path = f"{self._about}/points"
        self._missing = missing

    def about(self, answer: type[Result[T]]) -> T:
        """The server's information about the collection."""
        return self._server.ask(self._about, answer, missing=self._missing)

    def touch(self) -> None:
        """Send an empty change, which makes the server optimize the collection."""
        self._server.change("PATCH", self._about, {"optimizers_config": {}}, missing=self._missing)

    def read(self, path: str, body: object, answer: type[Result[T]]) -> T:
        """Request points with the timeout of a query.

        Args:
            path: The path below that of the points.
            body: The body, which is sent as JSON.
            answer: The type of the decoded answer.
        """
        return self._server.read(self._path + path, body, answer, missing=self._missing)

    def write(self, points: Sequence[Mapping[str, Any]], where: object = None) -> None:
        """Write points; an existing one is replaced only if it fulfils the condition ``where``."""
        body = {"points": points} | ({} if where is None else {"update_filter": where})
        self._server.change("PUT", self._path, body, missing=self._missing, waits=True)

    def delete(self, where: object) -> None:
        """Delete the points that fulfil a condition."""
        path = f"{self._path}/delete"
        self._server.change("POST", path, {"filter": where}, missing=self._missing, waits=True)

    def count(self, where: object = None) -> int:
        """The number of points, or of those that fulfil a condition."""
        body = {"exact": True} | ({} if where is None else {"filter": where})
        path = f"{self._path}/count"
        return self._server.ask(path, Result[_Count], body, missing=self._missing).count

    def scroll(self, **asked: object) -> Iterator[StoredPoint]:
        """All points in the order of their ids, read page by page.

        Args:
            asked: The parameters of Qdrant's REST interface.
        """
        while True:
            page = self._page(asked)
            yield from page.points
            if page.next_page_offset is None:
                return
            asked["offset"] = page.next_page_offset

    def page(self, **asked: object) -> list[StoredPoint]:
        """The first page of points in the order of their ids."""
        return self._page(asked).points

    def _page(self, asked: Mapping[str, object]) -> _Page:
        path = f"{self._path}/scroll"
        return self._server.ask(path, Result[_Page], asked, missing=self._missing)
