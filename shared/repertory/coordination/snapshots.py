"""Snapshots: the keyword index of each collection as bytes, so that processes need not build it."""

from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from typing_extensions import override

from repertory.errors import StoreError
from repertory.files import write_atomically

if TYPE_CHECKING:
    from repertory.coordination.redis_server import RedisServer

RETENTION_S = 30 * 86_400  # after the last save: an older snapshot is of an unused collection
PIECE_SIZE = 4 << 20  # bytes sent at once: the connection's time limit applies to each piece


class SnapshotStore(Protocol):
    """Keeps the newest keyword snapshot of each collection.

    Every method raises ``StoreError`` when the store is unavailable.
    """

    def load(self, collection: str) -> bytes | None:
        """The snapshot of a collection, or None if it has none."""
        ...

    def save(self, collection: str, data: bytes) -> None:
        """Replace the snapshot of a collection at once: a reader sees the old one or the new one.

        Raises:
            StoreError: It cannot be written.
        """
        ...

    def drop(self, collection: str) -> None:
        """Delete the snapshot of a collection, if it has one."""
        ...


class FileSnapshots(SnapshotStore):
    """Snapshots as files in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @override
    def load(self, collection: str) -> bytes | None:
        try:
            return self._path(collection).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"Cannot read {self._path(collection)}: {error.strerror}.") from error

    @override
    def save(self, collection: str, data: bytes) -> None:
        path = self._path(collection)
        try:
            write_atomically(path, data)
        except OSError as error:
            raise StoreError(
                f"Cannot write {path}: {error.strerror}; make room or choose another --data-dir."
            ) from error

    @override
    def drop(self, collection: str) -> None:
        self._path(collection).unlink(missing_ok=True)

    def _path(self, collection: str) -> Path:
        return self._directory / f"{collection}.keywords"


class RedisSnapshots(SnapshotStore):
    """Snapshots in Redis: a list of pieces each, which expires."""

    def __init__(self, server: "RedisServer") -> None:
        self._server = server

    @override
    def load(self, collection: str) -> bytes | None:
        with self._server.translated():
            pieces = cast("list[bytes]", self._server.client.lrange(self._key(collection), 0, -1))
        return b"".join(pieces) or None

    @override
    def save(self, collection: str, data: bytes) -> None:
        key, whole = self._key(collection), memoryview(data)
        with self._server.translated(), self._server.client.pipeline() as transaction:
            transaction.delete(key)
            for start in range(0, len(whole), PIECE_SIZE):
                transaction.rpush(key, whole[start : start + PIECE_SIZE])
            transaction.expire(key, RETENTION_S)
            transaction.execute()

    @override
    def drop(self, collection: str) -> None:
        with self._server.translated():
            self._server.client.delete(self._key(collection))

    def _key(self, collection: str) -> str:
        return self._server.key("keywords", collection)
