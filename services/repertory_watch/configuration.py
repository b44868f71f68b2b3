"""The configuration as it is now: when to read it again, and what of it stays in force."""

from collections.abc import Hashable

import msgspec

from repertory.errors import RepertoryError
from repertory.sources.catalogue import Catalogue
from repertory.sources.folder import FolderSource
from repertory.sources.source import Severity, Source
from repertory.sources.unreadable import Unreadable
from repertory.workspace import Workspace
from repertory_watch.signatures import signature


class Configured(msgspec.Struct, frozen=True):
    """One reading of the configuration.

    Attributes:
        workspace: With the settings of this reading.
        catalogue: What is to be in force; None while nothing could be read yet.
        error: What is wrong, with file and, where it is known, line; empty where nothing is.
    """

    workspace: Workspace
    catalogue: Catalogue | None = None
    error: str = ""


def read(before: Configured) -> Configured:
    """Read the configuration anew.

    Of the catalogue before, what cannot be read now stays in force, and so do sources that are the
    same: they remember what they have read, and servers are in the middle of a conversation. A
    folder that was found and is gone may only be away, so it stays as well, until the next start.
    """
    old = before.catalogue
    earlier = {source.name: source for source in old.sources} if old else {}
    servers = {name: one.identity() for name, one in earlier.items() if one.type == "mcp"}
    workspace = before.workspace
    try:
        workspace = workspace.again()
        new = workspace.catalogue(servers if old else None)
    except RepertoryError as error:
        message, file = str(error), str(workspace.file or "")
        where = "" if file in message else f"{file}: "
        return msgspec.structs.replace(before, workspace=workspace, error=where + message)
    kept = {one.name: _kept(one, earlier.get(one.name, one)) for one in new.sources}
    if workspace.is_found:
        kept |= {name: one for name, one in earlier.items() if name not in kept and _is_away(one)}
    sources = tuple(kept.values())
    errors = (one.message for one in new.problems if one.severity is Severity.ERROR)
    return Configured(workspace, Catalogue(sources, new.problems, new.rules), next(errors, ""))


def _kept(source: Source, last: Source) -> Source:
    """A source as it was last, if it is the same or cannot be read any more."""
    unreadable = isinstance(source, Unreadable) and not isinstance(last, Unreadable)
    return last if last == source or unreadable else source


def _is_away(source: Source) -> bool:
    return isinstance(source, FolderSource) and not source.path.exists()


class Paths:
    """The files that the configuration follows from, looked at every so often.

    That is a few hundred looks, which cost a millisecond, and finds what a watch does not: files
    and folders that are not there yet, links that lead elsewhere, mounted files that are replaced.
    """

    def __init__(self) -> None:
        self._known: dict[str, Hashable] = {}

    def follow(self, workspace: Workspace) -> None:
        """Look at what a workspace follows from; what is new among it has not changed."""
        paths = map(str, workspace.followed())
        self._known = {path: self._known.get(path, signature(path)) for path in paths}

    def changed(self) -> list[str]:
        """Those that changed, came or went since the last look."""
        now = {path: signature(path) for path in self._known}
        changed = [path for path, last in self._known.items() if now[path] != last]
        self._known = now
        return changed
