"""The catalogue of a directory, and the state that one command stores for the next.

The state can be lost: it only saves a search from scanning the project first.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from repertory.bounded import real_path
from repertory.errors import ConfigurationError, StoreError, UsageError
from repertory.files import is_project, json_bytes, write_atomically
from repertory.notices import about_withheld
from repertory.settings import SIGN_INS, TRUST_FILE, Added, Settings, files, load
from repertory.text import one_line
from repertory.trust import TrustStore, lies_in
from repertory.values import NAMESPACE

if TYPE_CHECKING:
    from repertory.sources.configured import Catalogue
    from repertory.sources.discover import Discovery
    from repertory.sources.source import PassedOver

FETCHED = "fetched"  # the folder of fetched content in the data directory
OWNER = ".directory.json"  # the end of the file that holds the directory of a key

MAX_FILES_OF_TOOLS = 100  # that each search without a server looks at

T = TypeVar("T")


class Indexed(msgspec.Struct, frozen=True, kw_only=True):
    """The catalogue of the last one-shot run.

    Attributes:
        request: A digest of the configuration it was asked for; see ``Workspace.request``.
        configuration: The configuration hash that followed from it.
        servers: The identities of the catalogue's MCP servers, by name.
    """

    request: str
    configuration: str
    servers: dict[str, dict[str, Any]] = {}

    @classmethod
    def of(cls, request: str, catalogue: "Catalogue") -> "Indexed":
        """The record of a run with this request and this catalogue."""
        return cls(request=request, configuration=catalogue.hash, servers=catalogue.known)


class Workspace:
    """A directory, its active settings, and the catalogue that follows from them.

    Attributes:
        directory: Its path.
    """

    def __init__(self, settings: Settings, directory: Path) -> None:
        self.directory = directory
        self._settings = settings
        self._data = settings.data_dir

    @property
    def settings(self) -> Settings:
        """The active settings."""
        return self._settings

    @property
    def trust(self) -> TrustStore:
        """The files that the user has trusted."""
        return TrustStore(self._data / TRUST_FILE)

    def paths(self) -> tuple[Path, ...]:
        """The folders that `repertory index PATH…` made this directory's catalogue."""
        return tuple(Path(path) for path in read_json(self._paths_file, list[str]) or ())

    def set_paths(self, paths: Sequence[Path]) -> None:
        """Make folders this directory's catalogue; no folders restore the configured or found one.

        Raises:
            UsageError: One is not there.
            StoreError: The data directory cannot be written.
        """
        for path in paths:
            if not os.path.exists(path):  # noqa: PTH110 - False also below a closed folder
                raise UsageError(f"There is no {path}; name a folder or a file to index.")
        if paths:
            write_json(self._paths_file, [str(path.resolve()) for path in paths])
            return
        try:
            self._paths_file.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(
                f"Cannot remove {self._paths_file}: {error.strerror}; choose another --data-dir."
            ) from error

    @property
    def is_found(self) -> bool:
        """Whether the catalogue was found, not configured or named."""
        return not self._settings.sources and not self.paths()

    def searched(self) -> tuple[Path, ...]:
        """The folders in which sources are found at any depth."""
        if paths := self.paths():
            return tuple(path for path in paths if path.is_dir())
        is_searched = self.is_found and is_project(self.directory, Path.home())
        return (self.directory,) if is_searched else ()

    def may_list_tools(self) -> list[Path]:
        """The files in which sources may be found after a change in place; not all of very many."""
        from repertory.sources.discover import json_files  # noqa: PLC0415 - not to search

        files = [file for folder in self.searched() for file in json_files(folder)]
        return files[:MAX_FILES_OF_TOOLS]

    def entries(self) -> list[dict[str, Any]]:
        """The catalogue as configuration entries.

        They are the paths that were given, else the configuration file's sources, else those found
        in the directory and the home; and the MCP configurations that the user named.
        """
        return self._discovery().entries

    def _discovery(self) -> "Discovery":
        """The entries, and what was not taken."""
        from repertory.sources.discover import Discovery, discover, entry_of  # noqa: PLC0415 - not to search
        from repertory.sources.registry import files_to_trust  # noqa: PLC0415 - not to search

        passed_over: list[PassedOver] = []
        withheld: list[tuple[dict[str, Any], str]] = []
        added: list[dict[str, Any]] = []
        if paths := self.paths():
            parts = [
                discover(path) if path.is_dir() else Discovery(entry_of(path), []) for path in paths
            ]
            entries = [entry for part in parts for entry in part.entries]
            passed_over = [one for part in parts for one in part.passed_over]
        elif self._settings.sources:
            trusted = self._settings.trusted
            entries = []
            for entry in self._settings.sources:
                if reason := self._refusal(entry):
                    withheld.append((dict(entry), reason))
                elif files_to_trust(entry, self.base) is None:
                    entries.append(dict(entry))
                else:
                    entries.append({**entry, "trusted": trusted})
        else:
            found = discover(self.directory, Path.home())
            entries, passed_over = found.entries, found.passed_over
        for one in self._added:
            entry = self._prepared(one.entry)
            if one.is_confined:
                withheld.append((entry, self._not_fetched(one)))
            else:
                added += [entry, *_contained(entry, self.base)]
        entries += added
        if self._named:
            named = {Path(real_path(path)) for path in self._named}
            entries = [
                entry
                for entry in entries
                if "trusted" in entry or not self._files(entry) or self._files(entry) - named
            ]
            # Before other files that may define the same servers.
            types = [entry["type"] for entry in entries] + ["mcp"]
            entry = {"type": "mcp", "config": self._named, "trusted": True}
            entries.insert(types.index("mcp"), entry)
        # Of a server in several files, the first is used: trusted ones come first.
        entries = sorted(
            map(self._prepared, entries), key=lambda entry: not entry.get("trusted", True)
        )
        return Discovery(entries, passed_over, withheld)

    def catalogue(self, known: Mapping[str, Mapping[str, Any]] | None = None) -> "Catalogue":
        """The sources of this directory.

        Args:
            known: The identities of the active catalogue's servers, by name. They stand in for the
                servers of a configuration that cannot be read. None takes the last run's.

        Raises:
            ConfigurationError: A source of the configuration is invalid; the message names the
                file, or the files that it may be in.
        """
        try:
            return self._catalogue(known)
        except ConfigurationError as error:
            written = () if self.paths() else (self.file, *(one.file for one in self._added))
            files = [str(file) for file in dict.fromkeys(written) if file]
            if not files or any(file in str(error) for file in files):
                raise
            raise ConfigurationError(f"{' or '.join(files)}: {error}") from error

    def _catalogue(self, known: Mapping[str, Mapping[str, Any]] | None) -> "Catalogue":
        from repertory.sources.configured import build_catalogue  # noqa: PLC0415 - not to search

        written = bool(self._settings.sources) and not self.paths()
        if known is None:
            last = self.indexed()
            known = last.servers if last else {}
        found = self._discovery()
        catalogue = build_catalogue(
            found.entries,
            self.base,
            found=not written,
            known=known,
            passed_over=found.passed_over,
            named=self._named,
            rules=self._settings.rules,
            withheld=found.withheld,
        )
        self._note_fetched(catalogue)
        if written and self._settings.is_confined:
            catalogue.stay_in(self.base, found=False)
        elif self.is_found and is_project(self.directory, Path.home()):
            catalogue.stay_in(self.directory, found=True)
        return catalogue

    def withheld(self) -> list[str]:
        """Why sources of a found configuration are not read until the user trusts it."""
        sources = () if self.paths() else self._settings.sources
        added = [self._not_fetched(one) for one in self._added if one.is_confined]
        return [reason for reason in map(self._refusal, sources) if reason] + added

    @property
    def notices(self) -> tuple[str, ...]:
        """What does not hold until the user trusts the configuration, besides its sources."""
        return about_withheld(self._settings)

    def outside(self, entry: Mapping[str, Any]) -> Path | None:
        """Where a path of a source leads out of the configuration's folder, if one does."""
        from repertory.sources.entry import source_path  # noqa: PLC0415 - not to search
        from repertory.sources.registry import files_to_trust  # noqa: PLC0415 - not to search

        paths = files_to_trust(entry, self.base)
        if paths is None:
            paths = [source_path(entry, self.base)] if "path" in entry else []
        return next((Path(real_path(path)) for path in paths if not lies_in(path, self.base)), None)

    def _refusal(self, entry: Mapping[str, Any]) -> str:
        """Why a found configuration may not have a source; empty if it may."""
        path = self.outside(entry) if self._settings.is_confined else None
        if path is None:
            return ""
        return (
            f"{self.file} was found, and a source leads to {one_line(str(path))}, which is outside "
            f"of its folder and was not read; run '{self._settings.to_trust}' to allow it."
        )

    @property
    def _added(self) -> tuple[Added, ...]:
        """The sources that are fetched; paths that were given stand for all sources."""
        return () if self.paths() else self._settings.added

    def _not_fetched(self, one: Added) -> str:
        from repertory.sources.fetched.urls import shown  # noqa: PLC0415 - not to search

        where = one_line(shown(str(one.entry.get("url") or one.entry.get("path"))))
        return (
            f"{one.file} was found, and a source is {where}, which was not fetched; run "
            f"'{self._settings.to_trust}' to allow it."
        )

    def _note_fetched(self, catalogue: "Catalogue") -> None:
        """Note which fetched content this directory uses, for ``repertory clean``."""
        from repertory.sources.fetched.users import note  # noqa: PLC0415 - not to search

        folders = {source.place for source in catalogue.sources if source.fetches}
        note(self._store, self.catalogue_key, self.directory, folders)

    @property
    def _store(self) -> Path:
        """The folder of all fetched content."""
        return self._data / FETCHED

    @property
    def _named(self) -> list[str]:
        """The MCP configurations that the user named."""
        return [str(path) for path in self._settings.mcp_configs]

    def again(self) -> "Workspace":
        """The same directory with freshly read settings.

        Raises:
            ConfigurationError: A configuration file is wrong.
        """
        settings = self._settings
        again = load(settings.flags, self.directory, settings.environment)
        return Workspace(again, self.directory)

    def followed(self) -> list[Path]:
        """Every file and folder that the catalogue follows from, whether it is there or not.

        Files that discovery found deep inside a project are not included.
        """
        from repertory.sources.discover import places  # noqa: PLC0415 - not to search
        from repertory.sources.registry import declarations, files_to_trust  # noqa: PLC0415 - as above

        settings = self._settings
        paths = files(settings.flags, self.directory, settings.environment)
        paths.append(self._data / TRUST_FILE)
        paths += [self._paths_file, *settings.mcp_configs]
        if given := self.paths():
            return [*paths, *given, *(place for path in given for place in places(path))]
        for entry in settings.sources:
            paths += files_to_trust(entry, self.base) or ()
        for one in settings.added:
            paths += declarations(self._prepared(one.entry), self.base)
        return paths if settings.sources else paths + places(self.directory, Path.home())

    @property
    def directory_key(self) -> str:
        """A digest of the directory, in 16 hex digits."""
        return directory_key(self.directory)

    @property
    def key(self) -> str:
        """A digest, in 16 hex digits, of the directory and everything named for it.

        Commands that name another model, configuration or namespace have another index.
        """
        settings, namespace = self._settings, self._settings.values.namespace
        return _digest(
            [
                str(self.directory),
                str(settings.named),
                settings.values.model,
                settings.values.qdrant_url,
                [str(path) for path in settings.mcp_configs],
                # Nothing for the default, whose keys are those of earlier releases.
                *([namespace] if namespace != NAMESPACE else ()),
            ]
        )

    @property
    def catalogue_key(self) -> str:
        """The key of the directory, and a digest of the configurations named for it."""
        settings = self._settings
        configs = [str(path) for path in settings.mcp_configs]
        return f"{directory_key(self.directory)}-{_digest([str(settings.named), configs])}"

    @property
    def request(self) -> str:
        """A digest of the configuration that a run follows, made without reading any source."""
        settings = self._settings
        paths = [str(path) for path in self.paths()]
        added = [(one.entry, one.is_confined) for one in settings.added]
        return _digest([str(settings.file), settings.sources, paths, self.rules, added])

    @property
    def rules(self) -> str:
        """A digest of the policies."""
        return _digest([[rule.item, rule.changes, rule.within] for rule in self._settings.rules])

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of the process that asked for the directory."""
        return self._settings.variables

    @property
    def file(self) -> Path | None:
        """The configuration file, if there is one."""
        return self._settings.file

    @property
    def base(self) -> Path:
        """The folder that relative paths of entries start from."""
        return self._settings.base

    @property
    def is_known(self) -> bool:
        """Whether this directory was indexed or served before, with any settings."""
        return self._root_file.exists() or self._paths_file.exists()

    def indexed(self) -> Indexed | None:
        """The record of the last one-shot run, if there is one."""
        return read_json(self._indexed_file, Indexed)

    def remember(self, indexed: Indexed) -> None:
        """Store the record of a one-shot run.

        Raises:
            StoreError: The data directory is not writable.
        """
        write_json(self._indexed_file, indexed)
        self._know()

    @property
    def seen_file(self) -> Path:
        """Where ``Freshness`` keeps what the last command read."""
        return self._indexed_file.with_suffix(".seen")

    def forget(self) -> None:
        """Forget the last one-shot run: a server indexes now, and the next run must compare."""
        with contextlib.suppress(OSError):
            self._indexed_file.unlink(missing_ok=True)
        self._know()

    def _know(self) -> None:
        """Store the directory's path under both keys.

        So ``repertory clean`` and other commands find it.
        """
        for file in (self._owner_file, self._root_file):
            if not file.exists():
                write_json(file, str(self.directory))

    def _files(self, entry: dict[str, Any]) -> set[Path]:
        """The files that define an entry's sources, without links."""
        from repertory.sources.registry import files_to_trust  # noqa: PLC0415 - not to search

        return {Path(real_path(path)) for path in files_to_trust(entry, self.base) or ()}

    def _prepared(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Add what only the workspace knows to an entry: time limit, trust and environment."""
        from repertory.sources.registry import (  # noqa: PLC0415 - not to search
            digest_to_trust,
            fetches,
            files_to_trust,
        )

        if fetches(entry):
            return {**entry, "store": str(self._store)}
        paths = files_to_trust(entry, self.base)
        if paths is None:
            return entry
        trusted = entry.get("trusted") or all(
            self.trust.is_trusted(path, digest_to_trust) for path in paths
        )
        timeout = self._settings.values.mcp_timeout
        given = entry["type"] == "mcp" and "mcp_timeout" in self._settings.origins
        more: dict[str, Any] = {"trusted": bool(trusted)}
        if not self._settings.trusted and entry.get("trust") == "trusted":
            more["trust"] = "review"  # a found configuration cannot switch it off
        if entry["type"] == "mcp" and not entry.get("trusted"):
            more["approved"] = self.trust.digests()  # for what is read then, not what is there now
        if given and "timeout" not in entry:
            more["timeout"] = timeout
        if entry["type"] == "mcp" and self._settings.environment is not None:
            more["environment"] = self._settings.environment
        if entry["type"] == "mcp":
            more["sign_ins"] = str(self._data.absolute() / SIGN_INS)
        return {**entry, **more}

    @property
    def _paths_file(self) -> Path:
        return self._data / "workspaces" / f"{self.directory_key}.paths.json"

    @property
    def _owner_file(self) -> Path:
        return self._data / "workspaces" / f"{self.key}{OWNER}"

    @property
    def _root_file(self) -> Path:
        return self._data / "workspaces" / f"{self.directory_key}.root.json"

    @property
    def _indexed_file(self) -> Path:
        return self._data / "workspaces" / f"{self.key}.json"


def _contained(entry: dict[str, Any], base: Path) -> list[dict[str, Any]]:
    """What the fetched content of an entry defines; an invalid one says so when it is built."""
    from repertory.sources.registry import contained  # noqa: PLC0415 - not to search

    with contextlib.suppress(ConfigurationError):
        return contained(entry, base)
    return []


def owners(data: Path) -> dict[str, Path]:
    """The directories whose data are in a data directory, by ``Workspace.key``."""
    found = {}
    for file in (data / "workspaces").glob(f"*{OWNER}"):
        if directory := read_json(file, str):
            found[file.name.removesuffix(OWNER)] = Path(directory)
    return found


def directory_key(directory: Path) -> str:
    """A digest of a directory, in 16 hex digits."""
    return _digest(str(directory))


def _digest(value: object) -> str:
    # Escapes, for the name of a directory need not be valid Unicode.
    return hashlib.sha256(json.dumps(value, default=str).encode()).hexdigest()[:16]


def read_json(path: Path, kind: type[T]) -> T | None:
    """Read a value that ``write_json`` stored; None if it is missing or invalid."""
    try:
        return msgspec.convert(json.loads(path.read_bytes()), kind)
    except (OSError, ValueError):
        return None


def write_json(path: Path, value: object) -> None:
    """Store a value as JSON with escapes: the name of a directory need not be valid Unicode.

    Raises:
        StoreError: The file cannot be written.
    """
    try:
        write_atomically(path, json_bytes(value))
    except OSError as error:
        raise StoreError(
            f"Cannot write {path}: {error.strerror}; choose another --data-dir."
        ) from error
