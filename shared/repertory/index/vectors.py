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

if TYPE_CHECKING:  # requests to a server need no NumPy, whose import takes 50 ms
    import numpy as np
    from numpy.typing import NDArray


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One vector, of an item or of one section of an item.

    Attributes:
        id: ``point_id`` of the item's key and the section's number.
        vector: Unit length, float32, of the collection's dimension.
        item: The id of the item.
        section: The number of the section, from 0; None for the item itself.
        kind, source, server, tags: The filter fields; the same on all points of an item.
        content_hash, metadata_hash: The item's hashes; the same on all points of an item.
        revision: Grows with every job; a write never replaces a higher revision. It is below 2**53,
            because stores compare it as a float.
        record: On the item's own point, the item as plain data; on a section's, ``{"heading": …}``.
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
    """The items that a search may return: those with any of the values in each field.

    An empty field does not filter.
    """

    kinds: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.kinds or self.sources or self.servers or self.tags)

    @property
    def conditions(self) -> dict[str, tuple[str, ...]]:
        """The allowed values of each filtered field of an item."""
        fields = {
            "kind": self.kinds,
            "source": self.sources,
            "server": self.servers,
            "tags": self.tags,
        }
        return {field: values for field, values in fields.items() if values}


NO_FILTER = Filter()


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """A point found by a search, with its item's key (``item_key``) and its cosine, -1…1."""

    key: int
    section: int | None
    score: float


class VectorQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A vector query for one text of a search.

    Attributes:
        vector: Unit length.
        limit: The maximum number of matches, at least 1.
        where: Filters the matches.
        keys: The items whose cosines are needed even if none of their points matches.
        likely: The items whose records will probably be needed next.
        points: The ids of the points whose cosines are needed for ``keys``, if already computed.
    """

    vector: "NDArray[np.float32]"
    limit: int
    where: Filter = NO_FILTER
    keys: Sequence[int] = ()
    likely: Sequence[int] = ()
    points: Set[UUID] | None = None


class VectorAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a ``VectorQuery``.

    Attributes:
        matches: The nearest points, items and sections, best first.
        scores: The cosines of the items of ``keys`` without a match, by key. An item's cosine is
            the higher one of its own point and its ``LEAD``. Missing items are left out.
        records: The records of likely items by id, as JSON. Empty if ``Collection.records`` needs
            no further request.
    """

    matches: Sequence[Match]
    scores: Mapping[int, float]
    records: Mapping[str, str] = {}


class Searched(Protocol):
    """The part of a collection that a search reads; see ``Collection``."""

    @property
    def name(self) -> str:
        """The collection's name."""
        ...

    def records(self, keys: Sequence[int]) -> dict[str, dict[str, Any]]:
        """The records of the items with these keys, by id; missing ones are left out."""
        ...

    def states(self, items: Sequence[str] | None = None) -> Iterator[State]:
        """The states of these items, or of all items if None, in any order, one per item.

        Missing items are skipped.
        """
        ...

    def query(self, queries: Sequence[VectorQuery]) -> list[VectorAnswer]:
        """Answer queries; a server is sent one request for all of them.

        Matches are filtered during the search, not afterwards.
        """
        ...

    def search(
        self, vector: "NDArray[np.float32]", limit: int, where: Filter = NO_FILTER
    ) -> Sequence[Match]:
        """The points nearest to a vector, as ``query`` finds them."""
        return self.query([VectorQuery(vector=vector, limit=limit, where=where)])[0].matches


class Collection(Searched, Protocol):
    """The points of one catalogue under one model and recipe, in one generation.

    As a context manager it flushes and closes at the end. Every method raises ``StoreError`` if the
    store is unavailable and ``StoreCorruptError`` if stored data are unreadable.
    """

    def upsert(self, points: Sequence[Point]) -> None:
        """Write points, each only if its id is new or has an older revision.

        The operation is idempotent. An empty sequence is allowed.
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
            limit: The maximum number of items, at least 1; a shorter page is the last one.
            since: The lowest revision.
        """
        ...

    def scan(self) -> Iterator[dict[str, Any]]:
        """The records of all items, in any order, without sections."""
        ...

    def points(self) -> Iterator[Point]:
        """All points including sections, as ``upsert`` takes them, in the order of their ids.

        So the points of an item are adjacent, with its own point first. An item's own point is
        written last, so an item that is read during writes is complete.
        """
        ...

    def count(self) -> int:
        """The number of points, including sections."""
        ...

    def count_items(self) -> int:
        """The number of items."""
        ...

    def is_ready(self) -> bool:
        """Whether a server has built its structures for fast searches; true without a server.

        Raises:
            StoreError: The server failed to build them.
        """
        ...

    def optimize(self) -> None:
        """Build the structures that speed up a large collection; may take minutes."""
        ...

    def build_graph(self, stopping: threading.Event) -> bool:  # noqa: ARG002 - the default has none
        """Build a search graph if many points have none, concurrently with searches and writes.

        Args:
            stopping: Set to stop building.

        Returns:
            Whether a graph was built. A server builds its graphs by itself.
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
    where: Filter = NO_FILTER,
) -> Sequence[Match]:
    """Search with a growing limit until the matches are enough or complete.

    Args:
        collection: The points.
        vector: Unit length.
        limit: The first limit, at least 1.
        is_enough: Whether a full list of matches, best first, is long enough.
        where: Filters the points.
    """
    while len(matches := collection.search(vector, limit, where)) >= limit:
        if is_enough(matches):
            break
        limit *= 4
    return matches


class VectorStore(Protocol):
    """The collections of a data directory or a server, and the aliases that point to them."""

    def collections(self) -> list[str]:
        """The names of all collections, sorted."""
        ...

    def create(self, name: str, dimension: int) -> Collection:
        """Create an empty collection and open it.

        Raises:
            StoreError: A collection of that name already exists.
        """
        ...

    def open(self, name: str) -> Collection:
        """Open an existing collection.

        A store may open a collection any number of times; each opening must be closed separately.

        Raises:
            StoreError: No collection has that name.
            StoreBusyError: Another process holds it; it is unchanged.
            StoreCorruptError: It is unreadable; it is unchanged.
        """
        ...

    def drop(self, name: str) -> None:
        """Delete a collection, its points and the aliases that point to it.

        A missing collection is ignored; an unreadable one can be deleted.

        Raises:
            StoreBusyError: Another process holds it.
        """
        ...

    def alias(self, name: str) -> str | None:
        """The collection that an alias points to; None if missing."""
        ...

    def aliases(self, names: Iterable[str] | None = None) -> dict[str, str]:
        """The collections of all aliases, or of the named ones; missing ones are left out."""
        ...

    def set_alias(self, name: str, collection: str) -> None:
        """Point an alias to a collection, atomically for all readers.

        Raises:
            StoreError: There is no such collection.
        """
        ...

    @contextmanager
    def waiting(self, seconds: float) -> Iterator[None]:  # noqa: ARG002 - for those that wait
        """Within the block, wait this many seconds for a collection that another process holds.

        This has no effect on a server, where processes share collections.
        """
        yield
