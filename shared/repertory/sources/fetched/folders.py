"""Folder sources that read fetched content."""

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from typing_extensions import override

from repertory.errors import ConfigurationError
from repertory.sources.entry import checked_name
from repertory.sources.fetched.content import CURRENT, Content
from repertory.sources.fetched.source import FetchedSource, interval_of
from repertory.sources.fetched.writing import checked_folder
from repertory.sources.folder import FolderSource
from repertory.sources.reading.walk import Walk
from repertory.sources.reading_cache import ReadingCache
from repertory.sources.registry import implementation
from repertory.sources.source import Source

# The types that can read a fetched folder.
READERS = ("skills", "markdown-skills", "python-skills", "neuroscript", "documents", "tools")


class FetchedFolder(FetchedSource, FolderSource):
    """A source that reads a fetched folder. ``reader`` combines it with a class that reads."""

    @override
    def identity(self) -> Mapping[str, Any]:
        """The identity of the reading source, with a digest for the origin of its content."""
        found, place = dict(super().identity()), os.path.relpath(self.path, self.content.path)
        return {**found, "path": (Path(self.content.folder.name) / place).as_posix()}

    @override
    def file_id(self, place: str) -> str:
        """The id of an item. A skill at the top level has no folder and gets the source's name."""
        found = super().file_id(place)
        return f"{self.name}/{self.name}" if found == f"{self.name}/{CURRENT}" else found

    @override
    def without_items(self, walk: Walk) -> dict[str, str]:
        """Empty, because published content has many folders without items."""
        return {}

    @override
    def forget(self) -> None:
        self._readings = ReadingCache()

    @override
    def is_away(self) -> bool:
        return False


@cache
def reader(kind: str) -> type[Any]:
    """The class that fetches content and reads it like a type of ``READERS``."""
    reads = implementation(kind)
    return type(f"Fetched{reads.__name__}", (FetchedFolder, reads), {"type": reads.type})


def folder_in(entry: Mapping[str, Any], whole: str) -> str:
    """The ``folder`` of an entry, which selects a part of its content; empty for all.

    Raises:
        ConfigurationError: It is outside the content, which the message calls ``whole``.
    """
    try:
        return checked_folder(str(entry.get("folder", "")))
    except ValueError:
        raise ConfigurationError(
            f"The folder {entry['folder']!r} of {whole} is not in it; name it without `..` and "
            "without a slash at its start."
        ) from None


def build_folders(entry: Mapping[str, Any], content: Content, place: str = "") -> list[Source]:
    """Build the sources of an entry, one for each type in ``reads``; by default only for skills.

    Args:
        entry: The entry. The first source has its ``name``, the others its name and their type.
        content: The content to read.
        place: The folder of the content to read; empty for all.

    Raises:
        ConfigurationError: The entry is invalid.
    """
    name, kinds = checked_name(entry.get("name")), entry.get("reads", ["skills"])
    if not isinstance(kinds, list) or not kinds or not set(map(str, kinds)) <= {*READERS}:
        raise ConfigurationError(
            f"`reads` of the source {name} is {kinds!r}; it must be a list of {', '.join(READERS)}."
        )
    sources: list[Source] = []
    for kind in dict.fromkeys(map(str, kinds)):
        own = f"{name}-{kind}" if sources else name
        read = {"type": kind, "name": own, "path": str(content.path / place)}
        [source] = reader(kind).build(read, content.path)
        sources.append(source.attach(content, interval_of(entry)))
    return sources
