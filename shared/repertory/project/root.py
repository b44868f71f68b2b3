"""Finds the project around the working directory, as git does."""

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from repertory.project.workspace import Workspace
from repertory.settings import PROJECT_FILE, Settings, load, named_files
from repertory.system.files import is_for_all, is_project
from repertory.system.paths import expanded


class Marker(StrEnum):
    """What makes a directory a project."""

    FILE = PROJECT_FILE
    REPOSITORY = ".git"
    INDEX = "indexed before"


class Project(msgspec.Struct, frozen=True):
    """A directory with its marker; None if neither it nor a directory above has one."""

    directory: Path
    marker: Marker | None


def project_of(start: Path, settings: Settings) -> Project:
    """Find the nearest directory with a marker, at ``start`` or above; by default ``start``.

    An index is a marker only if no directory at or above it has a configuration file or repository:
    an earlier search in a subdirectory must not hide them. Walking up never finds the home
    directory or those above it, nor a directory in which any account may have put the marker.

    Args:
        start: The working directory, absolute.
        settings: Any settings with the data directory, which records the indexed directories.
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
    """The settings for a working directory, and its project.

    Paths that the user gave stay relative to the working directory.

    Args:
        flags: As for ``repertory.settings.load``.
        start: The working directory, absolute.

    Raises:
        ConfigurationError: A value is invalid; the message names its origin.
    """
    given = {**flags, **named_files(flags, start)}
    if sandbox := given.get("sandbox"):
        given["sandbox"] = str(start / expanded(sandbox))
    settings = load(given, start)
    project = project_of(start, settings)
    if project.directory != start:
        settings = load(given, project.directory)
    return settings, project


def _marker(directory: Path) -> Marker | None:
    """The marker in a directory, if any. Both tests are False if it cannot be read."""
    if os.path.isfile(directory / PROJECT_FILE):  # noqa: PTH113 - False for it
        return Marker.FILE
    return Marker.REPOSITORY if os.path.exists(directory / ".git") else None  # noqa: PTH110 - False for it
