"""The byte format of points and cached vectors: frames with a length prefix, then a zero length.

A point is encoded as MessagePack. Backups and the export of a running server use this format, which
is the same for all stores. Readers treat the bytes as untrusted.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from uuid import UUID

import msgspec
import numpy as np

from repertory.catalogue.item import item_key, point_id
from repertory.errors import StoreCorruptError
from repertory.index.cache import Vector
from repertory.index.layout import Fields
from repertory.index.vectors import Point

MAX_FRAME = 64 * 2**20  # bytes; items have a few megabytes at most
MAX_DIMENSION = 1 << 16

_LENGTH = struct.Struct(">L")
_END = _LENGTH.pack(0)
_NUMBERS = "<f4"
_KEY = 32  # bytes of a key of the vector cache

Read = Callable[[int], bytes]  # the next bytes, up to the given number; empty at the end


class _Frame(Fields, frozen=True, kw_only=True):
    id: bytes
    vector: bytes


def of_points(points: Iterable[Point]) -> Iterator[bytes]:
    """Encode points as frames."""
    for point in points:
        fields = {name: getattr(point, name) for name in Fields.__struct_fields__}
        vector = point.vector.astype(_NUMBERS, copy=False).tobytes()
        data = msgspec.msgpack.encode({**fields, "id": point.id.bytes, "vector": vector})
        yield _LENGTH.pack(len(data)) + data
    yield _END


def points(read: Read, shown: str) -> Iterator[Point]:
    """Decode points from frames.

    Args:
        read: Reads the next bytes.
        shown: The origin of the bytes, for messages.

    Raises:
        StoreCorruptError: The frames are damaged or truncated, or a point is invalid.
    """
    decoder = msgspec.msgpack.Decoder(_Frame)
    dimension = 0
    for data in _frames(read, shown):
        try:
            frame = decoder.decode(data)
            number = UUID(bytes=frame.id)
            vector = _vector(frame.vector, dimension)
        except ValueError as error:
            raise _damaged(shown, error) from error
        if number != _id_of(frame):
            raise _damaged(shown, "an id that is not its item's")
        dimension = len(vector)
        fields = {name: getattr(frame, name) for name in Fields.__struct_fields__}
        yield Point(id=number, vector=vector, **fields)


def of_vectors(vectors: Iterable[tuple[bytes, Vector]]) -> Iterator[bytes]:
    """Encode the keys and vectors of a cache as frames."""
    for key, vector in vectors:
        data = key + vector.astype(_NUMBERS, copy=False).tobytes()
        yield _LENGTH.pack(len(data)) + data
    yield _END


def vectors(read: Read, shown: str) -> Iterator[tuple[bytes, Vector]]:
    """Decode the keys and vectors of a cache from frames. Raises the same errors as ``points``."""
    dimension = 0
    for data in _frames(read, shown):
        try:
            vector = _vector(data[_KEY:], dimension)
        except ValueError as error:
            raise _damaged(shown, error) from error
        dimension = len(vector)
        yield data[:_KEY], vector


def _frames(read: Read, shown: str) -> Iterator[bytes]:
    while size := _LENGTH.unpack(_exactly(read, _LENGTH.size, shown))[0]:
        if size > MAX_FRAME:
            raise _damaged(shown, f"an entry of {size:,} bytes")
        yield _exactly(read, size, shown)
    if read(1):
        raise _damaged(shown, "more after the end")


def _exactly(read: Read, size: int, shown: str) -> bytes:
    data = bytearray()
    while len(data) < size:
        if not (more := read(size - len(data))):
            raise _damaged(shown, "it is cut off")
        data += more
    return bytes(data)


def _vector(data: bytes, dimension: int) -> Vector:
    """Decode a vector.

    Args:
        data: Its bytes.
        dimension: The expected dimension; 0 if any is allowed.

    Raises:
        ValueError: The dimension is wrong, or a number is not finite.
    """
    found = np.frombuffer(data, _NUMBERS).astype(np.float32)
    if not 0 < len(found) <= MAX_DIMENSION or (dimension and len(found) != dimension):
        raise ValueError(f"a vector of {len(found):,} numbers")
    if not np.isfinite(found).all():
        raise ValueError("a vector with a number that is not finite")
    return found


def _id_of(frame: _Frame) -> UUID | None:
    section = frame.section
    if section is not None and not 0 <= section < 2**32 - 1:
        return None
    return point_id(item_key(frame.item), section)


def _damaged(shown: str, why: object) -> StoreCorruptError:
    return StoreCorruptError(f"{shown} is damaged: {why}.")
