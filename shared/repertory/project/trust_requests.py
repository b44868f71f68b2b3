"""Sources that run only once the user trusts them, and the files that define them."""

import contextlib
import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from repertory.errors import ConfigurationError, UsageError
from repertory.project.workspace import Workspace
from repertory.settings import load
from repertory.sources.discover import entry_of
from repertory.sources.fetched.urls import place_of
from repertory.sources.mcp.source import McpServer
from repertory.sources.registry import build, digest_to_trust, files_to_trust
from repertory.sources.source import Source
from repertory.system.paths import real_path


class Untrusted(msgspec.Struct, frozen=True):
    """Sources and files that await trust.

    Attributes:
        files: Untrusted files that define sources.
        sources: The names of these sources.
        withheld: Why other sources are not read, and how to allow them.
    """

    files: list[Path]
    sources: set[str]
    withheld: list[str] = []


class TrustRequest(msgspec.Struct, frozen=True):
    """What a found configuration needs from outside its folder.

    Attributes:
        digest: The SHA-256 of the file.
        wishes: What it asks for, in words; empty if it is trusted already.
    """

    digest: str
    wishes: list[str]


def trust_request(
    file: Path, flags: Mapping[str, Any], environment: Mapping[str, str] = os.environ
) -> TrustRequest:
    """What a project's configuration file asks for.

    Raises:
        UsageError: It is missing.
        ConfigurationError: It is invalid.
    """
    file = file.expanduser().absolute()
    if not os.path.isfile(file):  # noqa: PTH113 - False also if a link may not be followed
        raise UsageError(f"There is no file {file}; name a configuration.")
    settings = load({**flags, "config": None}, file.parent, {**environment, "REPERTORY_CONFIG": ""})
    wishes = list(settings.withheld)
    wishes += [place_of(one.entry) for one in settings.added if one.is_confined]
    if settings.is_confined:
        workspace = Workspace(settings, file.parent)
        paths = filter(None, map(workspace.sources.outside, settings.sources))
        wishes += [str(path) for path in paths]
    if any(rule.within for rule in settings.rules):
        wishes.append("policies for all items")
    return TrustRequest(settings.digest, wishes)


def untrusted(workspace: Workspace) -> Untrusted:
    """The readable but untrusted files that the sources of a catalogue need."""
    files: list[Path] = []
    sources: set[str] = set()
    trusted: set[str] = set()
    found = workspace.sources.discovery()
    for entry in found.entries:  # trusted entries come first
        paths = files_to_trust(entry, workspace.base)
        if paths is None:
            continue
        try:
            built = build(entry, workspace.base)
        except ConfigurationError:  # building the catalogue reports it
            continue
        names = {source.name for source in built if not source.fault}
        if entry["trusted"]:
            trusted |= names
        elif {source.name for source in built if not source.is_trusted} - trusted:
            is_trusted = workspace.trust.is_trusted
            files += [path for path in paths if not is_trusted(path, digest_to_trust)]
            sources |= names - trusted
    return Untrusted(files, sources, [reason for _, reason in found.withheld])


def defined_by(file: Path, workspace: Workspace) -> list[Source]:
    """The sources that a file defines: from the catalogue if it lists the file, else by its kind.

    Raises:
        UsageError: The file is missing, or defines no source that needs trust.
        ConfigurationError: It is invalid.
    """
    file = Path(real_path(file.expanduser()))
    if not os.path.isfile(file):  # noqa: PTH113 - False also if a link may not be followed
        raise UsageError(f"There is no file {file}; name an MCP configuration.")
    catalogue = workspace.sources
    entries = [entry for entry in catalogue.entries() if file in catalogue.files_of(entry)]
    if not entries:
        with contextlib.suppress(UsageError):  # no source type reads this file
            entries = [one for one in entry_of(file) if files_to_trust(one, workspace.base)]
    if not entries:
        raise UsageError(f"No servers can be read from {file}; name an MCP configuration.")
    return [source for entry in entries for source in build(entry, workspace.base)]


def known_as(file: Path, workspace: Workspace) -> list[Path]:
    """The paths under which a catalogue lists a file and asks for its trust.

    Paths are compared with links resolved. If the catalogue does not list the file, its own path
    is returned.
    """
    real = real_path(file.expanduser())
    paths = (files_to_trust(entry, workspace.base) or () for entry in workspace.sources.entries())
    found = [path for several in paths for path in several if real_path(path) == real]
    return list(dict.fromkeys(found)) or [file]


def described(sources: Iterable[Source]) -> str:
    """The names of sources, each with its command or address and its variables, without secrets."""
    texts = []
    for source in sources:
        verb = "calls" if "://" in source.location else "runs"
        given = ", ".join(source.variables) if isinstance(source, McpServer) else ""
        about = f"{verb} {source.location}" + (f" with {given}" if given else "")
        texts.append(source.name + (f" ({about})" if source.location else ""))
    return ", ".join(texts) or "no servers"


def env_files(sources: Iterable[Source]) -> list[Path]:
    """The environment files of sources, which are trusted with their configuration."""
    files = (source.env_file for source in sources if isinstance(source, McpServer))
    return [file for file in files if file]


def advice(found: Untrusted) -> str:
    """How to trust the configurations that were found; empty if none."""
    lines = list(found.withheld)
    if found.files:
        files = shlex.join(str(path) for path in found.files)
        lines += [
            f"MCP servers were found but not run: {', '.join(sorted(found.sources))}.",
            f"To let them be run and indexed: repertory config trust {files}",
        ]
    return "\n".join(lines)
