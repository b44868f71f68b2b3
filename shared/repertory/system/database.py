"""SQLite files that only the user can read, with a new connection for each task."""

import contextlib
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path

from repertory.errors import StoreError
from repertory.system.files import PRIVATE, is_there, make_private, unwritable

TIMEOUT_S = 10.0  # for another process that writes


def make_file(path: Path) -> None:
    """Create a file and its folder if missing. SQLite gives its journals the same mode.

    Raises:
        OSError: The file cannot be created.
    """
    make_private(path.parent)
    path.touch(mode=PRIVATE)


class Database:
    """A SQLite file. Every method raises ``StoreError`` if it cannot be used.

    Args:
        path: The file. It is created at the first write.
        schema: SQL that creates missing tables.
        name: The subject of error messages.
        loss: A clause for error messages: the consequence of removing a damaged file.
    """

    def __init__(self, path: Path, schema: str, name: str, loss: str) -> None:
        self._path = path
        self._schema = schema
        self._name = name
        self._loss = loss

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection, to an empty database if there is no file; uncommitted changes are lost."""
        with self.translated():
            place = self._path if is_there(self._path) else ":memory:"
            connection = sqlite3.connect(place, timeout=TIMEOUT_S, isolation_level=None)
            with contextlib.closing(connection):
                connection.executescript(self._schema)
                yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction, which is rolled back if the block raises."""
        with self.translated():
            make_file(self._path)
            with self.reading() as connection:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")

    @contextlib.contextmanager
    def translated(self) -> Iterator[None]:
        """Translate errors of SQLite, the disk and unreadable values into ``StoreError``."""
        try:
            yield
        except (sqlite3.Error, zlib.error, ValueError) as error:
            raise StoreError(f"{self._name} {self._path} {self._trouble(error)}") from error
        except OSError as error:
            raise unwritable(self._path, error) from error

    def _trouble(self, error: Exception) -> str:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            return "cannot be written: the disk is full; make room."
        return f"cannot be used ({error}). If it is damaged, remove it: {self._loss}."


def damage(path: Path) -> str:
    """Why a database fails an integrity check of all its pages; empty if it passes."""
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=TIMEOUT_S)) as connection:
            found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        return str(error)
    return "" if found == "ok" else found
