"""The ordinary sources of folders, reading fetched content."""

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
    """A source of a folder that was fetched; made into a class with one that reads it."""

    @override
    def identity(self) -> Mapping[str, Any]:
        """The identity of what it reads; a digest stands for where that is from."""
        found, place = dict(super().identity()), os.path.relpath(self.path, self.content.path)
        return {**found, "path": (Path(self.content.folder.name) / place).as_posix()}

    @override
    def configuration(self) -> object:
        return self.identity(), self.content.folder, self.interval, self.location

    @override
    def file_id(self, place: str) -> str:
        """The id of an item; a skill at the top, whose folder has no name, has the source's."""
        found = super().file_id(place)
        return f"{self.name}/{self.name}" if found == f"{self.name}/{CURRENT}" else found

    @override
    def without_items(self, walked: Walk) -> dict[str, str]:
        """Nothing: what others publish has folders of many kinds."""
        return {}

    @override
    def forget(self) -> None:
        self._readings = ReadingCache()

    @override
    def is_away(self) -> bool:
        return False


@cache
def reader(kind: str) -> type[Any]:
    """The class that fetches and reads what a type of ``READERS`` does."""
    reads = implementation(kind)
    return type(f"Fetched{reads.__name__}", (FetchedFolder, reads), {"type": reads.type})


def folder_in(entry: Mapping[str, Any], whole: str) -> str:
    """The ``folder`` of an entry: the part of its content that is taken; empty for all.

    Raises:
        ConfigurationError: It would lie elsewhere; the message names the whole.
    """
    try:
        return checked_folder(str(entry.get("folder", "")))
    except ValueError:
        raise ConfigurationError(
            f"The folder {entry['folder']!r} of {whole} is not in it; name it without `..` and "
            "without a slash at its start."
        ) from None


def build_folders(entry: Mapping[str, Any], content: Content, place: str = "") -> list[Source]:
    """Build the sources of an entry: one for each type in ``reads``, the skills by default.

    Args:
        entry: With a ``name``; the items of the first type have ids that start with it, those of
            others with it and their type.
        content: The content that they read.
        place: The folder of the content that they read; empty for all.

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
        sources.append(fetched(source, content, interval_of(entry)))
    return sources


def fetched(source: Any, content: Content, interval: float) -> Source:  # noqa: ANN401 - any reader
    """Let a source of ``reader`` read some content."""
    source.content, source.interval = content, interval
    source.location = content.fetcher.location
    source.folder = None
    found: Source = source
    return found
