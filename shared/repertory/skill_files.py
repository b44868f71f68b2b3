"""The digests and contents of skills' supporting files, read from the local disk.

A skill's files are those below its folder, except links, hidden files, files that tools generate,
and files that may hold secrets. A subfolder with a ``SKILL.md`` is a separate skill. Files are
served only while the ``SKILL.md`` beside them matches the indexed one, because a changed one may be
awaiting review, and the same path on another machine may hold something unrelated.
"""

import hashlib
import os
from collections.abc import Collection
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Annotated, Self

import msgspec
from msgspec import Meta

from repertory.catalogue.item import Item
from repertory.catalogue.skill_format import SKILL_FILES
from repertory.errors import UnknownItemError
from repertory.project_search.private import has_secrets, is_private
from repertory.sources.reading import frontmatter
from repertory.sources.reading.fields import text_field
from repertory.sources.reading.files import FILE_LIMIT, read_text, text_of
from repertory.sources.reading.markdown import described
from repertory.sources.reading.walk import MAX_DEPTH, SKIPPED, TEMPORARY
from repertory.system.files import identity
from repertory.system.paths import UnfitFileError, real_path
from repertory.system.untrusted_files import OpenFolder
from repertory.text import is_clean

MAX_FILES = 512  # per skill, including its SKILL.md; the specification sets this and MAX_SIZE
MAX_SIZE = 1 << 24  # bytes of all files of a skill
MAX_NAMES = 5_000  # files and folders that are examined in a skill's folder
MAX_PLACE_LENGTH = 1_000  # characters

UNREADABLE = "This server cannot read the folder of the skill."
CHANGED = "The SKILL.md beside them is not the indexed one."
TOO_MANY = f"The skill has more than {MAX_FILES} files or {MAX_SIZE:,} bytes."


class SkillFile(msgspec.Struct, frozen=True, kw_only=True):
    """One supporting file of a skill."""

    place: Annotated[str, Meta(description="Its path relative to the skill's folder, with `/`.")]
    digest: Annotated[str, Meta(description="`sha256:` and the SHA-256 of its bytes, in hex.")]
    size: Annotated[int, Meta(description="Its length in bytes.")]


class SkillFiles(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The supporting files of a skill."""

    files: Annotated[tuple[SkillFile, ...], Meta(description="By place.")] = ()
    nested: Annotated[
        tuple[str, ...], Meta(description="The folders in it that are skills of their own.")
    ] = ()
    withheld: Annotated[str, Meta(description="Why its files are left out, if they are.")] = ""


class FileContent(msgspec.Struct, frozen=True, kw_only=True):
    """The content of one file."""

    data: Annotated[bytes, Meta(description="In Base64.")]


def files_of(item: Item, hidden: Collection[str] = ()) -> SkillFiles:
    """The supporting files of a skill; empty if the item is not a skill with a folder.

    Args:
        item: The skill.
        hidden: The absolute paths of files and folders that are never served. If the skill's own
            folder or one above it is hidden, so are all of its files.
    """
    with _Folder(item, hidden) as folder:
        if folder.withheld:
            return SkillFiles(withheld=folder.withheld)
        files = []
        for place in sorted(folder.places):
            if (data := folder.content(place)) is not None:
                digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
                files.append(SkillFile(place=place, digest=digest, size=len(data)))
        return SkillFiles(files=tuple(files), nested=tuple(sorted(folder.nested)))


def content_of(item: Item, place: str, hidden: Collection[str] = ()) -> bytes:
    """The bytes of a supporting file of a skill; see ``files_of``.

    Raises:
        UnknownItemError: ``files_of`` does not list the file, or it cannot be read.
    """
    with _Folder(item, hidden) as folder:
        data = folder.content(place) if place in folder.places else None
    if data is None:
        reason = f": {folder.withheld}" if folder.withheld else "."
        raise UnknownItemError(f"{item.id[:200]!r} has no file {place[:200]!r} here{reason}")
    return data


class _Folder:
    """The contents of a skill's folder, which is kept open in case another one replaces it.

    Attributes:
        places: The relative paths of its files.
        nested: The relative paths of the skills in it.
        withheld: Why nothing in it is served; empty if its files are served.
    """

    def __init__(self, item: Item, hidden: Collection[str]) -> None:
        self.places: set[str] = set()
        self.nested: list[str] = []
        self.withheld = ""
        self._folder: OpenFolder | None = None
        above, name = os.path.split(item.path)
        self._own = name
        if name not in SKILL_FILES or not os.path.isabs(above):  # noqa: PTH117 - of strings
            return
        root = real_path(above)
        try:
            self._folder = OpenFolder(root)
        except OSError:
            self.withheld = UNREADABLE
            return
        self.withheld = _defect(item, self._folder)
        if not self.withheld:
            identities = set(map(identity, hidden)) - {None}
            # A hidden source may contain the folder itself or one above it.
            above_it = map(str, (Path(root), *Path(root).parents))
            if identities and not identities.isdisjoint(map(identity, above_it)):
                self.withheld = UNREADABLE
            elif not self._list(self._folder, identities):
                self.withheld = TOO_MANY

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder:
            self._folder.close()

    def content(self, place: str) -> bytes | None:
        """The bytes of a file, without following links; None if unreadable or holding secrets."""
        assert self._folder is not None  # a place was listed in it
        try:
            data = self._folder.read(place, MAX_SIZE)
        except OSError:
            return None
        return None if has_secrets(place, data.decode("utf-8", "replace")) else data

    def _list(self, opened: OpenFolder, hidden: Collection[object]) -> bool:
        """Find the files and the nested skills; False if they are too many or too large."""
        folders, names, size = [""], 0, 0
        while folders:
            folder = folders.pop()
            try:
                entries = opened.entries(folder, MAX_NAMES)
            except OSError:  # removed, or not accessible to this process
                continue
            names += len(entries)
            if folder and any(name in SKILL_FILES for name, _ in entries):
                self.nested.append(folder)
                continue
            for name, status in entries:
                place = f"{folder}/{name}" if folder else name
                if place == self._own or not _is_ours(place):
                    continue
                if (status.st_dev, status.st_ino) in hidden:
                    continue
                if S_ISDIR(status.st_mode):
                    folders.append(place)
                elif S_ISREG(status.st_mode):
                    self.places.add(place)
                    size += status.st_size
            if names >= MAX_NAMES or len(self.places) >= MAX_FILES or size > MAX_SIZE:
                self.places.clear()
                return False
        return True


def _defect(item: Item, folder: OpenFolder) -> str:
    """Why the files beside a ``SKILL.md`` must not be served; empty if they may."""
    name = os.path.basename(item.path)  # noqa: PTH119 - of strings
    try:
        text, _ = text_of(folder.read(name, FILE_LIMIT), item.path)
    except UnfitFileError:  # it may be a link
        text, _ = read_text(item.path)
    except OSError:
        text = None
    if text is None:
        return UNREADABLE
    parsed = frontmatter.parse(text, item.path)
    description = text_field(parsed.fields or {}, "description") or described(parsed.body)
    return "" if (description, parsed.body.strip()) == (item.description, item.body) else CHANGED


def _is_ours(place: str) -> bool:
    """Whether a relative path may belong to a skill, judged by its names alone."""
    parts = place.split("/")
    return (
        len(place) <= MAX_PLACE_LENGTH
        and len(parts) <= MAX_DEPTH
        and is_clean(place)
        and "\\" not in place
        and not any(
            not part
            or part.startswith((".", *TEMPORARY))
            or part in SKIPPED
            or is_private("/".join(parts[: depth + 1]))
            for depth, part in enumerate(parts)
        )
    )
