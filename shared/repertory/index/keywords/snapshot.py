"""The keyword index as bytes, and the port of the place where they are kept.

A snapshot holds nothing that cannot be rebuilt from the vector store: one that is missing, of
another version or damaged is rebuilt, never repaired.
"""

import os
import threading
from pathlib import Path
from typing import NamedTuple, Protocol
from zlib import crc32

import msgspec
import numpy as np
import zstandard

from repertory.errors import StoreCorruptError, StoreError
from repertory.index.keywords.document import Entry
from repertory.index.keywords.index import KeywordIndex

# Raised when the index is built or packed differently.
VERSION = 3
LARGEST = 4 << 30  # bytes, unpacked


class _Packed(msgspec.Struct, frozen=True, array_like=True):
    version: int
    revision: int
    position: str
    entries: list[Entry]
    vocabulary: list[str]
    offsets: bytes
    rows: bytes
    weights: bytes


class Snapshot(NamedTuple):
    """A keyword index, the revision of the collection that it equals, and where its deltas go on.

    The position is empty where no deltas are followed.
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
            list(index.vocabulary),
            index.offsets.tobytes(),
            index.rows.tobytes(),
            index.weights.tobytes(),
        )
    )
    compressed = zstandard.compress(packed, level=1)
    return crc32(compressed).to_bytes(4, "big") + compressed


def unpack(data: bytes) -> Snapshot:
    """The snapshot that was packed.

    Raises:
        StoreCorruptError: The bytes are cut short, damaged, or of another version.
    """
    if crc32(data[4:]).to_bytes(4, "big") != data[:4]:
        raise StoreCorruptError("The keyword snapshot is damaged; it will be built again.")
    try:
        raw = zstandard.decompress(data[4:], max_output_size=LARGEST)
        packed = msgspec.msgpack.decode(raw, type=_Packed)
    except (zstandard.ZstdError, msgspec.MsgspecError) as error:
        raise StoreCorruptError(
            "The keyword snapshot is of another version; it will be built again."
        ) from error
    if packed.version != VERSION:
        raise StoreCorruptError(
            "The keyword snapshot is of another version; it will be built again."
        )
    index = KeywordIndex(
        packed.entries,
        packed.vocabulary,
        np.frombuffer(packed.offsets, np.int64),
        np.frombuffer(packed.rows, np.int32),
        np.frombuffer(packed.weights, np.float16),
    )
    return Snapshot(index, packed.revision, packed.position)


class SnapshotStore(Protocol):
    """Keeps the newest keyword snapshot of each collection."""

    def load(self, collection: str) -> bytes | None:
        """The snapshot of a collection, or None where there is none."""
        ...

    def save(self, collection: str, data: bytes) -> None:
        """Replace the snapshot of a collection at once: a reader sees the old one or the new one.

        Raises:
            StoreError: It cannot be written.
        """
        ...

    def drop(self, collection: str) -> None:
        """Forget the snapshot of a collection; one that is not there is passed over."""
        ...


class FileSnapshots:
    """Snapshots as files in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def load(self, collection: str) -> bytes | None:
        """The snapshot of a collection, or None where there is none."""
        try:
            return self._path(collection).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"Cannot read {self._path(collection)}: {error.strerror}.") from error

    def save(self, collection: str, data: bytes) -> None:
        """Replace the snapshot of a collection at once."""
        path = self._path(collection)
        half = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}.tmp")
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            half.write_bytes(data)
            half.replace(path)
        except OSError as error:
            half.unlink(missing_ok=True)
            raise StoreError(
                f"Cannot write {path}: {error.strerror}; make room or choose another --data-dir."
            ) from error

    def drop(self, collection: str) -> None:
        """Forget the snapshot of a collection."""
        self._path(collection).unlink(missing_ok=True)

    def _path(self, collection: str) -> Path:
        return self._directory / f"{collection}.keywords"
