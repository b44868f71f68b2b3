"""The text files of a project's folder, whether its catalogue holds them or not."""

import logging
import os
import time
from pathlib import Path

from repertory.catalogue.item import Item
from repertory.errors import SourceError
from repertory.sources.documents import Documents
from repertory.sources.reading.files import Found

FRESH = 2.0  # seconds that a look at the folder lasts
MOST_BYTES = 200_000_000  # of all files together

_log = logging.getLogger(__name__)


class Folder:
    """Reads the text files of a folder: those that ``Documents`` would take if all were included.

    Args:
        directory: The folder.
    """

    def __init__(self, directory: Path) -> None:
        self._source = _TextFiles(name="files", path=directory, include=["*"])
        self._looked_at = float("-inf")
        self._items: tuple[Item, ...] = ()

    def items(self) -> tuple[Item, ...]:
        """The files as they are now, or were two seconds ago.

        The same tuple is returned as long as no file changed, and the same item for each that did
        not.
        """
        if time.monotonic() - self._looked_at > FRESH:
            try:
                found = tuple(self._source.scan().items)
            except SourceError:  # it is away, which takes nothing away
                found = self._items
            if list(map(id, found)) != list(map(id, self._items)):
                self._items = found
            self._looked_at = time.monotonic()
        return self._items


class _TextFiles(Documents):
    """All of them, up to what memory can be spared for."""

    file_limit = 1 << 18  # bytes

    def chosen(self, files: list[Found]) -> list[Found]:
        """The files that are not ignored, as many as there is room for."""
        taken: list[Found] = []
        room = MOST_BYTES
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
