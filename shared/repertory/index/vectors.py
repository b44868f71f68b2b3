"""The port of the vector store: collections behind aliases, and the points in them.

Two adapters: ``edge.py`` (Qdrant's engine in this process, the embedded default) and ``qdrant.py``
(a Qdrant server). One contract suite runs on both.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, Self
from uuid import UUID

import msgspec

from repertory.catalogue.item import END_KEY, item_key

if TYPE_CHECKING:  # requests to a server need no numpy, which takes a twentieth of a second
    import numpy as np
    from numpy.typing import NDArray


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One vector, of an item or of one section of an item.

    Attributes:
        id: ``point_id`` of the item's key and the section's number.
        vector: Unit length, float32, of the collection's dimension.
        item: The id of the item.
        section: The number of the section, from 0; None for the item itself.
        kind, source, server, tags: The fields of filters; the same on all points of an item.
        content_hash, metadata_hash: The item's hashes; the same on all points of an item.
        revision: Grows with every observation of a source; a write never replaces a newer one.
            Below 2**53: stores compare it as a float.
        record: The item as plain data on the item's own point; ``{"heading": …}`` on a section's.
    """

    id: UUID
    vector: "NDArray[np.float32]"
    item: str
    section: int | None = None
    kind: str
    source: str
    server: str = ""
    tags: tuple[str, ...] = ()
    content_hash: str
    metadata_hash: str
    revision: int
    record: dict[str, Any]


class State(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an indexed item, for comparing it with its source."""

    item: str
    source: str
    content_hash: str
    metadata_hash: str
    revision: int


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which items a search may return: any of the values within a field, all fields together.

    An empty field filters nothing.
    """

    kinds: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.kinds or self.sources or self.servers or self.tags)


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """One point that a search found: its item's key (``item_key``), and its cosine in -1…1."""

    key: int
    section: int | None
    score: float


class VectorQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What one text of a search asks of the vectors.

    Attributes:
        vector: Unit length.
        limit: The most matches, at least 1.
        where: Filters the matches.
        keys: The items whose cosines are wanted even if no point of theirs matches.
        likely: The items whose records may be asked for next.
        points: The ids of the points of ``keys`` whose cosines count, if they are known already.
    """

    vector: "NDArray[np.float32]"
    limit: int
    where: Filter | None = None
    keys: Sequence[int] = ()
    likely: Sequence[int] = ()
    points: Set[UUID] | None = None


class VectorAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a ``VectorQuery``.

    Attributes:
        matches: The nearest points, items and sections, best first.
        scores: The cosine of each item of ``keys`` without a match, by key; missing items are left
            out. It is the higher one of the item's own point and its ``LEAD``.
        records: The records of likely items by id, as JSON: only where ``Collection.records`` would
            be another request.
    """

    matches: Sequence[Match]
    scores: Mapping[int, float]
    records: Mapping[str, str] = {}


class Searched(Protocol):
    """What a search reads of a collection; see ``Collection``."""

    @property
    def name(self) -> str:
        """The collection's name."""
        ...

    def records(self, keys: Sequence[int]) -> dict[str, dict[str, Any]]:
        """The records, by id, of the items of these keys; missing ones are left out."""
        ...

    def states(self, items: Sequence[str] | None = None) -> Iterator[State]:
        """The states of these items, or of every item, in no order, one for each item.

        Missing items are skipped; an empty sequence gives nothing.
        """
        ...

    def query(self, queries: Sequence[VectorQuery]) -> list[VectorAnswer]:
        """Answer each query, all of them with one request to a server.

        Matches are filtered inside the search.
        """
        ...

    def search(
        self, vector: "NDArray[np.float32]", limit: int, where: Filter | None = None
    ) -> Sequence[Match]:
        """The points nearest to a vector, as ``query`` finds them."""
        return self.query([VectorQuery(vector=vector, limit=limit, where=where)])[0].matches


class Collection(Searched, Protocol):
    """The points of one catalogue under one model and recipe, in one generation.

    A context manager: leaving it flushes and closes. Every method raises ``StoreError`` when the
    store is unavailable and ``StoreCorruptError`` when stored data are unreadable.
    """

    def upsert(self, points: Sequence[Point]) -> None:
        """Write points, each only if its id is new or has an older revision.

        Writing the same points again changes nothing. An empty sequence is allowed.
        """
        ...

    def delete_items(self, items: Sequence[str], before: int) -> None:
        """Delete all points of these items whose revision is lower than ``before``.

        Missing items are skipped.
        """
        ...

    def delete_sections(self, items: Sequence[str], before: int) -> None:
        """Delete the sections of these items below a revision, but not their own points."""
        ...

    def page(self, start: int, limit: int, since: int = 0) -> list[State]:
        """The states of some items, in the order of their keys (``item_key``).

        Args:
            start: The lowest key.
            limit: The most items, at least 1; fewer are the last ones.
            since: The lowest revision.
        """
        ...

    def scan(self) -> Iterator[dict[str, Any]]:
        """The record of every item, in no order. Sections are left out."""
        ...

    def points(self) -> Iterator[Point]:
        """Every point as ``upsert`` takes it, sections included, in the order of their ids.

        So the points of an item follow each other, its own first. While it is written to, each item
        comes as it was at some moment: its own point is written last, so what follows is complete.
        """
        ...

    def count(self) -> int:
        """The number of points, sections included."""
        ...

    def count_items(self) -> int:
        """The number of items."""
        ...

    def is_ready(self) -> bool:
        """Whether the structures for fast searches are built, as far as a server does it.

        Raises:
            StoreError: The server failed to build them.
        """
        ...

    def optimize(self) -> None:
        """Build the structures that speed up a large collection; may take minutes."""
        ...

    def build_graph(self, stopping: threading.Event) -> bool:  # noqa: ARG002 - the default has none
        """Build the search graph of many points that have none, beside searches and writes.

        Args:
            stopping: Ends the building.

        Returns:
            Whether one was built. A server builds its graphs by itself.
        """
        return False

    def close(self) -> None:
        """Flush and close. Closing twice is allowed."""
        ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def next_key(page: Sequence[State], limit: int) -> int:
    """The lowest key after a page of a collection; ``END_KEY`` after the last one."""
    return item_key(page[-1].item) + 1 if len(page) == limit else END_KEY


def nearest(
    collection: Searched,
    vector: "NDArray[np.float32]",
    limit: int,
    is_enough: Callable[[Sequence[Match]], bool],
    where: Filter | None = None,
) -> Sequence[Match]:
    """Search with a growing limit until the matches are enough or complete.

    Args:
        collection: The points.
        vector: Unit length.
        limit: The first limit, at least 1.
        is_enough: Whether a full list of matches, best first, goes far enough.
        where: Filters the points.
    """
    while len(matches := collection.search(vector, limit, where)) >= limit:
        if is_enough(matches):
            break
        limit *= 4
    return matches


class VectorStore(Protocol):
    """The collections of a data directory or a server, and the aliases that point at them."""

    def collections(self) -> list[str]:
        """The names of all collections, sorted."""
        ...

    def create(self, name: str, dimension: int) -> Collection:
        """Make an empty collection and open it.

        Raises:
            StoreError: A collection of that name exists already.
        """
        ...

    def open(self, name: str) -> Collection:
        """Open a collection that exists.

        One store may open a collection any number of times; each opening is closed by itself.

        Raises:
            StoreError: No collection has that name.
            StoreBusyError: Another process holds it; it was not touched.
            StoreCorruptError: It cannot be read; it was left as it is.
        """
        ...

    def drop(self, name: str) -> None:
        """Delete a collection, its points and the aliases that point at it.

        A missing collection is ignored; an unreadable one can be deleted.

        Raises:
            StoreBusyError: Another process holds it.
        """
        ...

    def alias(self, name: str) -> str | None:
        """The collection that an alias points at, or None."""
        ...

    def aliases(self, names: Iterable[str] | None = None) -> dict[str, str]:
        """The collection of each alias, or of some by name; one that is missing is left out."""
        ...

    def set_alias(self, name: str, collection: str) -> None:
        """Point an alias at a collection, at once for all readers.

        Raises:
            StoreError: There is no such collection.
        """
        ...

    @contextmanager
    def waiting(self, seconds: float) -> Iterator[None]:  # noqa: ARG002 - for those that wait
        """Meanwhile wait this many seconds for a collection that another process holds.

        On a server processes share them.
        """
        yield
