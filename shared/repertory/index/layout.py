"""How both vector stores represent a point: its payload, its indexes, its search parameters.

Everything here is plain data, so that the embedded engine and the server use the same layout.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import groupby
from operator import attrgetter
from typing import Any
from uuid import UUID

import msgspec
import numpy as np
from numpy.typing import NDArray

from repertory.catalogue.item import SECTION_BITS, point_id, point_parts
from repertory.catalogue.views import LEAD
from repertory.errors import StoreCorruptError, StoreError
from repertory.index.vectors import Match, Point, State, VectorQuery

STATE = State.__struct_fields__
RECORD = ("item", "record")
UNREADABLE = "unreadable"  # the hashes of an item whose payload is damaged

# Limits of one write. The engine holds the GIL during it, and a server accepts at most 32 MB.
CHUNK = 256  # points
CHUNK_SIZE = 12_000_000  # characters of records, which JSON may double, and of vectors
NUMBER_SIZE = 22  # characters of one number of a vector
PAGE = 1_000  # points per read while scanning

# Right after a query was embedded, scanning all vectors takes 1.6 ms at 10,000 points of 384
# numbers, and searching a graph takes 1.2 ms. Building that graph takes 2.5 s, so it is not worth
# it below 8 MB of vectors (5,000 points).
GRAPH_FROM = 8_000  # kilobytes of vectors
GRAPH_M = 16
GRAPH_EF_CONSTRUCT = 128
SEARCH_EF = 128

# The graph is searched with 8-bit vectors in memory, which have a quarter of the size and take half
# the time. More points than requested are found and then rescored with the vectors on disk. The
# oversampling is enough to lose no recall at 10,000 items in one shard, and at a million on a
# server.
QUANTILE = 0.99  # the share of a vector's numbers that the 8-bit range covers
OVERSAMPLING, OVERSAMPLING_OF_SERVER = 1.5, 2.0

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


def checked_name(name: str) -> str:
    """Return the name of a collection or an alias if it is safe as a file name.

    Raises:
        StoreError: The name is unsafe.
    """
    if not _NAME.fullmatch(name):
        raise StoreError(
            f"{name!r} cannot name a collection: use letters, digits, '.', '_' and '-' only."
        )
    return name


def payload(point: Point) -> dict[str, Any]:
    """The payload of a point, stored beside its vector.

    The record is stored as JSON text, so that it comes back unchanged. As a structure, the engine
    would round large numbers and refuse lone surrogates.
    """
    section = {} if point.section is None else {"section": point.section}
    return section | {
        "item": point.item,
        "kind": point.kind,
        "source": point.source,
        "server": point.server,
        "tags": list(point.tags),
        "content_hash": point.content_hash,
        "metadata_hash": point.metadata_hash,
        "revision": point.revision,
        "record": json.dumps(point.record, separators=(",", ":")),
    }


class Fields(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that ``payload`` stores; see ``Point``."""

    item: str
    section: int | None = None
    kind: str
    source: str
    server: str
    tags: tuple[str, ...]
    content_hash: str
    metadata_hash: str
    revision: int
    record: dict[str, Any]


def point(number: UUID, vector: Sequence[float], stored: dict[str, Any] | None) -> Point:
    """Make a point from its id, its vector and its payload."""
    try:
        plain = stored or {}
        found = msgspec.convert({**plain, "record": json.loads(plain["record"])}, Fields)
    except (LookupError, TypeError, ValueError, RecursionError) as exc:
        raise StoreCorruptError(f"A stored point cannot be read: {exc!r}.") from exc
    fields = msgspec.structs.asdict(found)
    return Point(id=number, vector=np.asarray(vector, np.float32), **fields)


def state(stored: dict[str, Any] | None) -> State | None:
    """The state of an item, from the payload of its own point.

    If the payload is damaged, the hashes are ``UNREADABLE``, so that the item is written again or
    removed. None if even the item's id is unreadable.
    """
    try:
        return msgspec.convert(stored, State)
    except msgspec.ValidationError:
        fields = stored or {}
    item, source, revision = (fields.get(name) for name in ("item", "source", "revision"))
    if not isinstance(item, str):
        return None
    return State(
        item=item,
        source=source if isinstance(source, str) else "",
        content_hash=UNREADABLE,
        metadata_hash=UNREADABLE,
        revision=revision if isinstance(revision, int) else 0,
    )


def match(point: UUID, score: float) -> Match:
    """Make a match from the id of the found point."""
    key, section = point_parts(point)
    return Match(key=key, section=section, score=score)


def record(stored: dict[str, Any] | None) -> tuple[str, dict[str, Any]]:
    """An item's id and its record, from the payload of its own point."""
    try:
        return stored["item"], json.loads(stored["record"])  # type: ignore[index]  # caught below
    except (KeyError, TypeError, ValueError, RecursionError) as exc:
        raise StoreCorruptError(f"A stored record cannot be read: {exc!r}.") from exc


def writes(points: Iterable[Point]) -> Iterator[tuple[int, list[tuple[Point, dict[str, Any]]]]]:
    """Points with their payloads, in chunks of one revision each, lower revisions first.

    A conditional write can compare with only one revision.
    """
    revision = attrgetter("revision")
    for number, group in groupby(sorted(points, key=revision), key=revision):
        chunk: list[tuple[Point, dict[str, Any]]] = []
        size = 0
        for point in group:
            stored = payload(point)
            added = len(stored["record"]) + NUMBER_SIZE * len(point.vector)
            if chunk and (len(chunk) == CHUNK or size + added > CHUNK_SIZE):
                yield number, chunk
                chunk, size = [], 0
            chunk.append((point, stored))
            size += added
        yield number, chunk


def points_of(dimension: int) -> int:
    """The maximum number of points without records in one write."""
    return min(CHUNK, max(1, CHUNK_SIZE // (NUMBER_SIZE * dimension)))


def pages(keys: Iterable[int]) -> Iterator[list[UUID]]:
    """The ids of the own points of the items with these keys, each once, in pages."""
    ids = [point_id(key) for key in dict.fromkeys(keys)]
    for start in range(0, len(ids), PAGE):
        yield ids[start : start + PAGE]


def own_and_leads(keys: Iterable[int]) -> set[UUID]:
    """The ids of the own points and the leads of the items with these keys."""
    return {point_id(key, part) for key in keys for part in (None, LEAD)}


def compared(query: VectorQuery) -> Set[UUID]:
    """The ids of the points whose cosines a query requests."""
    return own_and_leads(query.keys) if query.points is None else query.points


def scores(found: Iterable[tuple[UUID, float]]) -> dict[int, float]:
    """The best score of each item by key; ``found`` has the ids of points, best first."""
    best: dict[int, float] = {}
    for point, score in found:
        best.setdefault(key_of(point), score)
    return best


def key_of(point: UUID) -> int:
    """The key of a point's item."""
    return point.int >> SECTION_BITS


def numbers(vector: NDArray[np.floating]) -> list[float]:
    """A vector as a list of floats.

    Raises:
        StoreError: A number is not finite. The store itself would not check that.
    """
    if not np.isfinite(vector).all():
        raise StoreError("A vector holds a number that is not finite: embed its text again.")
    plain: list[float] = vector.tolist()
    return plain
