"""The searchable files of a project, from its folder and its catalogue."""

import threading
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from repertory.errors import StoreError
from repertory.project_search.catalogue import CatalogueFiles
from repertory.project_search.file import File, Texts
from repertory.project_search.folder import Folder
from repertory.search.engine import SearchEngine


class ProjectFiles:
    """Keeps the files in memory and updates them with each request. Thread-safe.

    Args:
        directory: The project's directory.
        folder: Reads the directory; None if only the catalogue is available.
    """

    def __init__(self, directory: Path, folder: Folder | None = None) -> None:
        self._folder = folder
        self._catalogue = CatalogueFiles(directory, has_folder=folder is not None)
        self._lock = threading.Lock()
        self._checked_at = float("-inf")
        self._parts: Sequence[Sequence[File]] = ()
        self._files: tuple[File, ...] = ()

    @property
    def unread(self) -> int:
        """The number of files whose text is not searched; see ``Folder``."""
        return self._folder.unread if self._folder else 0

    def of(self, engine: SearchEngine | None) -> tuple[File, ...]:
        """Return all files by path; the same tuple until a file changes.

        Args:
            engine: The engine of the catalogue; None keeps the known state of the catalogue.

        Raises:
            StoreError: The folder or the catalogue cannot be read.
        """
        asked_at = time.perf_counter()
        with self._lock:
            if self._checked_at <= asked_at:  # or another thread has just done it
                began_at = time.perf_counter()
                self._check(engine)
                self._checked_at = began_at
            return self._files

    def texts(self, files: Sequence[File], engine: SearchEngine | None) -> dict[str, Texts]:
        """Return the current texts of files, as written, by id; deleted files are left out."""
        found = self._catalogue.texts([file.id for file in files if not file.disk], engine)
        for file in files:
            if self._folder and file.disk and (texts := self._folder.texts(file)):
                found[file.id] = texts
        return found

    def _check(self, engine: SearchEngine | None) -> None:
        try:
            if engine is not None:
                self._catalogue.update(engine)
        except StoreError:  # the folder's files can still be searched
            if self._folder is None:
                raise
        parts = [self._catalogue.files]
        if self._folder:
            parts.append(self._folder.files(self._catalogue.inside))
        if parts != self._parts:
            files = tuple(sorted(chain(*parts), key=lambda file: (file.place, file.id)))
            if files != self._files:
                self._files = files
            self._parts = parts
