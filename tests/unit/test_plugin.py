"""``plugin/``: what each host's format requires of it, as its schema or validator says.

The formats: Claude Code 2.1.197 (`claude plugin validate --strict`), the schemas of Cursor's
plugins, Gemini CLI 0.61 (`gemini extensions validate`), and the Agent Skills specification.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from repertory.sources.reading.frontmatter import parse
from repertory_admin.app import COMMANDS

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "plugin"
CLAUDE = PLUGIN / ".claude-plugin" / "plugin.json"
CURSOR = PLUGIN / ".cursor-plugin" / "plugin.json"
GEMINI = PLUGIN / "gemini-extension.json"
MARKETPLACES = [ROOT / ".claude-plugin", ROOT / ".cursor-plugin"]
SERVERS = {"repertory": {"command": "repertory", "args": ["mcp"]}}

# The fields of a manifest that the hosts know, of which Cursor allows no others.
COMMON = {
    *("name", "displayName", "version", "description", "author", "homepage", "repository"),
    *("license", "keywords", "skills", "agents", "commands", "hooks", "mcpServers"),
}
OPTION = {
    *("type", "title", "description", "required", "default"),
    *("multiple", "sensitive", "min", "max"),
}
SKILL = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}


def read(path: Path) -> dict[str, Any]:
    """A JSON file."""
    found = json.loads(path.read_text("utf-8"))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("path", [CLAUDE, CURSOR, GEMINI], ids=lambda path: path.parent.name)
def test_a_manifest_names_the_plugin_and_its_version(path: Path) -> None:
    """The same in all, and the version of the package."""
    manifest = read(path)
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert f'\nversion = "{manifest["version"]}"\n' in project
    assert re.fullmatch(r"[a-z][a-z0-9]*", manifest["name"])
    assert manifest["name"] == "repertory"
    assert manifest["description"] == read(CLAUDE)["description"]


def test_every_host_starts_the_same_server() -> None:
    """The command line has its command."""
    cursor = read(CURSOR)["mcpServers"]
    assert read(CLAUDE)["mcpServers"] == read(GEMINI)["mcpServers"] == SERVERS
    assert read(PLUGIN / cursor) == {"mcpServers": SERVERS}
    assert "mcp" in COMMANDS


def test_claude_code_knows_each_field() -> None:
    """An unknown one is ignored there, or refused in an option."""
    manifest = read(CLAUDE)
    assert manifest.keys() <= COMMON | {"userConfig"}
    for name, option in manifest["userConfig"].items():
        assert re.fullmatch(r"[A-Za-z_]\w*", name)
        assert {"type", "title", "description"} <= option.keys() <= OPTION
        assert option["type"] in {"string", "number", "boolean", "directory", "file"}


def test_suggestions_are_off_by_default() -> None:
    """Neither host runs a hook that the user has not switched on, and none refuses a prompt."""
    manifest = read(CLAUDE)
    ((group,),) = manifest["hooks"].values()
    (hook,) = group["hooks"]
    assert list(manifest["hooks"]) == ["UserPromptSubmit"]
    assert manifest["userConfig"]["suggest"]["default"] is False
    assert hook["type"] == "command"
    assert hook["command"].endswith(" || exit 0")  # a shell that finds no file may end with 2
    script = re.search(r"\$\{CLAUDE_PLUGIN_ROOT}/([^\"]+)", hook["command"])
    assert script is not None
    assert (PLUGIN / script[1]).is_file()
    # Claude Code and Gemini CLI read a file of this name by themselves.
    assert not (PLUGIN / "hooks" / "hooks.json").exists()


def test_cursor_knows_each_field() -> None:
    """Its schema is closed; paths are relative to the plugin."""
    manifest = read(CURSOR)
    closed = COMMON | {"minClientVersions", "publisher", "logo", "category", "tags", "rules"}
    assert manifest.keys() <= closed | {"variables"}
    assert manifest["author"].keys() <= {"name", "email"}
    assert (PLUGIN / manifest["skills"]).is_dir()


@pytest.mark.parametrize("folder", MARKETPLACES, ids=lambda folder: folder.name)
def test_a_marketplace_leads_to_the_plugin(folder: Path) -> None:
    """Its source is a path in this repository, with a manifest of the same name."""
    marketplace = read(folder / "marketplace.json")
    (entry,) = marketplace["plugins"]
    assert marketplace["name"]
    assert marketplace["owner"]["name"]
    manifest = ROOT / entry["source"] / folder.name / "plugin.json"
    assert read(manifest)["name"] == entry["name"]
    assert read(manifest)["description"] == entry["description"]


def test_the_skill_follows_the_specification() -> None:
    """Its folder has its name, and every field is one of the specification."""
    (path,) = PLUGIN.glob("skills/*/SKILL.md")
    skill = parse(path.read_text("utf-8"), str(path))
    fields = skill.fields or {}
    assert not skill.problems
    assert fields["name"] == path.parent.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", path.parent.name)
    assert 0 < len(fields["description"]) <= 1_024
    assert len(fields["compatibility"]) <= 500
    assert fields.keys() <= SKILL
