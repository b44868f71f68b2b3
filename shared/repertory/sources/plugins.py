"""The plugins that are installed in Claude Code, and the extensions of Gemini CLI.

``installed_plugins.json`` has the installations of each plugin: version 2 a list of them, version
1 only one. Each has a folder, and is for the user or for a project.
"""

import os
from pathlib import Path
from typing import Any

import msgspec

from repertory.catalogue.skill_format import SKILL_FILE
from repertory.sources.entry import is_name
from repertory.sources.fetched.servers import read_json
from repertory.sources.marketplace.listing import LISTING, MANIFEST
from repertory.sources.marketplace.plugin import (
    PROMPT_FIELDS,
    named_paths,
    prompt_places,
    skill_folders,
)
from repertory.sources.source import PassedOver
from repertory.system.paths import is_inside, real_path
from repertory.text import is_clean, one_line

EXTENSION = "gemini-extension.json"
MAX_PLUGINS = 1_000  # per host


class Plugins(msgspec.Struct, frozen=True):
    """The contents of the plugins of a host. Paths may be missing.

    Attributes:
        folders: The folders with items: type and name of the source, and path.
        configurations: The files with MCP servers. A damaged file is one of them, because reading
            it as a configuration reports it.
        listings: The other files and folders that determine the plugins.
        passed_over: The plugins that are not read, and single files of plugins.
    """

    folders: list[tuple[str, str, Path]] = []
    configurations: list[Path] = []
    listings: list[Path] = []
    passed_over: list[PassedOver] = []

    def read(self, file: Path) -> dict[str, Any]:
        """Read a JSON file that determines the plugins; empty if it is missing or damaged."""
        self.listings.append(file)
        document = read_json(file)
        if document is None and os.path.exists(file):  # noqa: PTH110 - False also without access
            self.configurations.append(file)
        return _table(document)

    def add(self, kind: str, name: str, root: Path, place: Path) -> None:
        """Add a folder of a plugin. Its name says where it is, except for the usual skills."""
        if place != root / "skills":
            inner = place.relative_to(root).as_posix().removeprefix("skills/")
            name = f"{name}-{'plugin' if place == root else inner.replace('/', '-')}"
        if place.suffix == ".md":
            reason = "it is a single file of a plugin; only its folders are read"
            self.passed_over.append(PassedOver(str(place), reason))
        elif not is_inside(real_path(place), real_path(root)):
            reason = "it is a link that leads out of its plugin"
            self.passed_over.append(PassedOver(str(place), reason))
        else:
            self.folders.append((kind, name, place))


def of_claude(folder: Path, project: Path) -> Plugins:
    """The plugins that are enabled in Claude Code.

    Args:
        folder: The folder ``plugins`` in its folder in the home.
        project: The project, whose settings count as well.
    """
    found = Plugins()
    installed = _table(found.read(folder / "installed_plugins.json").get("plugins"))
    if not installed:
        return found
    own = project / ".claude"
    files = (folder.parent / "settings.json", own / "settings.json", own / "settings.local.json")
    enabled: dict[str, Any] = {}
    for file in files:
        enabled |= _table(found.read(file).get("enabledPlugins"))
    real = real_path(project)
    for name, installations in list(installed.items())[:MAX_PLUGINS]:
        path, reason = _installation(name, installations, real)
        if enabled.get(name) is False:
            reason = f"the plugin {one_line(name)} is disabled in the settings of Claude Code"
        elif not reason and not os.path.isdir(path):  # noqa: PTH112 - False also without access
            reason = f"the folder of the plugin {one_line(name)} is missing"
        if path:
            found.listings.append(Path(path))
        try:
            if not reason:
                _add_plugin(found, name, Path(path))
        except OSError as error:
            reason = f"the plugin {one_line(name)} cannot be read: {error.strerror}"
        if reason:
            found.passed_over.append(PassedOver(path or str(found.listings[0]), reason))
    return found


def of_gemini(extensions: Path, project: Path) -> Plugins:
    """The extensions of Gemini CLI, without their commands, which have a source of their own.

    Args:
        extensions: Their folder, ``.gemini/extensions``.
        project: The project, for which an extension may be disabled.
    """
    found = Plugins(listings=[extensions])
    rules = found.read(extensions / "extension-enablement.json")
    for manifest in sorted(extensions.glob(f"*/{EXTENSION}"))[:MAX_PLUGINS]:
        root, name = manifest.parent, f"{manifest.parent.name}@gemini"
        if not _is_enabled(_table(rules.get(root.name)).get("overrides"), real_path(project)):
            found.passed_over.append(PassedOver(str(root), "the extension is disabled in Gemini"))
        elif is_name(name):
            found.configurations.append(manifest)
            found.add("skills", name, root, root / "skills")
            found.add("markdown-skills", name, root, root / "agents")
    return found


def _is_enabled(overrides: object, project: str) -> bool:
    """Whether an extension is enabled in a project: the last rule for the project counts."""
    is_enabled, path = True, f"{project}/"
    for rule in overrides if isinstance(overrides, list) else []:
        place = str(rule).removeprefix("!")
        if path == place or (place.endswith("*") and path.startswith(place[:-1])):
            is_enabled = not str(rule).startswith("!")
    return is_enabled


def _installation(name: str, installations: object, project: str) -> tuple[str, str]:
    """The folder of a plugin in a project, and why it is not read; empty if it is read.

    Its installation for the project counts before that for the user.
    """
    path, reason = "", f"it names no folder of the plugin {one_line(name)}"
    listed = installations if isinstance(installations, list) else [installations]
    for one in sorted(map(_table, listed), key=lambda one: "projectPath" not in one):
        folder, whose = one.get("installPath"), one.get("projectPath")
        if not (isinstance(folder, str) and is_clean(folder) and Path(folder).is_absolute()):
            continue
        path, reason = folder, ""
        if whose is None or is_inside(project, real_path(str(whose))):
            break
        reason = f"the plugin {one_line(name)} is only for {one_line(str(whose))}"
    return path, reason if is_name(name) else f"{one_line(name)!r} is no name of a plugin"


def _add_plugin(found: Plugins, name: str, root: Path) -> None:
    """Add the contents of a plugin. A marketplace in its folder may name its skills."""
    manifest = found.read(root / MANIFEST)
    listed = found.read(root / LISTING).get("plugins")
    own = name.partition("@")[0]
    entries = map(_table, listed if isinstance(listed, list) else [])
    given = (next((one for one in entries if one.get("name") == own), {}), manifest)
    places = skill_folders(root, given)
    if root / "skills" in places and (root / SKILL_FILE).is_file():
        places.append(root)
    for place in places:
        found.add("skills", name, root, place)
    for field in PROMPT_FIELDS:
        for place in prompt_places(root, field, given):
            found.add("markdown-skills", name, root, place)
    found.configurations.append(root / ".mcp.json")
    if isinstance(manifest.get("mcpServers"), dict):
        found.configurations.append(root / MANIFEST)
    for path in [one for fields in given for one in named_paths(root, fields.get("mcpServers"))]:
        if path.parent in {root, (root / MANIFEST).parent}:
            found.configurations.append(path)
        else:
            reason = "a plugin's servers are read only from files directly in its folder"
            found.passed_over.append(PassedOver(str(path), reason))


def _table(value: object) -> dict[str, Any]:
    """An object of JSON; empty for any other value."""
    return value if isinstance(value, dict) else {}
