"""The text files of a project's folder, including those outside the catalogue."""

import logging
import os
import time
from pathlib import Path

from repertory.catalogue.item import Item
from repertory.errors import SourceError
from repertory.sources.documents import Documents
from repertory.sources.reading.files import Found

RESCAN_INTERVAL_S = 2.0
MAX_BYTES = 200_000_000  # of all files together

_log = logging.getLogger(__name__)


class Folder:
    """Reads the text files of a folder, with the rules of ``Documents`` and everything included."""

    def __init__(self, directory: Path) -> None:
        self._source = _TextFiles(name="files", path=directory, include=["*"])
        self._scanned_at = float("-inf")
        self._items: tuple[Item, ...] = ()

    def items(self) -> tuple[Item, ...]:
        """Return the files, at most ``RESCAN_INTERVAL_S`` old.

        The tuple is the same object while no file changes, and so is the item of each unchanged
        file.
        """
        if time.monotonic() - self._scanned_at > RESCAN_INTERVAL_S:
            try:
                found = tuple(self._source.scan().items)
            except SourceError:  # an unavailable folder keeps its files
                found = self._items
            if list(map(id, found)) != list(map(id, self._items)):
                self._items = found
            self._scanned_at = time.monotonic()
        return self._items


class _TextFiles(Documents):
    """All text files, up to a limit of memory."""

    file_limit = 1 << 18  # bytes

    def chosen(self, files: list[Found]) -> list[Found]:
        """The files that are not ignored, up to ``MAX_BYTES`` in total."""
        taken: list[Found] = []
        room = MAX_BYTES
        for file in super().chosen(files):
            try:
                size = os.stat(file.path).st_size  # noqa: PTH116 - speed
            except OSError:
                continue
            if size > self.file_limit:
                continue
            room -= size
            if room < 0:
                _log.warning(
                    "project_too_large", extra={"path": str(self.path), "files": len(taken)}
                )
                break
            taken.append(file)
        return taken
