"""The texts of a project's files, cached in memory and updated as the index changes."""

import threading
import weakref
from collections.abc import Sequence
from pathlib import Path

import msgspec

from repertory.catalogue.item import Item, Kind
from repertory.errors import StoreError
from repertory.project_search.folder import Folder
from repertory.search.engine import SearchEngine
from repertory.sources.reading.top import Top

BATCH_SIZE = 500  # items


class File(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One searchable file; the same object as long as the file does not change.

    Attributes:
        id: The id of its item.
        hash: Identifies its version.
        path: Its path, relative to the project's directory if it is inside.
        title, content, synopsis: Its texts, case-folded.
        item: The original, if the file is not in the catalogue.
    """

    id: str
    hash: str
    path: str
    title: str
    content: str
    synopsis: str
    item: Item | None = None


class ProjectFiles:
    """Reads the files of an index and, optionally, of a folder. Thread-safe.

    Args:
        directory: The project's directory.
        folder: Provides files that are not in the catalogue.
    """

    def __init__(self, directory: Path, folder: Folder | None = None) -> None:
        self._top = Top(directory)
        self._folder = folder
        self._lock = threading.Lock()
        self._files: tuple[File, ...] = ()
        self._others: tuple[Item, ...] = ()
        # Weak: an engine holds a whole keyword index, which must be freed once it is replaced.
        self._engine: weakref.ref[SearchEngine] | None = None

    def of(self, engine: SearchEngine) -> tuple[File, ...]:
        """Return all files by path; only changed files are read, while other callers wait.

        Raises:
            StoreError: The files cannot be read.
        """
        with self._lock:
            others = self._folder.items() if self._folder else ()
            is_same = self._engine is not None and self._engine() is engine
            if not is_same or others is not self._others:
                self._files = self._read(engine, others)
                self._engine, self._others = weakref.ref(engine), others
            return self._files

    def _read(self, engine: SearchEngine, others: Sequence[Item]) -> tuple[File, ...]:
        if engine.keywords is None or engine.collection is None:
            raise StoreError("The files cannot be read now: " + " ".join(engine.degraded))
        entries = [one for one in engine.keywords.entries if one.kind is not Kind.TOOL]
        hashes = {one.id: one.hash for one in entries}
        held = {self._place(one.path) for one in entries}
        beside = {item.id: item for item in others if self._place(item.path) not in held}
        known = {
            file.id: file
            for file in self._files
            if file.hash == hashes.get(file.id)
            or (file.item is not None and file.item is beside.get(file.id))
        }
        changed = [item_id for item_id in hashes if item_id not in known]
        new = [item for item_id, item in beside.items() if item_id not in known | hashes]
        if len(known) == len(self._files) and not changed and not new:
            return self._files
        for start in range(0, len(changed), BATCH_SIZE):
            batch = changed[start : start + BATCH_SIZE]
            for item in engine.items(batch).values():
                known[item.id] = self._file(item, hashes[item.id])
        for item in new:
            known[item.id] = self._file(item, "", item)
        return tuple(sorted(known.values(), key=lambda file: (file.path, file.id)))

    def _file(self, item: Item, version: str, original: Item | None = None) -> File:
        return File(
            item=original,
            id=item.id,
            hash=version,
            path=self._place(item.path) or item.id,
            title=item.name.casefold(),
            content=item.body.casefold(),
            synopsis=item.description.casefold(),
        )

    def _place(self, path: str) -> str:
        return self._top.place(path) or path
