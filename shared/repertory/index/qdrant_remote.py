"""One collection of a Qdrant server: the requests that index and cache share."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from repertory.index.qdrant_connection import QdrantServer, Result

T = TypeVar("T")


class StoredPoint(msgspec.Struct):
    """A point as the server answers it; fields that were not asked for are missing."""

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
        """Use a collection; nothing is sent yet.

        Args:
            server: It has the collection.
            name: Its name.
            missing: The message if it does not exist.
        """
        self._server = server
        self._about = f"/collections/{name}"
        self._path = f"{self._about}/points"
        self._missing = missing

    def about(self, answer: type[Result[T]]) -> T:
        """What the server says about the collection."""
        return self._server.ask("GET", self._about, answer, missing=self._missing)

    def touch(self) -> None:
        """Change nothing, but let the server optimize the collection."""
        self._server.change("PATCH", self._about, {"optimizers_config": {}}, missing=self._missing)

    def read(self, path: str, body: object, answer: type[Result[T]]) -> T:
        """Ask for points with the timeout of a query.

        Args:
            path: Below that of the points.
            body: What is sent as JSON.
            answer: What the answer is decoded to.
        """
        return self._server.read(self._path + path, body, answer, missing=self._missing)

    def write(self, points: Sequence[Mapping[str, Any]], where: object = None) -> None:
        """Write points; one that exists is replaced only if it fulfils a condition."""
        body = {"points": points} | ({} if where is None else {"update_filter": where})
        self._server.change("PUT", self._path, body, missing=self._missing, waits=True)

    def delete(self, where: object) -> None:
        """Delete the points that fulfil a condition."""
        path = f"{self._path}/delete"
        self._server.change("POST", path, {"filter": where}, missing=self._missing, waits=True)

    def count(self, where: object = None) -> int:
        """How many points there are, or fulfil a condition."""
        body = {"exact": True} | ({} if where is None else {"filter": where})
        path = f"{self._path}/count"
        return self._server.ask("POST", path, Result[_Count], body, self._missing).count

    def scroll(self, **asked: object) -> Iterator[StoredPoint]:
        """Every point in the order of the ids, page by page.

        Args:
            asked: As Qdrant's REST interface has it.
        """
        while True:
            page = self._page(asked)
            yield from page.points
            if page.next_page_offset is None:
                return
            asked["offset"] = page.next_page_offset

    def page(self, **asked: object) -> list[StoredPoint]:
        """The first points in the order of the ids."""
        return self._page(asked).points

    def _page(self, asked: Mapping[str, object]) -> _Page:
        path = f"{self._path}/scroll"
        return self._server.ask("POST", path, Result[_Page], asked, self._missing)
