"""The keyword index as bytes; ``coordination.snapshots`` keeps them.

A snapshot can be rebuilt from the vector store. One that is missing, damaged or of another version
is rebuilt, never repaired.
"""

from typing import Annotated, NamedTuple
from zlib import crc32

import msgspec
import numpy as np
from msgspec import Meta

from repertory.errors import StoreCorruptError
from repertory.index.keywords.document import Entry
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.postings import Postings

# Raise it when the index is built or packed differently.
VERSION = 7


class _Packed(msgspec.Struct, frozen=True, array_like=True):
    version: Annotated[int, Meta(ge=VERSION, le=VERSION)]
    revision: int
    position: str
    entries: list[Entry]
    vocabulary: list[str]
    offsets: bytes
    rows: bytes
    weights: bytes


class Snapshot(NamedTuple):
    """A keyword index, the revision of its collection, and the position of the next delta.

    The position is empty if no deltas are followed.
    """

    keywords: KeywordIndex
    revision: int
    position: str = ""


def pack(index: KeywordIndex, revision: int, position: str = "") -> bytes:
    """A snapshot as bytes; they are not compressed, so that a search reads them sooner."""
    packed = msgspec.msgpack.encode(
        _Packed(
            VERSION,
            revision,
            position,
            list(index.entries),
            list(index.postings.vocabulary),
            index.postings.offsets.tobytes(),
            index.postings.rows.tobytes(),
            index.postings.weights.tobytes(),
        )
    )
    return crc32(packed).to_bytes(4, "big") + packed


def unpack(data: bytes) -> Snapshot:
    """Read a snapshot that ``pack`` returned.

    Raises:
        StoreCorruptError: The bytes are truncated, damaged, or of another version.
    """
    content = memoryview(data)[4:]
    if crc32(content).to_bytes(4, "big") != data[:4]:
        raise StoreCorruptError("The keyword snapshot is damaged; it will be built again.")
    try:
        packed = msgspec.msgpack.decode(content, type=_Packed)
    except msgspec.MsgspecError as error:
        raise StoreCorruptError(
            "The keyword snapshot is of another version; it will be built again."
        ) from error
    try:
        postings = Postings(
            packed.vocabulary,
            np.frombuffer(packed.offsets, np.int64),
            np.frombuffer(packed.rows, np.int32),
            np.frombuffer(packed.weights, np.float16),
        )
    except ValueError as error:  # a part of a number
        raise _inconsistent() from error
    if not _is_consistent(postings, len(packed.entries)):
        raise _inconsistent()
    return Snapshot(KeywordIndex(packed.entries, postings), packed.revision, packed.position)


def _is_consistent(postings: Postings, items: int) -> bool:
    """Whether all places in it exist: the checksum says nothing about who made a snapshot."""
    offsets, rows = postings.offsets, postings.rows
    return bool(
        len(offsets) == len(postings.vocabulary) + 1
        and offsets[0] == 0
        and offsets[-1] == len(rows) == len(postings.weights)
        and (np.diff(offsets) >= 0).all()
        and (not len(rows) or (rows.min() >= 0 and rows.max() < items))
    )


def _inconsistent() -> StoreCorruptError:
    return StoreCorruptError("The keyword snapshot contradicts itself; it will be built again.")
