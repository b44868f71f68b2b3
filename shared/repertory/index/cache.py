"""The vector cache: computed vectors, by model and text.

It lets no text be embedded twice, because vectors stay when items, collections and configurations
change. A file keeps the newest ``MAX_VECTORS``, because a server may send ever new texts.
"""

import contextlib
import hashlib
import json
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from typing_extensions import override

from repertory.embedding.models import Model
from repertory.errors import StoreBusyError, StoreCorruptError, StoreError
from repertory.system.database import make_file
from repertory.system.files import PRIVATE, identity, make_private

Vector = NDArray[np.float32]

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

# Per file; with 384 numbers each, they take about 8 GB. The oldest are deleted first.
MAX_VECTORS = 5_000_000

_CHUNK = 500  # keys per statement
_TIMEOUT_S = 30.0  # the wait while another process writes
_OPENING = (
    "PRAGMA page_size = 8192",  # fits five vectors of 384 numbers; the default wastes a quarter
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",  # survives kill -9; a power loss may undo the last writes
    "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)",
)
# Every written row gets a new highest rowid.
_FORGET = "DELETE FROM vectors WHERE rowid <= (SELECT max(rowid) FROM vectors) - ?"
_LOG = ("-wal", "-shm")  # the suffixes of a database's log and of the log's index
# Not a database, a damaged one, or one with different tables.
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}


class VectorCache(Protocol):
    """Vectors by key. Several processes and threads may use one cache at once.

    Every method raises ``StoreError`` if the cache cannot be read or written. A damaged cache is
    replaced, because losing it only costs time.
    """

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        """The stored vectors by key, without missing ones; repeated keys are allowed."""
        ...

    def put(self, vectors: Mapping[bytes, Vector]) -> None:
        """Store vectors; existing ones are replaced. After an error, some may have been stored."""
        ...

    def count(self) -> int:
        """The number of vectors."""
        ...

    def close(self) -> None:
        """Close the cache. Closing twice is allowed."""
        ...


def vector_key(model: Model, text: str) -> bytes:
    """The key of a text's vector: SHA-256 over everything that the vector depends on.

    Queries are not cached, because the model's query prefix is not part of the key.
    """
    digest = _model_digest(model).copy()
    digest.update(text.encode("utf-8", "surrogatepass"))
    return digest.digest()


@lru_cache(maxsize=16)
def _model_digest(model: Model) -> "hashlib._Hash":
    # JSON has no NUL, so the NUL separates model and text unambiguously.
    facts = [model.id, model.slug, model.dimension, model.max_tokens, model.pooling]
    return hashlib.sha256(json.dumps(facts).encode() + b"\0")


class SqliteVectorCache(VectorCache):
    """A cache in one SQLite file, for vectors of one length; others are ignored."""

    def __init__(self, path: Path, dimension: int) -> None:
        """Open the file, or create it and its parent folders.

        Args:
            path: The file. If it is corrupt, now or later, it is renamed to ``<name>.corrupt-<n>``
                with a warning, and replaced by a new file.
            dimension: The length of the vectors. Several models may share a file.

        Raises:
            StoreError: It can be neither opened nor created.
        """
        self._path = path
        self._size = 4 * dimension
        self._lock = threading.Lock()  # a connection serves one thread at a time
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None  # the identity of the connection's file
        self._closed = False
        self._run(lambda _: None)

    @override
    def get(self, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        return self._run(lambda connection: dict(self._select(connection, keys)))

    @override
    def put(self, vectors: Mapping[bytes, Vector]) -> None:
        """Store all vectors or none; existing ones are replaced."""
        rows = [(key, np.asarray(vector, "<f4").tobytes()) for key, vector in vectors.items()]
        assert all(len(blob) == self._size for _, blob in rows), "vectors of another model"

        def write(connection: sqlite3.Connection) -> None:
            with connection:
                connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
                connection.execute(_FORGET, [MAX_VECTORS])

        self._run(write)

    @override
    def count(self) -> int:
        """The number of vectors, including those of other models."""
        count = "SELECT count(*) FROM vectors"
        return self._run(lambda connection: int(connection.execute(count).fetchone()[0]))

    @override
    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._disconnect()

    def _select(
        self, connection: sqlite3.Connection, keys: Sequence[bytes]
    ) -> Iterator[tuple[bytes, Vector]]:
        for start in range(0, len(keys), _CHUNK):
            chunk = keys[start : start + _CHUNK]
            marks = ",".join("?" * len(chunk))
            query = f"SELECT key, vector FROM vectors WHERE key IN ({marks})"  # noqa: S608  # only marks
            for key, blob in connection.execute(query, chunk):
                if len(blob) == self._size:
                    yield key, np.frombuffer(blob, "<f4").astype(np.float32, copy=False)

    def _run(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Run ``work`` on the file; if that is corrupt, on a new file."""
        with self._lock:
            if self._closed:
                raise StoreError(f"The vector cache {self._path} has been closed.")
            try:
                with _translated(self._path):
                    return work(self._connected())
            except StoreCorruptError as exc:
                self._disconnect()
                with _translated(self._path):
                    self._set_aside(exc)
                    return work(self._connected())

    def _connected(self) -> sqlite3.Connection:
        if self._connection is not None and identity(str(self._path)) != self._file:
            self._disconnect()  # the file was removed, or another process has renamed it
        if self._connection is None:
            self._make()
            self._file = identity(str(self._path))
            with contextlib.ExitStack() as stack:
                connection = sqlite3.connect(
                    self._path, timeout=_TIMEOUT_S, check_same_thread=False
                )
                stack.callback(connection.close)
                for statement in _OPENING:
                    connection.execute(statement)
                stack.pop_all()
            self._connection = connection
        return self._connection

    def _make(self) -> None:
        """Create the file if it is missing, and remove the log of an earlier file.

        Other processes may still have that file open, and SQLite would apply its log to the new
        one.
        """
        make_private(self._path.parent)
        if self._path.exists():
            return
        with self._locked():
            if not self._path.exists():
                for suffix in _LOG:
                    Path(f"{self._path}{suffix}").unlink(missing_ok=True)
                make_file(self._path)

    def _locked(self) -> FileLock:
        """The lock for creating or renaming the file."""
        return FileLock(f"{self._path}.lock", timeout=_TIMEOUT_S, mode=PRIVATE)

    def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):  # a corrupt file may fail even here
                self._connection.close()
            self._connection = None

    def _set_aside(self, reason: StoreCorruptError) -> None:
        """Rename the corrupt file, unless another process has already done so."""
        with self._locked():
            if identity(str(self._path)) not in (None, self._file):
                return
            names = (self._path.with_name(f"{self._path.name}.corrupt-{n}") for n in count(1))
            aside = next(name for name in names if not name.exists())
            # Rename the log first, or SQLite would apply the old log to a new file.
            for suffix in (*_LOG, ""):
                with contextlib.suppress(FileNotFoundError):
                    Path(f"{self._path}{suffix}").rename(f"{aside}{suffix}")
        extra = {"error": str(reason), "set_aside": str(aside)}
        _log.warning("vector_cache_replaced", extra=extra)


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Translate the exceptions of SQLite and the file system."""
    try:
        yield
    except sqlite3.Error as exc:
        code = getattr(exc, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # the primary code
        if code in _CORRUPT:
            raise StoreCorruptError(f"The vector cache {path} is corrupt ({exc}).") from exc
        if code == sqlite3.SQLITE_FULL:
            raise StoreError(f"The disk of {path} is full: make room and try again.") from exc
        if code == sqlite3.SQLITE_BUSY:
            raise StoreBusyError(f"Another process keeps writing {path}: try again.") from exc
        raise StoreError(
            f"The vector cache {path} cannot be used ({exc}): "
            "make its directory writable, or choose another data directory."
        ) from exc
    except OSError as exc:
        raise StoreError(
            f"The vector cache {path} cannot be used ({exc.strerror or exc}): "
            "make its directory writable, or choose another data directory."
        ) from exc
