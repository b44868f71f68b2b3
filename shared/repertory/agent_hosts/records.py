"""What connecting has changed, so that it can be undone: one small file for each configuration."""

import hashlib
import os
from pathlib import Path

import msgspec

from repertory.files import read_json, write_json

BACKUP = ".repertory-backup"  # after the name of a configuration


class Record(msgspec.Struct, frozen=True):
    """How a configuration was before Repertory wrote to it.

    Attributes:
        path: The configuration.
        before: The SHA-256 of its bytes then; empty if there was no file.
        after: The SHA-256 of its bytes afterwards.
        made: The folders that were made for it, the outermost first.
    """

    path: str
    before: str
    after: str
    made: list[str] = []


class Records:
    """The records in a data directory."""

    def __init__(self, data: Path) -> None:
        self.folder = data / "connected"

    def of(self, path: Path) -> Record | None:
        """The record of a configuration; None without a readable one."""
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
        key = hashlib.sha256(os.fsencode(os.path.abspath(path))).hexdigest()[:16]  # noqa: PTH100 - a link stays
        return self.folder / f"{key}.json"


def backup_of(path: Path) -> Path:
    """Where the bytes of a configuration are kept that it had before."""
    return path.with_name(path.name + BACKUP)
