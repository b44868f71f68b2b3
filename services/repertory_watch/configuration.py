"""The current configuration: when to reload it, and which of its sources are kept."""

import time
from collections.abc import Iterable

import msgspec

from repertory.errors import RepertoryError
from repertory.project.workspace import Workspace
from repertory.sources.configured import Catalogue, Unreadable
from repertory.sources.discover import finds, may_find
from repertory.sources.folder import FolderSource
from repertory.sources.folder_memory import GRANULARITY
from repertory.sources.source import Source, WatchedFolder
from repertory.system.files import Signature, signature
from repertory.system.paths import listed_path

SECOND = 1_000_000_000  # nanoseconds


class Configuration(msgspec.Struct, frozen=True):
    """The result of one load.

    Attributes:
        workspace: The workspace, with the settings of this load.
        catalogue: The catalogue to use; None until one could be loaded.
        error: The error with its file and, if known, line; empty if the load succeeded.
    """

    workspace: Workspace
    catalogue: Catalogue | None = None
    error: str = ""


def reload(before: Configuration) -> Configuration:
    """Load the configuration again.

    Unchanged and unreadable sources stay the same objects: they remember their files, and servers
    keep their sessions. A found source that is away stays as well, until the next start.
    """
    old = before.catalogue
    earlier = {source.name: source for source in old.sources} if old else {}
    workspace = before.workspace
    try:
        workspace = workspace.reloaded()
        new = workspace.catalogue(old.known if old else None)
    except RepertoryError as error:
        return msgspec.structs.replace(before, workspace=workspace, error=str(error))
    kept = {one.name: _kept(one, earlier.get(one.name, one)) for one in new.sources}
    if workspace.sources.is_found and before.workspace.sources.is_found:
        kept |= {name: one for name, one in earlier.items() if name not in kept and one.is_away()}
    sources = tuple(kept.values())
    catalogue = Catalogue(sources, new.problems, new.rules, owner=new.owner)
    return Configuration(workspace, catalogue, catalogue.error)


def _kept(source: Source, last: Source) -> Source:
    """Return the earlier source if it is equal, or if the new one is unreadable."""
    unreadable = isinstance(source, Unreadable) and not isinstance(last, Unreadable)
    return last if last == source or unreadable else source


class SearchedFolders:
    """The folders that discovery searches: a new file in one of them may require a new source.

    Attributes:
        folders: The watched folders by path, which never equals the name of a source.
    """

    def __init__(self) -> None:
        self.folders: dict[str, WatchedFolder] = {}

    def follow(self, workspace: Workspace) -> set[str]:
        """Take the folders of a workspace; return the names of those no longer searched."""
        paths = {str(path): path for path in workspace.sources.searched()}
        gone = self.folders.keys() - paths.keys()
        self.folders = {
            name: self.folders.get(name, WatchedFolder(path, may_find))
            for name, path in paths.items()
        }
        return gone

    def lacks(self, sources: Iterable[Source], name: str, changed: Iterable[str]) -> bool:
        """Whether a changed file may need a source that is not among these.

        Args:
            sources: The sources.
            name: The name of the folder.
            changed: The real paths of files in it.
        """
        root = listed_path(name)
        readers = [one for one in sources if isinstance(one, FolderSource)]
        return any(
            finds(root, path) and not any(one.may_read(path) for one in readers) for path in changed
        )


class WatchedPaths:
    """The files that define the configuration, checked at intervals.

    A check makes a few hundred ``stat`` calls, which take about a millisecond. It notices changes
    that file events miss: new files and folders, changed links, replaced mounted files.
    """

    def __init__(self) -> None:
        self._signatures: dict[str, Signature | None] = {}
        self._unsettled: set[str] = set()

    def follow(self, workspace: Workspace) -> None:
        """Check the paths of a workspace from now on; a new path does not count as changed."""
        paths = map(str, workspace.followed())
        self._signatures = {path: self._signatures.get(path, signature(path)) for path in paths}

    def changed(self) -> list[str]:
        """Return the paths that were changed, created or deleted since the last check.

        On a file system with timestamps in whole seconds, a path changed in the current second is
        returned again when that second is over.
        """
        now = {path: signature(path) for path in self._signatures}
        changed = [path for path, last in self._signatures.items() if now[path] != last]
        unsettled = {path for path, one in now.items() if one and _may_change_again(one)}
        settled = self._unsettled & now.keys() - unsettled
        self._signatures, self._unsettled = now, unsettled
        return [*dict.fromkeys([*changed, *sorted(settled)])]


def _may_change_again(one: Signature) -> bool:
    """Whether the file may still change without a change of its signature."""
    _, changed_at, *_ = one
    return not changed_at % SECOND and abs(time.time_ns() - changed_at) <= GRANULARITY
