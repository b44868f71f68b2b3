"""The content of a plugin: the places of its skills and prompts, and its MCP servers."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from repertory.catalogue.skill_format import SKILL_FILE
from repertory.errors import SourceError
from repertory.sources.fetched.fetcher import Declared
from repertory.sources.fetched.servers import MAX_SERVERS, read_json, table_of
from repertory.sources.fetched.writing import checked_folder
from repertory.sources.marketplace.listing import MANIFEST, Plugin

SKILLS, PROMPTS = "skills", "prompts"  # the kinds of items
MAX_NAMED = 1_000  # paths per field
PROMPT_FIELDS = ("commands", "agents")  # also the names of the folders

Given = tuple[Mapping[str, Any], Mapping[str, Any]]  # the marketplace's and the plugin's fields


class PluginCollector:
    """Collects the items of a marketplace's plugins. Each folder is listed only once.

    Args:
        top: The folder of all content, to which places are relative.
        is_cancelled: Whether to end soon.

    """

    def __init__(self, top: Path, is_cancelled: Callable[[], bool] = lambda: False) -> None:
        self._top = top
        self._is_cancelled = is_cancelled
        self._listed: dict[tuple[Path, str], list[tuple[str, Path]]] = {}
        self._skills, self._prompts = _Ids(), _Ids()

    @property
    def ids(self) -> dict[str, dict[str, str]]:
        """The last part of each item's id, by the kind of item and its file's place in the content.

        An item of several plugins has the id of the first.
        """
        return {SKILLS: self._skills.by_place, PROMPTS: self._prompts.by_place}

    def add(self, plugin: Plugin, root: Path) -> Declared | None:
        """Add the items of a plugin.

        Args:
            plugin: The plugin.
            root: Its folder.

        Returns:
            Its MCP servers; None without servers.

        Raises:
            SourceError: The fetch was cancelled.
        """
        manifest = read_json(root / MANIFEST)
        given = (plugin.fields, manifest if isinstance(manifest, dict) else {})
        for place, file in self._skill_files(root, given):
            last = "" if file.parent == root else f"/{file.parent.name}"
            self._skills.add(place, f"{plugin.name}{last}")
        for field in PROMPT_FIELDS:
            for place, file in self._prompt_files(root, field, given):
                self._prompts.add(place, f"{plugin.name}/{file.stem}")
        servers = _servers(root, given)
        return Declared(name=plugin.name, root=root, servers=servers) if servers else None

    def _skill_files(self, root: Path, given: Given) -> Iterator[tuple[str, Path]]:
        """The skills in the folders of a plugin, and at its root."""
        entry, _ = given
        if not named_paths(root, entry.get("skills")) and (root / SKILL_FILE).is_file():
            yield self._placed(root / SKILL_FILE)
        for folder in skill_folders(root, given):
            yield from self._below(folder, SKILL_FILE)

    def _prompt_files(self, root: Path, field: str, given: Given) -> Iterator[tuple[str, Path]]:
        """The Markdown files of the commands or agents of a plugin."""
        for place in prompt_places(root, field, given):
            if place.suffix == ".md":
                yield self._placed(place)
            yield from self._below(place, "*.md")

    def _below(self, folder: Path, pattern: str) -> list[tuple[str, Path]]:
        """The files below a folder, each with its place in the content."""
        if self._is_cancelled():
            raise SourceError("The fetch was interrupted.")
        key = folder, pattern
        if key not in self._listed:
            self._listed[key] = [self._placed(file) for file in sorted(folder.rglob(pattern))]
        return self._listed[key]

    def _placed(self, file: Path) -> tuple[str, Path]:
        return file.relative_to(self._top).as_posix(), file


def skill_folders(root: Path, given: Given) -> list[Path]:
    """The folders that a plugin names for skills, and its folder ``skills``, which may be missing.

    If the marketplace names skills, only these count, because plugins may share a folder.
    """
    entry, manifest = given
    named = named_paths(root, entry.get("skills"))
    return _outermost(named or [root / "skills", *named_paths(root, manifest.get("skills"))])


def prompt_places(root: Path, field: str, given: Given) -> list[Path]:
    """The folders and files of the commands or agents of a plugin; the usual one may be missing."""
    named = (path for fields in given for path in named_paths(root, fields.get(field)))
    return _outermost([root / field, *named])


class _Ids:
    """Unique ids of items by the places of their files: an id in use gets a number."""

    def __init__(self) -> None:
        self.by_place: dict[str, str] = {}
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}

    def add(self, place: str, wanted: str) -> None:
        """Give an item an id, unless it has one."""
        if place in self.by_place:
            return
        free, number = wanted, self._numbers.get(wanted, 2)
        while free in self._taken:
            free, number = f"{wanted}-{number}", number + 1
        self._numbers[wanted] = number
        self._taken.add(free)
        self.by_place[place] = free


def _outermost(folders: Iterable[Path]) -> list[Path]:
    """The folders that are not below an earlier one."""
    seen: dict[Path, None] = {}
    for folder in folders:
        if seen.keys().isdisjoint((folder, *folder.parents)):
            seen[folder] = None
    return list(seen)


def _servers(root: Path, given: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    found = table_of(read_json(root / ".mcp.json"))
    for fields in given:
        value = fields.get("mcpServers")
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                found = {**table_of({"mcpServers": one}), **found}
            for path in named_paths(root, one):
                found = {**table_of(read_json(path)), **found}
    return dict(list(found.items())[:MAX_SERVERS])


def named_paths(root: Path, value: object) -> list[Path]:
    """The existing paths below a plugin that a field names, at most ``MAX_NAMED``."""
    paths: dict[Path, None] = {}
    texts = [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]
    for text in texts[:MAX_NAMED]:
        with contextlib.suppress(ValueError):
            paths[root / checked_folder(text)] = None
    return [path for path in paths if path.exists()]
