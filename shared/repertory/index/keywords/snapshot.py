"""The keyword index as bytes, segment by segment; ``coordination.snapshots`` stores them.

A snapshot can be rebuilt from the vector store. If it is missing, damaged or of another version, it
is rebuilt rather than repaired.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Annotated, NamedTuple
from zlib import crc32

import msgspec
import numpy as np
from msgspec import Meta

from repertory.errors import StoreCorruptError
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.packed import Offsets, Rows, Strings, Table
from repertory.index.keywords.parts import Part
from repertory.index.keywords.segment import KEY, Segment

# Increase it whenever the index is built or packed differently.
VERSION = 23

# The data type of each array, by the last part of its name.
_TYPES = {
    "entries": np.dtype(np.uint8),
    "text": np.dtype(np.uint8),
    "offsets": np.dtype(np.int64),
    "keys": KEY,
    "policies": np.dtype(np.int32),
    "rows": np.dtype(np.int32),
    "codes": np.dtype(np.int32),
    "weights": np.dtype(np.float16),
    "duplicate_keys": np.dtype(np.uint64),
}


class _Head(msgspec.Struct, frozen=True, array_like=True):
    version: Annotated[int, Meta(ge=VERSION, le=VERSION)]
    revision: int
    position: str
    parts: list[tuple[str, bytes]]  # the name of a segment, and a bit per row: 1 if live


class _Array(msgspec.Struct, frozen=True, array_like=True):
    dtype: str
    content: memoryview


class Snapshot(NamedTuple):
    """A keyword index, the revision of its collection, and the position of the next delta.

    The position is empty if no deltas are followed.
    """

    keywords: KeywordIndex
    revision: int
    position: str = ""


def packing(
    index: KeywordIndex, revision: int, position: str = ""
) -> tuple[bytes, Mapping[str, Callable[[], bytes]]]:
    """The head of a snapshot, and a function to pack each segment, as many are already stored.

    Segments are not compressed, so that a search can read them sooner.
    """
    parts = [
        (part.segment.name, b"" if part.alive is None else np.packbits(part.alive).tobytes())
        for part in index.parts
    ]
    head = msgspec.msgpack.encode(_Head(VERSION, revision, position, parts))
    packs = {_stored(part.segment.name): partial(_packed, part.segment) for part in index.parts}
    return _checked(head), packs


def unpack(head: bytes, segments: Mapping[str, bytes]) -> Snapshot:
    """Read a snapshot that ``packing`` made.

    Raises:
        StoreCorruptError: The bytes are truncated, damaged, or of another version.
    """
    try:
        read = msgspec.msgpack.decode(_content(head), type=_Head)
        with ThreadPoolExecutor() as pool:  # numpy copies and checks without Python's lock
            names, left = [name for name, _ in read.parts], [rows for _, rows in read.parts]
            parts = [*pool.map(_part, names, left, [segments[_stored(name)] for name in names])]
    except (msgspec.MsgspecError, RecursionError) as error:
        raise StoreCorruptError(
            "The keyword snapshot is of another version; it will be built again."
        ) from error
    except (ValueError, KeyError, TypeError) as error:  # an array or part of a number is missing
        raise _inconsistent() from error
    return Snapshot(KeywordIndex(parts), read.revision, read.position)


def _stored(name: str) -> str:
    """The name of a segment in the store, which includes the version that packed it."""
    return f"{name}-{VERSION}"


def _packed(segment: Segment) -> bytes:
    arrays = {
        name: _Array(array.dtype.str, np.ascontiguousarray(array).data.cast("B"))
        for name, array in segment.arrays().items()
    }
    packed = _checked(msgspec.msgpack.encode(arrays))
    segment.free_memory()
    return packed


def _part(name: str, left: bytes, data: bytes) -> Part:
    stored = msgspec.msgpack.decode(_content(data), type=dict[str, _Array])
    # Copy, because unaligned numbers are slow to read and a view would keep all of the bytes.
    arrays = {
        one: np.array(np.frombuffer(array.content, array.dtype)) for one, array in stored.items()
    }
    segment = Segment.from_arrays(name, arrays)
    if not all(_consistent(segment)):
        raise _inconsistent()
    if not left:
        return Part(segment)
    alive = np.unpackbits(np.frombuffer(left, np.uint8), count=len(segment)).astype(np.bool_)
    return Part(segment, alive=alive)


def _consistent(segment: Segment) -> Iterator[bool]:
    """Yield checks that all offsets and rows exist; a checksum does not prove the origin."""
    items, postings, columns = len(segment), segment.postings, segment.columns
    arrays = segment.arrays()
    yield all(one.dtype == _TYPES[name.rpartition(".")[2]] for name, one in arrays.items())
    yield len(segment.keys) == len(columns.duplicate_keys) == items
    yield _divides(segment.offsets, items, arrays["entries"].size)
    yield len(postings.rows) == len(postings.weights)
    yield _are_within(segment.policies, items)
    for table in (postings.table, *segment.names.tables.values(), columns.tags):
        yield _is_table(table, items)
    for column in columns.fields.values():
        yield _has_strings(column.values) and len(column.codes) == items
        yield _are_within(column.codes, len(column.values))


def _is_table(table: Table, items: int) -> bool:
    return (
        _has_strings(table.keys)
        and _divides(table.offsets, len(table.keys), len(table.rows))
        and bool((np.diff(table.offsets) > 0).all())  # each key has a row
        and _are_within(table.rows, items)
    )


def _has_strings(strings: Strings) -> bool:
    parts = len(strings.offsets) - 1
    return parts >= 0 and _divides(strings.offsets, parts, strings.text.size)


def _divides(offsets: Offsets, parts: int, size: int) -> bool:
    return bool(
        len(offsets) == parts + 1
        and offsets[0] == 0
        and offsets[-1] == size
        and (np.diff(offsets) >= 0).all()
    )


def _are_within(rows: Rows, items: int) -> bool:
    return not len(rows) or bool(rows.min() >= 0 and rows.max() < items)


def _checked(content: bytes) -> bytes:
    return crc32(content).to_bytes(4, "big") + content


def _content(data: bytes) -> memoryview:
    content = memoryview(data)[4:]
    if crc32(content).to_bytes(4, "big") != data[:4]:
        raise StoreCorruptError("The keyword snapshot is damaged; it will be built again.")
    return content


def _inconsistent() -> StoreCorruptError:
    return StoreCorruptError("The keyword snapshot contradicts itself; it will be built again.")
