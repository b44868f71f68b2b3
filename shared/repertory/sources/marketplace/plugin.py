"""What a plugin offers: the places of its skills and prompts, and its MCP servers."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from repertory.catalogue.skill_format import SKILL_FILE
from repertory.sources.fetched.fetcher import Declared
from repertory.sources.fetched.servers import MAX_SERVERS, read_json, table_of
from repertory.sources.fetched.writing import checked_folder
from repertory.sources.marketplace.listing import MANIFEST, Plugin, strings

PROMPTS = ("commands", "agents")


class Offers(msgspec.Struct, frozen=True, kw_only=True):
    """The items of plugins, each with its place in the content and the end of its id.

    Attributes:
        skills: The places of ``SKILL.md`` files.
        prompts: The places of the Markdown files of commands and agents.
    """

    skills: dict[str, str] = {}
    prompts: dict[str, str] = {}


def add_offers(offers: Offers, plugin: Plugin, root: Path, top: Path) -> Declared | None:
    """Add what a plugin offers.

    Args:
        offers: What earlier plugins offer, which they keep.
        plugin: The plugin.
        root: Its folder.
        top: The folder of all content, which places are relative to.

    Returns:
        Its MCP servers, None without any.
    """
    manifest = read_json(root / MANIFEST)
    given = (plugin.fields, manifest if isinstance(manifest, dict) else {})
    for file in _skills(root, given):
        place = file.relative_to(top).as_posix()
        folder = file.parent
        last = "" if folder == root else f"/{folder.name}"
        _add(offers.skills, place, f"{plugin.name}{last}")
    for kind in PROMPTS:
        for file in _prompts(root, kind, given):
            place = file.relative_to(top).as_posix()
            _add(offers.prompts, place, f"{plugin.name}/{file.stem}")
    servers = _servers(root, given)
    return Declared(name=plugin.name, root=root, servers=servers) if servers else None


def _add(found: dict[str, str], place: str, name: str) -> None:
    """Add an item, unless an earlier plugin has its file; a name in use gets a number."""
    if place in found:
        return
    taken, free, number = set(found.values()), name, 2
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    found[place] = free


def _skills(root: Path, given: Iterable[Mapping[str, Any]]) -> Iterator[Path]:
    """The skills of the folders that a plugin names, of its own one, and itself.

    A marketplace that names skills selects these: several of its plugins may share a folder.
    """
    entry, manifest = given
    named = list(_named(root, entry.get("skills")))
    folders = named or [root / "skills", *_named(root, manifest.get("skills"))]
    if not named and (root / SKILL_FILE).is_file():
        yield root / SKILL_FILE
    for folder in folders:
        yield from sorted(folder.rglob(SKILL_FILE))


def _prompts(root: Path, kind: str, given: Iterable[Mapping[str, Any]]) -> Iterator[Path]:
    """The Markdown files of the commands or agents of a plugin."""
    places = [root / kind]
    for fields in given:
        places += _named(root, fields.get(kind))
    for place in places:
        if place.suffix == ".md":
            yield place
        yield from sorted(place.rglob("*.md"))


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


def _named(root: Path, value: object) -> Iterator[Path]:
    """The existing paths below a plugin that a field names."""
    for text in strings(value):
        try:
            path = root / checked_folder(text)
        except ValueError:
            continue
        if path.exists():
            yield path
