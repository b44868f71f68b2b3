"""Sources that the user must trust before they run, and the files that define them."""

import contextlib
import shlex
from collections.abc import Iterable
from pathlib import Path

import msgspec

from repertory.errors import ConfigurationError, UsageError
from repertory.sources.discover import entry_of
from repertory.sources.registry import build, files_to_trust
from repertory.sources.source import Source
from repertory.workspace import Workspace


class Untrusted(msgspec.Struct, frozen=True):
    """Files that are not trusted, and the names of the sources that they define."""

    files: list[Path]
    sources: set[str]


def untrusted(workspace: Workspace) -> Untrusted:
    """The readable files of a catalogue that are not trusted and that its sources need."""
    files: list[Path] = []
    sources: set[str] = set()
    trusted: set[str] = set()
    for entry in workspace.entries():  # trusted ones come first
        paths = files_to_trust(entry, workspace.base)
        if paths is None:
            continue
        try:
            found = build(entry, workspace.base)
        except ConfigurationError:  # building the catalogue says so
            continue
        names = {source.name for source in found if not source.fault}
        if entry["trusted"]:
            trusted |= names
        elif {source.name for source in found} - trusted:
            files += [path for path in paths if not workspace.trust.is_trusted(path)]
            sources |= names - trusted
    return Untrusted(files, sources)


def defined_by(file: Path, workspace: Workspace) -> list[Source]:
    """The sources that a file defines, in the catalogue or else by its kind.

    Raises:
        UsageError: The file is missing, or defines no source that needs trust.
        ConfigurationError: It is invalid.
    """
    file = file.expanduser().resolve()
    if not file.is_file():
        raise UsageError(f"There is no file {file}; name an MCP configuration.")
    entries = [
        entry
        for entry in workspace.entries()
        if file in {path.resolve() for path in files_to_trust(entry, workspace.base) or ()}
    ]
    if not entries:
        with contextlib.suppress(UsageError):  # of a file that no source reads
            entries = [one for one in entry_of(file) if files_to_trust(one, workspace.base)]
    if not entries:
        raise UsageError(f"No servers can be read from {file}; name an MCP configuration.")
    return [source for entry in entries for source in build(entry, workspace.base)]


def described(sources: Iterable[Source]) -> str:
    """The names of sources, each with its command or address, without secrets."""
    texts = []
    for source in sources:
        verb = "calls" if "://" in source.location else "runs"
        texts.append(source.name + (f" ({verb} {source.location})" if source.location else ""))
    return ", ".join(texts) or "no servers"


def advice(found: Untrusted) -> str:
    """How to trust the files that were found; empty without any."""
    if not found.files:
        return ""
    files = shlex.join(str(path) for path in found.files)
    return (
        f"MCP servers were found but not run: {', '.join(sorted(found.sources))}.\n"
        f"To let them be run and indexed: repertory config trust {files}"
    )
