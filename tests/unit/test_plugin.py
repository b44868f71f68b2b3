"""``plugin/`` meets the requirements of each host's format, as its schema or validator states.

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

# The fields of a manifest that all hosts know. Cursor refuses unknown fields.
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
    """The object in a JSON file."""
    found = json.loads(path.read_text("utf-8"))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("path", [CLAUDE, CURSOR, GEMINI], ids=lambda path: path.parent.name)
def test_a_manifest_names_the_plugin_and_its_version(path: Path) -> None:
    """All manifests have the same name and description, and the version of the package."""
    manifest = read(path)
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert f'\nversion = "{manifest["version"]}"\n' in project
    assert re.fullmatch(r"[a-z][a-z0-9]*", manifest["name"])
    assert manifest["name"] == "repertory"
    assert manifest["description"] == read(CLAUDE)["description"]


def test_every_host_starts_the_same_server() -> None:
    """The started command exists."""
    cursor = read(CURSOR)["mcpServers"]
    assert read(CLAUDE)["mcpServers"] == read(GEMINI)["mcpServers"] == SERVERS
    assert read(PLUGIN / cursor) == {"mcpServers": SERVERS}
    assert "mcp" in COMMANDS


def test_the_claude_code_manifest_has_only_known_fields() -> None:
    """Claude Code ignores unknown fields of a manifest and refuses those of an option."""
    manifest = read(CLAUDE)
    assert manifest.keys() <= COMMON | {"userConfig"}
    for name, option in manifest["userConfig"].items():
        assert re.fullmatch(r"[A-Za-z_]\w*", name)
        assert {"type", "title", "description"} <= option.keys() <= OPTION
        assert option["type"] in {"string", "number", "boolean", "directory", "file"}


def test_suggestions_are_off_by_default() -> None:
    """The hook runs only if the user enables it, and its failure never blocks a prompt."""
    manifest = read(CLAUDE)
    ((group,),) = manifest["hooks"].values()
    (hook,) = group["hooks"]
    assert list(manifest["hooks"]) == ["UserPromptSubmit"]
    assert manifest["userConfig"]["suggest"]["default"] is False
    assert hook["type"] == "command"
    # A shell may exit with 2 if the script is missing, and that would block the prompt.
    assert hook["command"].endswith(" || exit 0")
    script = re.search(r"\$\{CLAUDE_PLUGIN_ROOT}/([^\"]+)", hook["command"])
    assert script is not None
    assert (PLUGIN / script[1]).is_file()
    # Claude Code and Gemini CLI would read a file with this name automatically.
    assert not (PLUGIN / "hooks" / "hooks.json").exists()


def test_the_cursor_manifest_has_only_known_fields() -> None:
    """Its schema allows no others; paths are relative to the plugin."""
    manifest = read(CURSOR)
    closed = COMMON | {"minClientVersions", "publisher", "logo", "category", "tags", "rules"}
    assert manifest.keys() <= closed | {"variables"}
    assert manifest["author"].keys() <= {"name", "email"}
    assert (PLUGIN / manifest["skills"]).is_dir()


@pytest.mark.parametrize("folder", MARKETPLACES, ids=lambda folder: folder.name)
def test_a_marketplace_refers_to_the_plugin(folder: Path) -> None:
    """Its source is a path in this repository with a manifest of the same name."""
    marketplace = read(folder / "marketplace.json")
    (entry,) = marketplace["plugins"]
    assert marketplace["name"]
    assert marketplace["owner"]["name"]
    manifest = ROOT / entry["source"] / folder.name / "plugin.json"
    assert read(manifest)["name"] == entry["name"]
    assert read(manifest)["description"] == entry["description"]


def test_the_skill_follows_the_specification() -> None:
    """Its folder has the name of the skill, and the specification defines every field."""
    (path,) = PLUGIN.glob("skills/*/SKILL.md")
    skill = parse(path.read_text("utf-8"), str(path))
    fields = skill.fields or {}
    assert not skill.problems
    assert fields["name"] == path.parent.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", path.parent.name)
    assert 0 < len(fields["description"]) <= 1_024
    assert len(fields["compatibility"]) <= 500
    assert fields.keys() <= SKILL
