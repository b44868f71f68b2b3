"""The vector cache: every computed vector, by the model and the text that it was computed from.

No text is embedded twice: its vector stays here when items, collections and configurations change.
A file keeps the newest ``MAX_VECTORS``: a server may invent texts without end.
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

from repertory.database import make_file
from repertory.embedding.models import Model
from repertory.errors import StoreBusyError, StoreCorruptError, StoreError
from repertory.files import PRIVATE, identity, make_private

Vector = NDArray[np.float32]

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

MAX_VECTORS = 5_000_000  # of a file, about 8 GB of those of 384 numbers; the oldest go first

_CHUNK = 500  # keys of one statement
_TIMEOUT_S = 30.0  # while another process writes
_OPENING = (
    "PRAGMA page_size = 8192",  # five vectors of 384 numbers fill one; the default wastes a quarter
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",  # safe from kill -9 at once, from power loss a little later
    "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)",
)
# Each row that is written has a larger number than those before it.
_FORGET = "DELETE FROM vectors WHERE rowid <= (SELECT max(rowid) FROM vectors) - ?"
_LOG = ("-wal", "-shm")  # of a database, and the index of that
# No database, a damaged one, or one with a table of another make.
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}


class VectorCache(Protocol):
    """Vectors by key. Several processes and threads may use one cache at once.

    Every method raises ``StoreError`` when the cache cannot be read or written. Losing it costs
    time and nothing else, so a damaged cache is replaced instead of failing.
    """

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        """The stored vectors of these keys; repeated keys are allowed."""
        ...

    def put(self, vectors: Mapping[bytes, Vector]) -> None:
        """Store vectors; existing ones are replaced. A failure may have stored some."""
        ...

    def count(self) -> int:
        """The number of vectors."""
        ...

    def close(self) -> None:
        """Close the cache. Closing twice is allowed."""
        ...


def vector_key(model: Model, text: str) -> bytes:
    """The address of a stored text's vector: SHA-256 over all that the vector depends on.

    Queries are not stored: they carry the model's query prefix, which is not part of the address.
    """
    digest = _model_digest(model).copy()
    digest.update(text.encode("utf-8", "surrogatepass"))
    return digest.digest()


@lru_cache(maxsize=16)
def _model_digest(model: Model) -> "hashlib._Hash":
    # JSON holds no NUL, so no part of a text can be taken for a part of the model.
    facts = [model.id, model.slug, model.dimension, model.max_tokens, model.pooling]
    return hashlib.sha256(json.dumps(facts).encode() + b"\0")


class SqliteVectorCache(VectorCache):
    """The cache as one SQLite file, for vectors of one length; others are skipped."""

    def __init__(self, path: Path, dimension: int) -> None:
        """Open the file, or make it and the folders above it.

        Args:
            path: The file. A corrupt one, now or later, is set aside as ``<name>.corrupt-<n>``
                with a warning, and replaced by a new one.
            dimension: The length of the vectors. Several models may share a file.

        Raises:
            StoreError: It can be neither opened nor made.
        """
        self._path = path
        self._size = 4 * dimension
        self._lock = threading.Lock()  # a connection serves one thread at a time
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None  # that the connection was opened on
        self._closed = False
        self._run(lambda _: None)

    @override
    def get(self, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        return self._run(lambda connection: dict(self._select(connection, keys)))

    @override
    def put(self, vectors: Mapping[bytes, Vector]) -> None:
        """Store vectors, all or none of them; existing ones are replaced."""
        rows = [(key, np.asarray(vector, "<f4").tobytes()) for key, vector in vectors.items()]
        assert all(len(blob) == self._size for _, blob in rows), "vectors of another model"

        def write(connection: sqlite3.Connection) -> None:
            with connection:
                connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
                connection.execute(_FORGET, [MAX_VECTORS])

        self._run(write)

    @override
    def count(self) -> int:
        """The number of vectors, those of other models included."""
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
        """Do some work on the file; if it is corrupt, on a new one."""
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
            self._disconnect()  # it was removed, or another process has set it aside
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
        """Make the file if it is missing, without the log of one that was removed.

        Other processes may have that open: SQLite would use its log with the new file.
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
        """The right to make the file, or to set it aside."""
        return FileLock(f"{self._path}.lock", timeout=_TIMEOUT_S, mode=PRIVATE)

    def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):  # a corrupt file may fail even here
                self._connection.close()
            self._connection = None

    def _set_aside(self, reason: StoreCorruptError) -> None:
        """Rename the corrupt file, unless another process has done so already."""
        with self._locked():
            if identity(str(self._path)) not in (None, self._file):
                return
            names = (self._path.with_name(f"{self._path.name}.corrupt-{n}") for n in count(1))
            aside = next(name for name in names if not name.exists())
            # The log goes first: SQLite would apply an old log to a new file beside it.
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
        code = getattr(exc, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # without its details
        if code in _CORRUPT:
            raise StoreCorruptError(f"The vector cache {path} is corrupt ({exc}).") from exc
        if code == sqlite3.SQLITE_FULL:
            raise StoreError(f"The disk of {path} is full: make room and try again.") from exc
        if code == sqlite3.SQLITE_BUSY:
            raise StoreBusyError(f"Another process keeps on writing {path}: try again.") from exc
        raise StoreError(
            f"The vector cache {path} cannot be used ({exc}): "
            "make its directory writable, or choose another data directory."
        ) from exc
    except OSError as exc:
        raise StoreError(
            f"The vector cache {path} cannot be used ({exc.strerror or exc}): "
            "make its directory writable, or choose another data directory."
        ) from exc
