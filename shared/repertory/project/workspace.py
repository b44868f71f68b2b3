"""A directory, its settings, and the state that one command stores for the next.

Losing the state is harmless: the next search then scans the project first.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from repertory.data_directory import TRUSTED, WORKSPACES
from repertory.errors import UsageError
from repertory.notices import about_withheld
from repertory.project.directory_catalogue import DirectoryCatalogue
from repertory.settings import Settings, load
from repertory.system.files import read_json, unwritable, write_json
from repertory.trust import TrustStore
from repertory.values import NAMESPACE

if TYPE_CHECKING:
    from repertory.sources.configured import Catalogue

OWNER = ".directory.json"  # suffix of the file that holds the directory of a key
SHOWN = ".shown"  # suffix of the file that holds what a person last saw


class Indexed(msgspec.Struct, frozen=True, kw_only=True):
    """A record of the catalogue that a one-shot run or a server used last.

    Attributes:
        request: A digest of the requested configuration; see ``Workspace.request``.
        configuration: The resulting configuration hash.
        servers: The identities of the catalogue's MCP servers, by name.
    """

    request: str
    configuration: str
    servers: dict[str, dict[str, Any]] = {}

    @classmethod
    def of(cls, request: str, catalogue: "Catalogue") -> "Indexed":
        """Create the record of a run with this request and this catalogue."""
        return cls(request=request, configuration=catalogue.hash, servers=catalogue.known)


class Workspace:
    """A directory, its active settings, and the catalogue that follows from them.

    Attributes:
        settings: The active settings.
        directory: Its path.
    """

    def __init__(self, settings: Settings, directory: Path) -> None:
        self.settings = settings
        self.directory = directory
        self._folder = settings.data_dir / WORKSPACES

    @property
    def trust(self) -> TrustStore:
        """The files that the user has trusted."""
        return TrustStore(self.settings.data_dir / TRUSTED)

    def paths(self) -> tuple[Path, ...]:
        """The folders that `repertory index PATH…` set as this directory's catalogue."""
        return tuple(Path(path) for path in read_json(self._paths_file, list[str]) or ())

    def set_paths(self, paths: Sequence[Path]) -> None:
        """Set folders as this directory's catalogue; none restore the configured or found one.

        Raises:
            UsageError: A path does not exist.
            StoreError: The data directory cannot be written.
        """
        for path in paths:
            if not os.path.exists(path):  # noqa: PTH110 - False also below an unreadable folder
                raise UsageError(f"There is no {path}; name a folder or a file to index.")
        if paths:
            write_json(self._paths_file, [str(path.resolve()) for path in paths])
            return
        try:
            self._paths_file.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(self._paths_file, error) from error

    @property
    def sources(self) -> DirectoryCatalogue:
        """The current sources; the paths are read again, as they may have changed."""
        return DirectoryCatalogue(self.settings, self.directory, self.paths(), self.catalogue_key)

    def catalogue(self, known: Mapping[str, Mapping[str, Any]] | None = None) -> "Catalogue":
        """The sources of this directory.

        Args:
            known: The identities of the active catalogue's servers, by name, as a fallback for a
                configuration that cannot be read. None for those of the last run.

        Raises:
            ConfigurationError: A source of the configuration is invalid; the message names the
                file, or the files that it may be in.
        """
        if known is None:
            last = self.indexed()
            known = last.servers if last else {}
        return self.sources.catalogue(known)

    def followed(self) -> list[Path]:
        """Every file and folder that determines the catalogue, whether or not it exists.

        Files that discovery found deep inside a project are not included.
        """
        return [self._paths_file, *self.sources.followed()]

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices about settings that have no effect until the user trusts the configuration."""
        return about_withheld(self.settings)

    def reloaded(self) -> "Workspace":
        """The same directory with freshly read settings.

        Raises:
            ConfigurationError: A configuration file is invalid.
        """
        settings = load(self.settings.flags, self.directory, self.settings.environment)
        return Workspace(settings, self.directory)

    @property
    def directory_key(self) -> str:
        """A digest of the directory, in 16 hex digits."""
        return directory_key(self.directory)

    @property
    def key(self) -> str:
        """A digest, in 16 hex digits, of the directory and the settings that select its index.

        Commands with another model, configuration or namespace use another index.
        """
        settings, namespace = self.settings, self.settings.values.namespace
        return _digest(
            [
                str(self.directory),
                str(settings.named),
                settings.values.model,
                settings.values.qdrant_url,
                [str(path) for path in settings.mcp_configs],
                # Omit the default, so that its keys equal those of earlier releases.
                *([namespace] if namespace != NAMESPACE else ()),
            ]
        )

    @property
    def catalogue_key(self) -> str:
        """The key of the directory and a digest of the configurations that the user named."""
        settings = self.settings
        configs = [str(path) for path in settings.mcp_configs]
        return f"{directory_key(self.directory)}-{_digest([str(settings.named), configs])}"

    @property
    def request(self) -> str:
        """A digest of the configuration of a run, computed without reading any source."""
        settings = self.settings
        paths = [str(path) for path in self.paths()]
        added = [(one.entry, one.is_confined) for one in settings.added]
        return _digest([str(settings.file), settings.sources, paths, self.rules, added])

    @property
    def rules(self) -> str:
        """A digest of the policies."""
        return _digest([[rule.item, rule.changes, rule.within] for rule in self.settings.rules])

    @property
    def base(self) -> Path:
        """The folder that relative paths in source entries start from."""
        return self.settings.base

    @property
    def is_known(self) -> bool:
        """Whether this directory was indexed or served before, with any settings."""
        return any(map(_exists, (self._root_file, self._paths_file)))

    def indexed(self) -> Indexed | None:
        """The record of the last indexed catalogue; None if missing."""
        return read_json(self._indexed_file, Indexed)

    def remember(self, indexed: Indexed) -> None:
        """Store the record of a catalogue.

        Raises:
            StoreError: The data directory is not writable.
        """
        write_json(self._indexed_file, indexed)
        self._record_directory()

    @property
    def seen_file(self) -> Path:
        """The file where ``Freshness`` keeps what the last command read."""
        return self._folder / f"{self.key}.{self.catalogue_key}.seen"

    @property
    def seen_files(self) -> Iterator[Path]:
        """The ``seen_file`` of every command with the same sources, whatever its model."""
        return self._folder.glob(f"*.{self.catalogue_key}.seen")

    @property
    def shown_file(self) -> Path:
        """The file where ``trust review`` records the versions of items that it has listed."""
        return self._folder / f"{self.directory_key}{SHOWN}"

    def forget(self) -> None:
        """Forget what the last command read, as a server indexes now and the next must compare.

        The MCP servers stay known, because their file may be half saved when the server starts.
        """
        with contextlib.suppress(OSError):
            for file in self.seen_files:
                file.unlink(missing_ok=True)
        self._record_directory()

    def _record_directory(self) -> None:
        """Store the directory's path under both keys, for later commands."""
        for file in (self._owner_file, self._root_file):
            if not _exists(file):
                write_json(file, str(self.directory))

    @property
    def _paths_file(self) -> Path:
        return self._folder / f"{self.directory_key}.paths.json"

    @property
    def _owner_file(self) -> Path:
        return self._folder / f"{self.key}{OWNER}"

    @property
    def _root_file(self) -> Path:
        return self._folder / f"{self.directory_key}.root.json"

    @property
    def _indexed_file(self) -> Path:
        return self._folder / f"{self.key}.json"


def owners(data: Path) -> dict[str, Path]:
    """The directories that have data in a data directory, by ``Workspace.key``."""
    found = {}
    for file in (data / WORKSPACES).glob(f"*{OWNER}"):
        if directory := read_json(file, str):
            found[file.name.removesuffix(OWNER)] = Path(directory)
    return found


def directory_key(directory: Path) -> str:
    """A digest of a directory, in 16 hex digits."""
    return _digest(str(directory))


def _exists(file: Path) -> bool:
    """Whether a file exists; False if its folder is not accessible."""
    return os.path.exists(file)  # noqa: PTH110 - the method raises there


def _digest(value: object) -> str:
    # JSON escapes are used because a directory name may be invalid Unicode.
    return hashlib.sha256(json.dumps(value, default=str).encode()).hexdigest()[:16]
