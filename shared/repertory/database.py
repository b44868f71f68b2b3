"""SQLite files that only the user can read, opened for one task each."""

import contextlib
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path

from repertory.errors import StoreError
from repertory.files import PRIVATE, make_private, unwritable

TIMEOUT_S = 10.0  # while another process writes


def make_file(path: Path) -> None:
    """Make a file, and its folder, if it is missing. SQLite gives its journals the same mode.

    Raises:
        OSError: It cannot be made.
    """
    make_private(path.parent)
    path.touch(mode=PRIVATE)


class Database:
    """A SQLite file. Every method raises ``StoreError`` if it cannot be used.

    Args:
        path: The file. It is made at the first write.
        schema: Makes the tables that are missing.
        name: The subject of an error.
        loss: What follows if a damaged file is removed, as a clause.
    """

    def __init__(self, path: Path, schema: str, name: str, loss: str) -> None:
        self._path = path
        self._schema = schema
        self._name = name
        self._loss = loss

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection; without a file to an empty database. What is not committed is lost."""
        with self.translated():
            place = self._path if self._path.exists() else ":memory:"
            connection = sqlite3.connect(place, timeout=TIMEOUT_S, isolation_level=None)
            with contextlib.closing(connection):
                connection.executescript(self._schema)
                yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction, which is lost if the block raises."""
        with self.translated():
            make_file(self._path)
            with self.reading() as connection:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")

    @contextlib.contextmanager
    def translated(self) -> Iterator[None]:
        """Errors of SQLite, of the disk, and of values that cannot be read, as ``StoreError``."""
        try:
            yield
        except (sqlite3.Error, zlib.error, ValueError) as error:
            raise StoreError(
                f"{self._name} {self._path} cannot be used ({error}). If it is damaged, remove it: "
                f"{self._loss}."
            ) from error
        except OSError as error:
            raise unwritable(self._path, error) from error


def damage(path: Path) -> str:
    """Why a database cannot be read to its last page; empty if it can."""
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=TIMEOUT_S)) as connection:
            found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        return str(error)
    return "" if found == "ok" else found
