"""Snapshots: the keyword index of each collection as bytes, so that processes need not build it.

A snapshot has a head and segments. A segment never changes, so only new ones are written.
"""

import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, Protocol, cast

import msgspec
from filelock import FileLock
from msgspec import Meta
from typing_extensions import override

from repertory.errors import StoreError
from repertory.system.files import PRIVATE, make_private, unwritable, write_atomically

if TYPE_CHECKING:
    from redis.client import Pipeline, Redis

    from repertory.coordination.redis_server import RedisServer

RETENTION_S = 30 * 86_400  # after the last save: an older snapshot belongs to an unused collection
UNUSED_S = 3_600  # lifetime of pieces that no snapshot uses yet: their process may be killed
PIECE_SIZE = 4 << 20  # bytes sent at once: the connection's time limit applies to each piece
MAX_PIECES = 10_000  # per snapshot; the stored number is not trusted
LOCK_TIMEOUT_S = 30.0  # while another process saves

_HEAD, _LOCK = "head", ".lock"  # files of a snapshot

Segments = Mapping[str, Callable[[], bytes]]


class Stored(NamedTuple):
    """A snapshot: its head, and its segments by name."""

    head: bytes
    segments: Mapping[str, bytes]


class _Manifest(msgspec.Struct, frozen=True, array_like=True):
    """The stored head of a snapshot, and the number of pieces of each segment."""

    head: bytes
    segments: dict[str, Annotated[int, Meta(ge=0)]]


class SnapshotStore(Protocol):
    """Keeps the newest keyword snapshot of each collection.

    Every method raises ``StoreError`` when the store is unavailable.
    """

    def load(self, collection: str) -> Stored | None:
        """The snapshot of a collection, or None if it has none."""
        ...

    def save(self, collection: str, head: bytes, segments: Segments) -> None:
        """Replace the snapshot of a collection atomically: readers see the old or the new one.

        Args:
            collection: The collection.
            head: Names the segments; its format is opaque to the store.
            segments: A function per segment that packs it; called if it is not stored yet.

        Raises:
            StoreError: It cannot be written.
        """
        ...

    def drop(self, collection: str) -> None:
        """Delete the snapshot of a collection, if it has one."""
        ...


class FileSnapshots(SnapshotStore):
    """Snapshots as a directory each, with a file for the head and each segment."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @override
    def load(self, collection: str) -> Stored | None:
        folder = self._path(collection)
        try:
            while (manifest := _read(folder)) is not None:
                try:
                    segments = {name: (folder / name).read_bytes() for name in manifest.segments}
                except FileNotFoundError:
                    if _read(folder) == manifest:
                        return None  # it was damaged, not replaced meanwhile
                else:
                    return Stored(manifest.head, segments)
        except OSError as error:
            raise StoreError(f"Cannot read {folder}: {error.strerror}.") from error
        return None

    @override
    def save(self, collection: str, head: bytes, segments: Segments) -> None:
        folder = self._path(collection)
        try:
            if folder.is_file():  # written by an earlier version
                folder.unlink()
            make_private(folder)
            with FileLock(folder / _LOCK, timeout=LOCK_TIMEOUT_S, mode=PRIVATE):
                for name, packed in segments.items():
                    if not (folder / name).exists():
                        write_atomically(folder / name, packed())
                manifest = _Manifest(head, dict.fromkeys(segments, 1))
                write_atomically(folder / _HEAD, msgspec.msgpack.encode(manifest))
                for path in folder.iterdir():
                    if path.name not in (_HEAD, _LOCK, *segments):
                        path.unlink(missing_ok=True)
        except (OSError, TimeoutError) as error:
            raise unwritable(folder, error) from error

    @override
    def drop(self, collection: str) -> None:
        folder = self._path(collection)
        try:
            if folder.is_file():  # written by an earlier version
                folder.unlink()
            (folder / _HEAD).unlink(missing_ok=True)  # without it there is no snapshot
        except OSError as error:
            raise unwritable(folder, error) from error
        shutil.rmtree(folder, ignore_errors=True)

    def _path(self, collection: str) -> Path:
        return self._directory / f"{collection}.keywords"


class RedisSnapshots(SnapshotStore):
    """Snapshots in Redis: keys for the head and for each piece of a segment; all of them expire."""

    def __init__(self, server: "RedisServer") -> None:
        self._server = server

    @override
    def load(self, collection: str) -> Stored | None:
        client, key = self._server.client, self._key(collection)
        with self._server.translated():
            while (data := cast("bytes | None", client.get(key))) is not None:
                manifest = _decoded(data)
                if manifest is None:
                    return None
                segments = {}
                for name, pieces in manifest.segments.items():
                    held = [client.get(self._piece(collection, name, at)) for at in range(pieces)]
                    if None not in held:
                        segments[name] = b"".join(cast("list[bytes]", held))
                if len(segments) == len(manifest.segments):
                    return Stored(manifest.head, segments)
                if client.get(key) == data:
                    return None  # it was damaged, not replaced meanwhile
        return None

    @override
    def save(self, collection: str, head: bytes, segments: Segments) -> None:
        key = self._key(collection)
        packed: dict[str, bytes] = {}

        def replace(transaction: "Pipeline") -> None:
            is_ours = transaction.type(key) == b"string"  # other types are overwritten
            data = cast("bytes", transaction.get(key)) if is_ours else b""
            before = _decoded(data) or _Manifest(b"", {})
            pieces = {}
            for name, pack in segments.items():
                if name in before.segments and self._is_whole(collection, name, before):
                    pieces[name] = before.segments[name]
                else:
                    packed[name] = packed.get(name) or pack()
                    pieces[name] = self._write(collection, name, packed[name])
            transaction.multi()
            transaction.set(key, msgspec.msgpack.encode(_Manifest(head, pieces)), ex=RETENTION_S)
            for name, count in pieces.items():
                for at in range(count):
                    transaction.expire(self._piece(collection, name, at), RETENTION_S)
            gone = {name: before.segments[name] for name in before.segments.keys() - pieces}
            self._delete(transaction, collection, gone)

        try:
            with self._server.translated():
                self._server.client.transaction(replace, key)
        except StoreError:
            with suppress(StoreError):  # they expire
                self._delete_unused(collection, packed)
            raise

    def _delete_unused(self, collection: str, packed: Mapping[str, bytes]) -> None:
        """Delete pieces that no snapshot uses, because they may have filled the Redis memory."""
        with self._server.translated():
            data = cast("bytes | None", self._server.client.get(self._key(collection)))
            used = _decoded(data or b"") or _Manifest(b"", {})
            unused = {
                name: -(-len(content) // PIECE_SIZE)
                for name, content in packed.items()
                if name not in used.segments
            }
            self._delete(self._server.client, collection, unused)

    @override
    def drop(self, collection: str) -> None:
        key = self._key(collection)
        with self._server.translated():
            data = cast("bytes | None", self._server.client.getdel(key))
            manifest = _decoded(data or b"") or _Manifest(b"", {})
            self._delete(self._server.client, collection, manifest.segments)

    def _write(self, collection: str, name: str, data: bytes) -> int:
        """Write the pieces of a segment, to which nothing refers yet, and return their number."""
        whole = memoryview(data)
        starts = range(0, len(whole), PIECE_SIZE)
        for at, start in enumerate(starts):
            piece = bytes(whole[start : start + PIECE_SIZE])
            self._server.client.set(self._piece(collection, name, at), piece, ex=UNUSED_S)
        return len(starts)

    def _is_whole(self, collection: str, name: str, manifest: _Manifest) -> bool:
        """Whether Redis still has all pieces: it may have evicted some."""
        keys = [self._piece(collection, name, at) for at in range(manifest.segments[name])]
        return bool(keys) and self._server.client.exists(*keys) == len(keys)

    def _delete(
        self, client: "Redis | Pipeline", collection: str, segments: Mapping[str, int]
    ) -> None:
        for name, pieces in segments.items():
            for at in range(pieces):
                client.delete(self._piece(collection, name, at))

    def _key(self, collection: str) -> str:
        return self._server.key("words", collection)

    def _piece(self, collection: str, name: str, at: int) -> str:
        return self._server.key("words", collection, name, str(at))


def _read(folder: Path) -> _Manifest | None:
    """The manifest of a directory; None if it is missing or unreadable."""
    try:
        return _decoded((folder / _HEAD).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None


def _decoded(data: bytes) -> _Manifest | None:
    try:
        found = msgspec.msgpack.decode(data, type=_Manifest)
    except (msgspec.MsgspecError, RecursionError):
        return None  # written by another version, or damaged
    return found if sum(found.segments.values()) <= MAX_PIECES else None
