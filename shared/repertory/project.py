"""Finds the project around the working directory, as git does."""

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from repertory.files import is_for_all, is_project
from repertory.settings import PROJECT_FILE, Settings, load, named_files
from repertory.workspace import Workspace


class Marker(StrEnum):
    """What makes a directory a project."""

    FILE = PROJECT_FILE
    REPOSITORY = ".git"
    INDEX = "indexed before"


class Project(msgspec.Struct, frozen=True):
    """A directory, and what marks it; None if it was taken because nothing above it is marked."""

    directory: Path
    marker: Marker | None


def project_of(start: Path, settings: Settings) -> Project:
    """Find the nearest directory with a marker, at ``start`` or above; else it is ``start``.

    An index counts only where neither a configuration file nor a repository lies around it: a
    search that was once made below must not hide them. A home directory and the directories above
    it are never found by walking up, nor is one where any account may have put the marker.

    Args:
        start: The working directory, absolute.
        settings: Any settings with the data directory, which knows what was indexed.
    """
    home, indexed = Path.home(), None
    for directory in (start, *start.parents):
        if directory != start and not is_project(directory, home):
            break
        if directory != start and is_for_all(directory):
            continue
        if marker := _marker(directory):
            return Project(directory, marker)
        if indexed is None and Workspace(settings, directory).is_known:
            indexed = directory
    return Project(indexed, Marker.INDEX) if indexed else Project(start, None)


def located(flags: Mapping[str, Any], start: Path) -> tuple[Settings, Project]:
    """The settings that hold in a working directory, and its project.

    Paths that the user gave stay relative to the working directory.

    Args:
        flags: As for ``repertory.settings.load``.
        start: The working directory, absolute.

    Raises:
        ConfigurationError: A value is invalid; the message names where it was given.
    """
    given = {**flags, **named_files(flags, start)}
    if sandbox := given.get("sandbox"):
        given["sandbox"] = str(start / Path(sandbox).expanduser())
    settings = load(given, start)
    project = project_of(start, settings)
    if project.directory != start:
        settings = load(given, project.directory)
    return settings, project


def _marker(directory: Path) -> Marker | None:
    """The marker that lies in a directory; both tests are False for a closed one."""
    if os.path.isfile(directory / PROJECT_FILE):  # noqa: PTH113 - False for it
        return Marker.FILE
    return Marker.REPOSITORY if os.path.exists(directory / ".git") else None  # noqa: PTH110 - False for it
