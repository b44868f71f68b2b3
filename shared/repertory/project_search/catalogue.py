"""The documents and skills of the catalogue, as files of a project."""

import os
import weakref
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from repertory.catalogue.item import Kind
from repertory.errors import StoreError
from repertory.index.keywords.document import Entry
from repertory.project_search.file import File, Texts, folded
from repertory.search.engine import SearchEngine
from repertory.system.paths import real_path

BATCH_SIZE = 500  # items


class CatalogueFiles:
    """The items that are files in the project's directory, and the texts of the other items.

    Args:
        directory: The project's directory.
        has_folder: Whether the directory itself is searched; if not, all items are read here.

    Attributes:
        inside: The items whose files are in the directory, by place. If two sources read a file,
            the first item counts. Files in which one source found several items are left out.
        files: The other items.
    """

    def __init__(self, directory: Path, *, has_folder: bool) -> None:
        self._top = os.path.join(real_path(directory), "")  # noqa: PTH118 - a slash at its end
        self._has_folder = has_folder
        # Weak: an engine holds a whole keyword index, which must be freed once it is replaced.
        self._engine: weakref.ref[SearchEngine] | None = None
        self._read: dict[str, tuple[str, File]] = {}  # the hash and the file, by id
        self.inside: Mapping[str, Entry] = {}
        self.files: Sequence[File] = ()

    def update(self, engine: SearchEngine) -> None:
        """Follow the index; only changed items are read.

        Raises:
            StoreError: The items cannot be read.
        """
        if self._engine is not None and self._engine() is engine:
            return
        if engine.collection is None:
            raise StoreError("The files cannot be read now: " + " ".join(engine.degraded))
        inside: dict[str, Entry] = {}
        several: set[str] = set()  # places
        outside: list[tuple[Entry, str | None]] = []
        real = cache(real_path)
        for entry in sorted(engine.keywords.all(), key=lambda entry: entry.id):
            if entry.kind is Kind.TOOL:
                continue
            folder, name = os.path.split(entry.path)
            path = os.path.join(real(folder), name)  # noqa: PTH118 - speed
            is_inside = name and path.startswith(self._top)
            place = path.removeprefix(self._top).replace(os.sep, "/") if is_inside else None
            if self._has_folder and place is not None:
                first = inside.setdefault(place, entry)
                if first is not entry and first.source == entry.source:
                    several.add(place)
            else:
                outside.append((entry, place))
        for place in several:
            del inside[place]
        self._update(engine, outside)
        self.inside, self._engine = inside, weakref.ref(engine)

    def texts(self, ids: Sequence[str], engine: SearchEngine | None) -> dict[str, Texts]:
        """Return the texts of items by id; unknown ids are left out."""
        if engine is None or not ids:
            return {}
        return {
            item.id: Texts(item.name, item.body, item.description)
            for item in engine.items(list(ids)).values()
        }

    def _update(self, engine: SearchEngine, entries: Sequence[tuple[Entry, str | None]]) -> None:
        known = {
            entry.id: self._read[entry.id]
            for entry, _ in entries
            if entry.id in self._read and self._read[entry.id][0] == entry.hash
        }
        changed = [(entry, place) for entry, place in entries if entry.id not in known]
        for start in range(0, len(changed), BATCH_SIZE):
            batch = changed[start : start + BATCH_SIZE]
            texts = self.texts([entry.id for entry, _ in batch], engine)
            for entry, place in batch:
                if entry.id in texts:
                    known[entry.id] = entry.hash, _file(entry, place, texts[entry.id])
        self._read = known
        self.files = [file for _, file in known.values()]


def _file(entry: Entry, place: str | None, texts: Texts) -> File:
    return File(
        id=entry.id,
        place=place or entry.path or entry.id,
        title=folded(texts.title),
        name=folded(entry.path.rpartition("/")[2]),
        content=folded(texts.content),
        synopsis=folded(texts.synopsis),
        path=folded(place or ""),
    )
