"""The texts of a project's files, kept in memory as the index changes."""

import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import msgspec

from repertory.catalogue.item import Item, Kind
from repertory.errors import StoreError
from repertory.index.keywords.document import Entry
from repertory.search import lookup
from repertory.search.engine import SearchEngine
from repertory.sources.reading.top import Top

READ_AT_ONCE = 500  # items


class File(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One file as it is searched; the same object as long as the file is the same.

    Attributes:
        id: The id of its item.
        hash: What tells its version.
        path: Where it is, from the project's directory where it lies below that.
        title, content, synopsis: Its texts, case-folded.
    """

    id: str
    hash: str
    path: str
    title: str
    content: str
    synopsis: str


class Texts:
    """Reads the files of an index. Safe to call from several threads.

    Args:
        directory: The project's.
    """

    def __init__(self, directory: Path) -> None:
        self._top = Top(directory)
        self._lock = threading.Lock()
        self._files: tuple[File, ...] = ()
        # Held no longer than it is in force: an engine has a keyword index of its own.
        self._engine: weakref.ref[SearchEngine] | None = None

    def of(self, engine: SearchEngine) -> tuple[File, ...]:
        """The files of an engine's index, by path; only those that changed are read.

        Whoever asks while they are being read waits for them.

        Raises:
            StoreError: They cannot be read.
        """
        with self._lock:
            if self._engine is None or self._engine() is not engine:
                self._files = self._read(engine)
                self._engine = weakref.ref(engine)
            return self._files

    def _read(self, engine: SearchEngine) -> tuple[File, ...]:
        if engine.keywords is None or engine.collection is None:
            raise StoreError("The files cannot be read now: " + " ".join(engine.degraded))
        wanted = {one.id: one for one in engine.keywords.entries if one.kind is not Kind.TOOL}
        known = {file.id: file for file in self._files if _is(file, wanted.get(file.id))}
        changed = [item_id for item_id in wanted if item_id not in known]
        if len(known) == len(self._files) and not changed:
            return self._files
        for item in _items(engine, changed):
            known[item.id] = self._file(item, wanted[item.id].hash)
        return tuple(sorted(known.values(), key=lambda file: (file.path, file.id)))

    def _file(self, item: Item, version: str) -> File:
        return File(
            id=item.id,
            hash=version,
            path=self._top.place(item.path) or item.path or item.id,
            title=item.name.casefold(),
            content=item.body.casefold(),
            synopsis=item.description.casefold(),
        )


def _is(file: File, entry: Entry | None) -> bool:
    return entry is not None and entry.hash == file.hash


def _items(engine: SearchEngine, ids: list[str]) -> Iterator[Item]:
    for start in range(0, len(ids), READ_AT_ONCE):
        yield from lookup.items(engine, ids[start : start + READ_AT_ONCE]).values()
