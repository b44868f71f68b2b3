"""The port of the vector store: collections behind aliases, and the points in them.

Two adapters: ``edge.py`` (Qdrant's engine in this process, the embedded default) and ``qdrant.py``
(a Qdrant server). One contract suite runs on both.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

import msgspec

if TYPE_CHECKING:  # what is asked of a server needs no numpy, which takes a twentieth of a second
    import numpy as np
    from numpy.typing import NDArray


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One vector and what it stands for: an item, or one section of an item.

    Attributes:
        id: ``point_id`` of the item's key and the section's number.
        vector: Unit length, float32, of the collection's dimension.
        item: The id of the item.
        section: The number of the section, from 0; None for the item itself.
        kind, source, server, tags: What a search can be filtered by; the same on all points of an
            item.
        content_hash, metadata_hash: The item's hashes; the same on all points of an item.
        revision: Grows with every observation of a source; a write never replaces a newer one.
            Below 2**53: stores compare it as a float.
        record: The item as plain data on the item's own point; ``{"heading": …}`` on a section's.
    """

    id: str
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
    """What a diff needs to know of an indexed item."""

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

    key: str
    section: int | None
    score: float


class Collection(Protocol):
    """The points of one catalogue under one model and recipe, in one generation.

    A context manager: leaving it flushes and closes. Every method raises ``StoreError`` when the
    store cannot be reached and ``StoreCorruptError`` when what is stored cannot be read.
    """

    @property
    def name(self) -> str:
        """The collection's name."""
        ...

    def upsert(self, points: Sequence[Point]) -> None:
        """Write points, each only if there is none of its id, or one of an older revision.

        Writing the same points again changes nothing. An empty sequence is allowed.
        """
        ...

    def delete_items(self, items: Sequence[str], before: int) -> None:
        """Delete all points of these items whose revision is lower than ``before``.

        Items that are not there are passed over.
        """
        ...

    def delete_sections(self, items: Sequence[str], before: int) -> None:
        """Delete the sections of these items, not their own points, likewise."""
        ...

    def states(self, items: Sequence[str] | None = None) -> Iterator[State]:
        """The states of these items, or of every item, in no order, one for each item.

        Items that are not there are passed over; an empty sequence gives nothing.
        """
        ...

    def records(self, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The records, by id, of the items of these keys; what is not there is left out."""
        ...

    def scan(self) -> Iterator[dict[str, Any]]:
        """The record of every item, in no order. Sections are left out."""
        ...

    def search(
        self, vector: "NDArray[np.float32]", limit: int, where: Filter | None = None
    ) -> list[Match]:
        """The points nearest to a vector, best first, filtered inside the search.

        Both items and sections are returned: the caller folds sections into their items.
        """
        ...

    def scores(self, vector: "NDArray[np.float32]", items: Sequence[str]) -> dict[str, float]:
        """The cosine of a vector with each of these items; what is not there is left out.

        It is that of the item's own point, or of its ``LEAD`` if that is more; sections do not
        count.
        """
        ...

    def count(self) -> int:
        """The number of points, sections included."""
        ...

    def optimize(self) -> None:
        """Build what makes search fast on a large collection; may take minutes, loses nothing."""
        ...

    def flush(self) -> None:
        """Make everything written so far safe against power loss."""
        ...

    def close(self) -> None:
        """Flush and let go. Closing twice is allowed."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class VectorStore(Protocol):
    """The collections of a data directory or a server, and the aliases that point at them."""

    def collections(self) -> list[str]:
        """The names of all collections, sorted."""
        ...

    def create(self, name: str, dimension: int) -> Collection:
        """Make an empty collection and open it.

        Raises:
            StoreError: There is one of that name already.
        """
        ...

    def open(self, name: str) -> Collection:
        """Open a collection that exists.

        One store may open a collection any number of times; each opening is closed by itself.

        Raises:
            StoreError: There is none of that name.
            StoreBusyError: Another process holds it; nothing of it was touched.
            StoreCorruptError: It cannot be read; it was left as it is.
        """
        ...

    def drop(self, name: str) -> None:
        """Delete a collection, its points and the aliases that point at it.

        One that is not there is passed over; one that cannot be read can be deleted.

        Raises:
            StoreBusyError: Another process holds it.
        """
        ...

    def alias(self, name: str) -> str | None:
        """The collection that an alias points at, or None."""
        ...

    def set_alias(self, name: str, collection: str) -> None:
        """Point an alias at a collection, at once for everyone who looks.

        Raises:
            StoreError: There is no such collection.
        """
        ...
