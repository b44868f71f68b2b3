"""The keyword index as bytes; ``coordination.snapshots`` keeps them.

A snapshot can be rebuilt from the vector store. One that is missing, damaged or of another version
is rebuilt, never repaired.
"""

from typing import Annotated, NamedTuple
from zlib import crc32

import msgspec
import numpy as np
import zstandard
from msgspec import Meta

from repertory.errors import StoreCorruptError
from repertory.index.keywords.document import Entry
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.postings import Postings

# Raise it when the index is built or packed differently.
VERSION = 5
MAX_SIZE = 4 << 30  # bytes, unpacked


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
    """A snapshot as compressed bytes."""
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
    compressed = zstandard.compress(packed, level=1)
    return crc32(compressed).to_bytes(4, "big") + compressed


def unpack(data: bytes) -> Snapshot:
    """Read a snapshot that ``pack`` returned.

    Raises:
        StoreCorruptError: The bytes are truncated, damaged, or of another version.
    """
    if crc32(data[4:]).to_bytes(4, "big") != data[:4]:
        raise StoreCorruptError("The keyword snapshot is damaged; it will be built again.")
    try:
        raw = zstandard.decompress(data[4:], max_output_size=MAX_SIZE)
        packed = msgspec.msgpack.decode(raw, type=_Packed)
    except (zstandard.ZstdError, msgspec.MsgspecError) as error:
        raise StoreCorruptError(
            "The keyword snapshot is of another version; it will be built again."
        ) from error
    postings = Postings(
        packed.vocabulary,
        np.frombuffer(packed.offsets, np.int64),
        np.frombuffer(packed.rows, np.int32),
        np.frombuffer(packed.weights, np.float16),
    )
    return Snapshot(KeywordIndex(packed.entries, postings), packed.revision, packed.position)
