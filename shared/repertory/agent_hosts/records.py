"""Records of changed configurations, used to undo the changes: one small file for each."""

import hashlib
import os
from pathlib import Path

import msgspec

from repertory.data_directory import CONNECTED
from repertory.system.files import read_json, write_json

BACKUP = ".repertory-backup"  # suffix of a configuration's backup


class Record(msgspec.Struct, frozen=True):
    """A configuration before and after Repertory changed it.

    Attributes:
        path: The configuration.
        before: The SHA-256 of the file before the change; empty if it was missing.
        after: The SHA-256 of the file after the change.
        made: The folders that were created for the file, the outermost first.
    """

    path: str
    before: str
    after: str
    made: list[str] = []


class Records:
    """The records in a data directory."""

    def __init__(self, data: Path) -> None:
        self.folder = data / CONNECTED

    def of(self, path: Path) -> Record | None:
        """The record of a configuration; None if it is missing or unreadable."""
        return read_json(self._file(path), Record)

    def keep(self, record: Record) -> None:
        """Write a record.

        Raises:
            StoreError: The data directory cannot be written.
        """
        write_json(self._file(Path(record.path)), record)

    def drop(self, path: Path) -> None:
        """Remove a record, if there is one."""
        self._file(path).unlink(missing_ok=True)

    def _file(self, path: Path) -> Path:
        key = hashlib.sha256(os.fsencode(os.path.abspath(path))).hexdigest()[:16]  # noqa: PTH100 - keeps links
        return self.folder / f"{key}.json"


def backup_of(path: Path) -> Path:
    """The path of a configuration's backup."""
    return path.with_name(path.name + BACKUP)
