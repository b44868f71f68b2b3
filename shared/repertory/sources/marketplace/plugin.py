"""The content of a plugin: the places of its skills and prompts, and its MCP servers."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from repertory.catalogue.skill_format import SKILL_FILE
from repertory.errors import SourceError
from repertory.sources.fetched.fetcher import Declared
from repertory.sources.fetched.servers import MAX_SERVERS, read_json, table_of
from repertory.sources.fetched.writing import checked_folder
from repertory.sources.marketplace.listing import MANIFEST, Plugin

PROMPTS = ("commands", "agents")
MAX_NAMED = 1_000  # paths per field

_Given = tuple[Mapping[str, Any], Mapping[str, Any]]  # the marketplace's and the plugin's fields


class Offers(msgspec.Struct, frozen=True, kw_only=True):
    """The items of plugins: the last part of each id, by the file's place in the content.

    Attributes:
        skills: The ``SKILL.md`` files.
        prompts: The Markdown files of commands and agents.
    """

    skills: dict[str, str] = {}
    prompts: dict[str, str] = {}


class PluginCollector:
    """Collects the items of a marketplace's plugins. Each folder is listed only once.

    Args:
        top: The folder of all content, to which places are relative.
        is_cancelled: Whether to end soon.

    Attributes:
        offers: The items found so far. Earlier plugins keep their names.
    """

    def __init__(self, top: Path, is_cancelled: Callable[[], bool] = lambda: False) -> None:
        self.offers = Offers()
        self._top = top
        self._is_cancelled = is_cancelled
        self._listed: dict[tuple[Path, str], list[tuple[str, Path]]] = {}
        self._adds_skill = _Names(self.offers.skills).add
        self._adds_prompt = _Names(self.offers.prompts).add

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
        for place, file in self._skills(root, given):
            if place not in self.offers.skills:
                last = "" if file.parent == root else f"/{file.parent.name}"
                self._adds_skill(place, f"{plugin.name}{last}")
        for kind in PROMPTS:
            for place, file in self._prompts(root, kind, given):
                if place not in self.offers.prompts:
                    self._adds_prompt(place, f"{plugin.name}/{file.stem}")
        servers = _servers(root, given)
        return Declared(name=plugin.name, root=root, servers=servers) if servers else None

    def _skills(self, root: Path, given: _Given) -> Iterator[tuple[str, Path]]:
        """The skills in the folders that a plugin names, in its ``skills`` folder, and at its root.

        If the marketplace names skills, only these count, because plugins may share a folder.
        """
        entry, manifest = given
        named = _named(root, entry.get("skills"))
        folders = named or [root / "skills", *_named(root, manifest.get("skills"))]
        if not named and (root / SKILL_FILE).is_file():
            yield self._placed(root / SKILL_FILE)
        for folder in _outermost(folders):
            yield from self._below(folder, SKILL_FILE)

    def _prompts(self, root: Path, kind: str, given: _Given) -> Iterator[tuple[str, Path]]:
        """The Markdown files of the commands or agents of a plugin."""
        places = [root / kind]
        for fields in given:
            places += _named(root, fields.get(kind))
        for place in _outermost(places):
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


class _Names:
    """Gives unique names to items: a name in use gets a number."""

    def __init__(self, found: dict[str, str]) -> None:
        self._found = found
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}

    def add(self, place: str, name: str) -> None:
        """Add a new item."""
        free, number = name, self._numbers.get(name, 2)
        while free in self._taken:
            free, number = f"{name}-{number}", number + 1
        self._numbers[name] = number
        self._taken.add(free)
        self._found[place] = free


def _outermost(folders: Iterable[Path]) -> Iterator[Path]:
    """The folders that are not below an earlier one."""
    seen: set[Path] = set()
    for folder in folders:
        if seen.isdisjoint((folder, *folder.parents)):
            seen.add(folder)
            yield folder


def _servers(root: Path, given: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    found = table_of(read_json(root / ".mcp.json"))
    for fields in given:
        value = fields.get("mcpServers")
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                found = {**table_of({"mcpServers": one}), **found}
            for path in _named(root, one):
                found = {**table_of(read_json(path)), **found}
    return dict(list(found.items())[:MAX_SERVERS])


def _named(root: Path, value: object) -> list[Path]:
    """The existing paths below a plugin that a field names, at most ``MAX_NAMED``."""
    paths: dict[Path, None] = {}
    texts = [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]
    for text in texts[:MAX_NAMED]:
        with contextlib.suppress(ValueError):
            paths[root / checked_folder(text)] = None
    return [path for path in paths if path.exists()]
