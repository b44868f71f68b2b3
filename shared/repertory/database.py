"""SQLite files that only the user can read, opened for one task each."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from repertory.files import PRIVATE, make_private

TIMEOUT_S = 10.0  # while another process writes


def make_file(path: Path) -> None:
    """Make a file, and its folder, if it is missing. SQLite gives its journals the same mode.

    Raises:
        OSError: It cannot be made.
    """
    make_private(path.parent)
    path.touch(mode=PRIVATE)


@contextlib.contextmanager
def connected(path: Path | None, schema: str) -> Iterator[sqlite3.Connection]:
    """A connection to a database, an empty one without a path. What is not committed is lost.

    Raises:
        sqlite3.Error: It cannot be used.
    """
    connection = sqlite3.connect(path or ":memory:", timeout=TIMEOUT_S, isolation_level=None)
    with contextlib.closing(connection):
        connection.executescript(schema)
        yield connection


@contextlib.contextmanager
def transaction(path: Path, schema: str) -> Iterator[sqlite3.Connection]:
    """A transaction on a database, which is made if it is missing.

    Raises:
        OSError: It cannot be made.
        sqlite3.Error: It cannot be used.
    """
    make_file(path)
    with connected(path, schema) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("COMMIT")


def damage(path: Path) -> str:
    """Why a database cannot be read to its last page; empty if it can."""
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=TIMEOUT_S)) as connection:
            found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        return str(error)
    return "" if found == "ok" else found
