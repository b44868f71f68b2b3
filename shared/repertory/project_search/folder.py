"""The files of a project's folder, with their texts as they are on the disk."""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from repertory.catalogue.item import Kind
from repertory.errors import SourceError, StoreError
from repertory.index.keywords.document import Entry
from repertory.project_search.file import File, Texts, folded
from repertory.project_search.listing import Listing
from repertory.project_search.private import has_secrets
from repertory.sources.documents import described, is_prose
from repertory.sources.folder_memory import GRANULARITY
from repertory.sources.reading import frontmatter
from repertory.sources.reading.files import FILE_LIMIT, Found, read_file
from repertory.system.files import FOLDER, Signature, signature, signature_of
from repertory.system.paths import real_path

SOURCE = "files"  # the first part of the id of a file without an item
MAX_LENGTH = 200_000_000  # characters in all texts together


class _CachedFile(msgspec.Struct, frozen=True):
    """The cached state of a file.

    Attributes:
        signature: Its signature; None if the file may still change without changing it, or was not
            read.
        entry: Its item.
        file: None if it holds secrets.
        is_unread: Whether its text is too large.
    """

    signature: Signature | None
    entry: Entry | None
    file: File | None
    is_unread: bool

    def is_of(self, signature: Signature, entry: Entry | None) -> bool:
        """Whether neither the file nor its item has changed."""
        return self.signature == signature and self.entry == entry


class Folder:
    """Reads the files of a folder. Supports one call of ``files`` at a time.

    Files that git ignores or that may hold secrets are left out. Only the names are known of
    binary files, of files larger than ``FILE_LIMIT`` and of files beyond ``MAX_LENGTH``.

    Args:
        directory: The folder.
        leave_out: A folder in it to skip.

    Attributes:
        unread: The number of files whose text is too large to be read, or whose names cannot be
            shown.
    """

    def __init__(self, directory: Path, leave_out: Path | None = None) -> None:
        self._directory = directory
        self._root = real_path(directory)
        self._listing = Listing(directory, leave_out)
        self._listed: Sequence[Found] = ()
        self._items: Mapping[str, Entry] = {}
        self._cached: dict[str, _CachedFile] = {}  # by place
        self._signatures: Sequence[tuple[str, Signature | None]] = ()  # by path
        self._files: Sequence[File] = ()
        self.unread = 0

    def files(self, items: Mapping[str, Entry]) -> Sequence[File]:
        """Return the current files; only changed ones are read.

        Args:
            items: The items of the files, by place.

        Returns:
            The files by place; the same sequence if neither they nor the items changed.

        Raises:
            StoreError: The folder cannot be listed.
        """
        try:
            listed = self._listing.files()
        except SourceError as error:
            reason = getattr(error.__cause__, "strerror", None) or error
            raise StoreError(
                f"The project's folder {self._directory} cannot be read ({reason}); restore it."
            ) from error
        is_same = listed is self._listed and items is self._items
        if not (is_same and self._are_unchanged()):
            self._read(listed, items)
        return self._files

    def _are_unchanged(self) -> bool:
        """Whether no file has changed since it was read; every search asks this of every file."""
        try:
            return all(signature_of(os.stat(path)) == one for path, one in self._signatures)  # noqa: PTH116 - speed
        except OSError:
            return False

    def _read(self, listed: Sequence[Found], items: Mapping[str, Entry]) -> None:
        stable = time.time_ns() - GRANULARITY
        now: dict[str, _CachedFile] = {}
        changed: list[tuple[Found, Signature]] = []
        for found in listed:
            current, cached = signature(found.path), self._cached.get(found.place)
            if current is None or current == FOLDER:  # deleted, or replaced by a folder
                continue
            if cached and cached.is_of(current, items.get(found.place)):
                now[found.place] = cached
            else:
                changed.append((found, current))
        room = MAX_LENGTH - sum(len(one.file.content) for one in now.values() if one.file)
        for found, current in changed:
            entry, before = items.get(found.place), self._cached.get(found.place)
            is_unread = current[2] > min(FILE_LIMIT, room)
            file = _file(found, entry, "" if is_unread else _text(found))
            if before and before.file and file and _same(before.file, file):
                file = before.file
            room -= len(file.content) if file else 0
            is_stable = max(current[:2]) < stable and not is_unread
            now[found.place] = _CachedFile(current if is_stable else None, entry, file, is_unread)
        ordered = [(found.path, now[found.place]) for found in listed if found.place in now]
        self._files = [one.file for _, one in ordered if one.file]
        self._signatures = [(path, one.signature) for path, one in ordered]
        self._listed, self._items, self._cached = listed, items, now
        self.unread = sum(one.is_unread for one in now.values()) + self._listing.unfit

    def texts(self, file: File) -> Texts | None:
        """Return the current texts of a file; None if it was deleted or has secrets."""
        found = Found(file.place, file.disk, self._root)
        text, cached = _text(found), self._cached.get(file.place)
        if cached is None or signature(file.disk) is None or has_secrets(file.place, text):
            return None
        return _texts(found, cached.entry, "" if cached.is_unread else text)


def _file(found: Found, entry: Entry | None, text: str) -> File | None:
    if has_secrets(found.place, text):
        return None
    texts = _texts(found, entry, text)
    return File(
        id=entry.id if entry else f"{SOURCE}/{found.place}",
        place=found.place,
        disk=found.path,
        title=folded(texts.title),
        name=folded(found.place.rpartition("/")[2]),
        content=folded(texts.content),
        synopsis=folded(texts.synopsis),
        path=folded(found.place),
    )


def _texts(found: Found, entry: Entry | None, text: str) -> Texts:
    """The texts of a file. A skill's name and description count if they occur in the file."""
    title = synopsis = ""
    if is_prose(found.place):
        parsed = frontmatter.parse(text, found.path)
        title, synopsis = described(parsed.fields or {}, parsed.body)
    if entry and entry.kind is Kind.SKILL:
        title = entry.name if entry.name in text else title
        synopsis = synopsis or (entry.description if entry.description in text else "")
    return Texts(title or found.place.rpartition("/")[2], text, synopsis)


def _text(found: Found) -> str:
    """The text of a file; empty if it is binary or unreadable."""
    text, _ = read_file(found)
    return text or ""


def _same(one: File, other: File) -> bool:
    return msgspec.structs.astuple(one) == msgspec.structs.astuple(other)
