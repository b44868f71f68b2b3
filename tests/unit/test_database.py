"""Errors of a SQLite file say what to do."""

from pathlib import Path

import pytest

from repertory.errors import StoreError
from repertory.system.database import Database


def test_a_full_disk_is_no_reason_to_remove_the_file(tmp_path: Path) -> None:
    """It says to make room, because a removed file would lose what it holds."""
    database = Database(tmp_path / "some.sqlite", "", "The store", "all is lost")
    full = r"some\.sqlite cannot be written: the disk is full; make room\."
    with pytest.raises(StoreError, match=full):
        _fill(database)


def _fill(database: Database) -> None:
    with database.writing() as connection:
        connection.execute("PRAGMA max_page_count = 1")
        connection.execute("CREATE TABLE a (b)")
        connection.execute("CREATE TABLE c (d)")
