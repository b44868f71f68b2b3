"""The catalogue of a directory: its sources, and which of them may be read."""

import contextlib
import itertools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from repertory.data_directory import FETCHED, SIGN_INS, TRUSTED
from repertory.errors import ConfigurationError
from repertory.file_settings import Added
from repertory.settings import Settings, files
from repertory.sources.entry import source_path
from repertory.sources.registry import (
    contained,
    declarations,
    digest_to_trust,
    fetches,
    files_to_trust,
)
from repertory.system.files import is_project
from repertory.system.paths import lies_in, real_path
from repertory.text import one_line
from repertory.trust import TrustStore

if TYPE_CHECKING:
    from repertory.sources.configured import Catalogue
    from repertory.sources.discover import Discovery


MAX_FILES_OF_TOOLS = 100  # checked by each search without a server


class DirectoryCatalogue:
    """Determines the sources of a directory from its settings.

    Args:
        settings: The active settings.
        directory: The directory.
        paths: The folders and files given as its catalogue, if any.
        key: The key of the catalogue, for its fetched content and its index.
    """

    def __init__(
        self, settings: Settings, directory: Path, paths: tuple[Path, ...], key: str
    ) -> None:
        self._settings = settings
        self._directory = directory
        self._paths = paths
        self._key = key
        self._trust = TrustStore(settings.data_dir / TRUSTED)

    @property
    def is_found(self) -> bool:
        """Whether the catalogue was discovered, not configured or named."""
        return not self._settings.sources and not self._paths

    def searched(self) -> tuple[Path, ...]:
        """The folders that are searched recursively for sources."""
        if paths := self._paths:
            return tuple(filter(os.path.isdir, paths))  # unlike the method, it raises nothing
        is_searched = self.is_found and is_project(self._directory, Path.home())
        return (self._directory,) if is_searched else ()

    def may_list_tools(self) -> list[Path]:
        """Files in which a later change may define sources; at most ``MAX_FILES_OF_TOOLS``."""
        from repertory.sources.discover import json_files  # noqa: PLC0415 - not to search

        files = [file for folder in self.searched() for file in json_files(folder)]
        return files[:MAX_FILES_OF_TOOLS]

    def entries(self) -> list[dict[str, Any]]:
        """The catalogue as configuration entries, trusted ones first."""
        return self.discovery().entries

    def withheld(self) -> list[str]:
        """The reasons why sources of an untrusted discovered configuration are not read."""
        return [reason for _, reason in self.discovery().withheld]

    def discovery(self) -> "Discovery":
        """The entries, with the sources that were passed over or withheld.

        The entries are the given paths, or else the sources in the configuration file, or else
        those discovered in the directory and the home. Fetched sources and MCP configurations
        that the user named are added.
        """
        from repertory.sources.discover import Discovery, discover  # noqa: PLC0415 - not to search

        if self._paths:
            found = self._given()
        elif self._settings.sources:
            found = self._configured()
        else:
            found = discover(self._directory, Path.home(), self._settings.variables)
        entries, withheld = list(found.entries), list(found.withheld)
        for one in self._added:
            entry = self._prepared(one.entry)
            if one.is_confined:
                withheld.append((entry, self._not_fetched(one)))
            else:
                entries += [entry, *_contained(entry, self._settings.base)]
        if self._named:
            entries = self._with_named(entries)
        # If several files define a server, the first is used, so trusted files come first.
        entries = sorted(
            map(self._prepared, entries), key=lambda entry: not entry.get("trusted", True)
        )
        return Discovery(entries, found.passed_over, withheld, found.searched)

    def _given(self) -> "Discovery":
        """The entries of the given paths."""
        from repertory.sources.discover import Discovery, discover, entry_of  # noqa: PLC0415 - not to search

        parts = [
            discover(path)
            if os.path.isdir(path)  # noqa: PTH112 - as above
            else Discovery(entry_of(path), [])
            for path in self._paths
        ]
        return Discovery(
            [entry for part in parts for entry in part.entries],
            [one for part in parts for one in part.passed_over],
            searched={path: at for part in parts for path, at in part.searched.items()},
        )

    def _configured(self) -> "Discovery":
        """The entries of the configuration file."""
        from repertory.sources.discover import Discovery  # noqa: PLC0415 - not to search

        entries: list[dict[str, Any]] = []
        withheld: list[tuple[dict[str, Any], str]] = []
        for entry in self._settings.sources:
            if reason := self._refusal(entry):
                withheld.append((dict(entry), reason))
            elif files_to_trust(entry, self._settings.base) is None:
                entries.append(dict(entry))
            else:
                entries.append({**entry, "trusted": self._settings.trusted})
        return Discovery(entries, [], withheld)

    def _with_named(self, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Add separate entries for the MCP configurations that the user named."""
        own = self._named_entries(entries)
        named = {Path(real_path(path)) for path in self._named}

        def is_replaced(entry: Mapping[str, Any]) -> bool:
            files = self.files_of(entry)
            return "trusted" not in entry and bool(files) and files <= named

        kept = [entry for entry in entries if not is_replaced(entry)]
        # Insert them before other files that may define the same servers.
        at = [*(entry.get("type") for entry in kept), "mcp"].index("mcp")
        return [*kept[:at], *own, *kept[at:]]

    def catalogue(self, known: Mapping[str, Mapping[str, Any]]) -> "Catalogue":
        """The sources of this directory.

        Args:
            known: The identities of the active catalogue's servers, by name. They replace the
                servers of a configuration that cannot be read.

        Raises:
            ConfigurationError: A source in the configuration is invalid; the message names the
                file or files that may contain it.
        """
        try:
            return self._catalogue(known)
        except ConfigurationError as error:
            written = (
                () if self._paths else (self._settings.file, *(one.file for one in self._added))
            )
            files = [str(file) for file in dict.fromkeys(written) if file]
            if not files or any(file in str(error) for file in (*files, *self._named)):
                raise
            raise ConfigurationError(f"{' or '.join(files)}: {error}") from error

    def _catalogue(self, known: Mapping[str, Mapping[str, Any]]) -> "Catalogue":
        from repertory.sources.configured import (  # noqa: PLC0415 - not to search
            build_catalogue,
            withheld_sources,
        )

        written, base = bool(self._settings.sources) and not self._paths, self._settings.base
        found = self.discovery()
        catalogue = build_catalogue(
            found.entries, base, found=not written, known=known, named=self._named
        )
        names = [source.name for source in catalogue.sources]
        catalogue = msgspec.structs.replace(
            catalogue,
            sources=(*catalogue.sources, *withheld_sources(found.withheld, base, known, names)),
            rules=self._settings.rules,
            passed_over=(*found.passed_over, *catalogue.passed_over),
            owner="" if self._settings.is_of_team else self._key,
            searched=found.searched,
        )
        self._note_fetched(catalogue)
        if written and self._settings.is_confined:
            catalogue.stay_in(self._settings.base, found=False)
        elif self.is_found and is_project(self._directory, Path.home()):
            catalogue.stay_in(self._directory, found=True)
        return catalogue

    def outside(self, entry: Mapping[str, Any]) -> Path | None:
        """The first path of a source that leads out of the configuration's folder, or None."""
        paths = files_to_trust(entry, self._settings.base)
        if paths is None:
            paths = [source_path(entry, self._settings.base)] if "path" in entry else []
        return next(
            (Path(real_path(path)) for path in paths if not lies_in(path, self._settings.base)),
            None,
        )

    def _refusal(self, entry: Mapping[str, Any]) -> str:
        """Why a discovered configuration may not use a source; empty if it may."""
        path = self.outside(entry) if self._settings.is_confined else None
        if path is None:
            return ""
        return (
            f"{self._settings.file} was found, and a source leads to {one_line(str(path))}, which "
            f"is outside of its folder and was not read; run `{self._settings.to_trust}` to allow "
            "it."
        )

    @property
    def _added(self) -> tuple[Added, ...]:
        """The fetched sources; empty if paths were given, which are then the only sources."""
        return () if self._paths else self._settings.added

    def _not_fetched(self, one: Added) -> str:
        from repertory.sources.fetched.urls import place_of  # noqa: PLC0415 - not to search

        where = place_of(one.entry)
        return (
            f"{one.file} was found, and a source is {where}, which was not fetched; run "
            f"`{self._settings.to_trust}` to allow it."
        )

    def _note_fetched(self, catalogue: "Catalogue") -> None:
        """Record which fetched content this directory uses, for ``repertory clean``."""
        from repertory.sources.fetched.users import note  # noqa: PLC0415 - not to search

        folders = {source.place for source in catalogue.sources if source.fetches}
        note(self._store, self._key, self._directory, folders)

    @property
    def _store(self) -> Path:
        """The folder of all fetched content."""
        return self._settings.data_dir / FETCHED

    @property
    def _named(self) -> list[str]:
        """The MCP configurations that the user named."""
        return [str(path) for path in self._settings.mcp_configs]

    def _named_entries(self, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The entries of the named MCP configurations, whose servers may run.

        The options of a catalogue entry for the same file still apply. For example, its tools may
        be hidden, left out, or need a review.
        """

        def options(path: str) -> dict[str, Any]:
            file = Path(real_path(path))
            same = (
                one for one in entries if one.get("type") == "mcp" and file in self.files_of(one)
            )
            own = {key: value for key, value in next(same, {}).items() if key != "config"}
            return {**own, "type": "mcp", "trusted": True}

        groups = itertools.groupby(self._named, options)
        # If several of these files define a server, the last is used.
        return [{**own, "config": list(paths)} for own, paths in groups][::-1]

    def followed(self) -> list[Path]:
        """Every file and folder that determines the catalogue, even if it does not exist.

        Files that discovery found deep inside a project are not included.
        """
        from repertory.sources.discover import places  # noqa: PLC0415 - not to search

        settings = self._settings
        paths = files(settings.flags, self._directory, settings.environment)
        paths.append(self._settings.data_dir / TRUSTED)
        paths += settings.mcp_configs
        if given := self._paths:
            return [*paths, *given, *(place for path in given for place in places(path))]
        for entry in settings.sources:
            paths += files_to_trust(entry, self._settings.base) or ()
        for one in settings.added:
            paths += declarations(self._prepared(one.entry), self._settings.base)
        if settings.sources:
            return paths
        return paths + places(self._directory, Path.home(), settings.variables)

    def files_of(self, entry: Mapping[str, Any]) -> set[Path]:
        """The files that define an entry's sources, without links."""
        return {Path(real_path(path)) for path in files_to_trust(entry, self._settings.base) or ()}

    def _prepared(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Add the workspace's timeout, trust, environment and storage to an entry."""
        if fetches(entry):
            return {**entry, "store": str(self._store)}
        settings = self._settings
        paths = files_to_trust(entry, settings.base)
        if paths is None:
            return entry
        trusted = entry.get("trusted") or all(
            self._trust.is_trusted(path, digest_to_trust) for path in paths
        )
        more: dict[str, Any] = {"trusted": bool(trusted)}
        if not settings.trusted and entry.get("trust") == "trusted":
            more["trust"] = "review"  # a discovered configuration cannot turn off reviews
        if entry["type"] == "mcp":
            more["sign_ins"] = str(settings.data_dir.absolute() / SIGN_INS)
            if not entry.get("trusted"):
                more["approved"] = self._trust.digests()  # checked when the file is read
            if "mcp_timeout" in settings.origins and "timeout" not in entry:
                more["timeout"] = settings.values.mcp_timeout
            if settings.environment is not None:
                more["environment"] = settings.environment
        return {**entry, **more}


def _contained(entry: dict[str, Any], base: Path) -> list[dict[str, Any]]:
    """The entries in fetched content; empty if it is invalid, which is reported later."""
    with contextlib.suppress(ConfigurationError):
        return contained(entry, base)
    return []
