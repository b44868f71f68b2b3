"""Finding the plugins of Claude Code and the extensions of Gemini without a configuration."""

import json
from pathlib import Path
from typing import Any

import pytest

from repertory.errors import SourceError
from repertory.sources.configured import Catalogue, build_catalogue
from repertory.sources.discover import Discovery, discover, places
from repertory.sources.mcp.config import read_files
from repertory.sources.mcp.variables import fill_in, names_of
from tests.support.builders import write

SKILL = "---\nname: {0}\ndescription: Does {0}.\n---\n"


class Home:
    """A home and a project, with plugins as Claude Code and Gemini CLI install them."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project = folder / "home", folder / "project"
        self.claude = self.home / ".claude"
        self.extensions = self.home / ".gemini" / "extensions"
        self.installed: dict[str, Any] = {}
        self.project.mkdir()

    @property
    def listing(self) -> Path:
        """The list of installed plugins."""
        return self.claude / "plugins" / "installed_plugins.json"

    def install(self, name: str, manifest: object = None, **more: str) -> Path:
        """Install a plugin of the marketplace ``team``; ``more`` are fields of its installation."""
        root = self.claude / "plugins" / "cache" / "team" / name / "1.0.0"
        write(root / ".claude-plugin" / "plugin.json", json.dumps(manifest or {"name": name}))
        installation = {"scope": "user", "installPath": str(root), "version": "1.0.0", **more}
        self.installed.setdefault(f"{name}@team", []).append(installation)
        write(self.listing, json.dumps({"version": 2, "plugins": self.installed}))
        return root

    def skill(self, root: Path, place: str) -> Path:
        """Add a skill to a plugin."""
        return write(root / place / "SKILL.md", SKILL.format(Path(place).name))

    def discovery(self, **environment: str) -> Discovery:
        """What is found in the project and the home."""
        return discover(self.project, self.home, environment)

    def catalogue(self, known: Any = None) -> Catalogue:  # noqa: ANN401 - JSON
        """The sources that are found."""
        found = self.discovery().entries
        return build_catalogue(found, self.project, found=True, known=known)

    def items(self) -> dict[str, str]:
        """The names of all items that need no server, by id."""
        sources = [one for one in self.catalogue().sources if not one.needs_trust]
        return {item.id: item.name for source in sources for item in source.scan().items}

    def reasons(self) -> dict[str, str]:
        """Why places are passed over, by their paths in the home."""
        found = self.discovery().passed_over
        return {str(Path(one.path).relative_to(self.home)): one.reason for one in found}


@pytest.fixture
def user(tmp_path: Path) -> Home:
    """A home and a project, both empty."""
    return Home(tmp_path)


def servers(**named: object) -> str:
    """An MCP configuration."""
    return json.dumps({"mcpServers": named})


def test_the_items_of_an_installed_plugin_are_found(user: Home) -> None:
    """They are its skills, commands and agents; other Markdown files of it are not."""
    root = user.install("tools", {"name": "tools", "commands": ["./more", "./one.md"]})
    user.skill(root, "skills/pdf")
    user.skill(root, "tests/fixture")
    for place in ("commands/ship.md", "more/plan.md", "agents/tester.md", "README.md", "one.md"):
        write(root / place)
    assert user.items() == {
        "tools@team/pdf": "pdf",
        "tools@team-commands/ship": "ship",
        "tools@team-more/plan": "plan",
        "tools@team-agents/tester": "tester",
    }
    single = ".claude/plugins/cache/team/tools/1.0.0/one.md"
    assert user.reasons() == {single: "it is a single file of a plugin; only its folders are read"}


def test_plugins_follow_a_moved_folder_and_the_older_list(user: Home, tmp_path: Path) -> None:
    """Version 1 of the list has one installation of each plugin, whose folder may be anywhere."""
    user.skill(tmp_path / "clone", "skills/pdf")
    installation = {"installPath": str(tmp_path / "clone"), "version": "1.0.0"}
    text = json.dumps({"version": 1, "plugins": {"tools@team": installation}})
    listing = write(tmp_path / "moved" / "plugins" / "installed_plugins.json", text)
    moved = {"CLAUDE_CONFIG_DIR": str(tmp_path / "moved")}
    skills = str(tmp_path / "clone" / "skills")
    entry = {"type": "skills", "name": "tools@team", "path": skills}
    assert entry in user.discovery(**moved).entries
    assert entry not in user.discovery().entries
    assert {listing, Path(skills)} <= {*places(user.project, user.home, moved)}


def test_skills_that_a_marketplace_in_the_same_folder_does_not_name_are_left_out(
    user: Home,
) -> None:
    """Each of its plugins is installed with the folder of all."""
    root = user.install("documents")
    for name in ("pdf", "art"):
        user.skill(root, f"skills/{name}")
    plugins = [{"name": "art", "skills": ["./skills/art"]}]
    plugins += [{"name": "documents", "skills": ["./skills/pdf"]}]
    write(root / ".claude-plugin" / "marketplace.json", json.dumps({"plugins": plugins}))
    assert user.items() == {"documents@team-pdf/pdf": "pdf"}


def test_a_plugin_that_is_one_skill_is_found(user: Home) -> None:
    """Its ``SKILL.md`` is in its own folder."""
    root = user.install("pdf")
    write(root / "SKILL.md", SKILL.format("pdf"))
    assert user.items() == {"pdf@team-plugin/1.0.0": "pdf"}


def test_the_servers_of_plugins_and_extensions_await_trust(user: Home) -> None:
    """They are in ``.mcp.json``, also at its top level, in the manifest, or in a named file."""
    run = {"command": "x"}
    inline = user.install("inline", {"name": "inline", "mcpServers": {"one": run}})
    bare = user.install("bare")
    write(bare / ".mcp.json", json.dumps({"two": run, "version": 1, "notes": {"a": "b"}}))
    named = user.install("named", {"mcpServers": ["./servers.json", "./deep/servers.json"]})
    write(named / "servers.json", servers(three=run))
    write(named / "deep" / "servers.json", servers(five=run))
    write(user.extensions / "cloud" / "gemini-extension.json", servers(four=run))
    found = [one for one in user.catalogue().sources if one.needs_trust]
    assert [source.name for source in found] == ["one", "two", "three", "four"]
    for source in found:
        with pytest.raises(SourceError, match="was found but not run"):
            source.scan()
    place = ".claude/plugins/cache/team/named/1.0.0/deep/servers.json"
    reason = "a plugin's servers are read only from files directly in its folder"
    assert user.reasons() == {place: reason}
    assert inline / ".claude-plugin" / "plugin.json" in places(user.project, user.home)


def test_the_folder_of_a_plugin_is_known_to_its_servers(
    user: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host's variable for it is no variable of the environment, which may have another's."""
    monkeypatch.setenv("CLAUDE_PLUGIN_ROOT", "/another")
    own = {"command": "${CLAUDE_PLUGIN_ROOT}/run", "env": {"KEY": "${KEY}"}}
    root = user.install("tools", {"mcpServers": {"own": own}})
    extension = user.extensions / "cloud"
    far = {"command": "node", "args": ["${extensionPath}${/}run.js", "$UNSET"]}
    write(extension / "gemini-extension.json", servers(far=far, sse={"url": "https://x.example"}))
    (server,) = read_files([root / ".claude-plugin" / "plugin.json"]).servers
    assert names_of(server) == ["KEY"]
    monkeypatch.setenv("KEY", "secret")
    assert fill_in(server).command == f"{root}/run"
    far_server, sse = read_files([extension / "gemini-extension.json"]).servers
    assert fill_in(far_server).args == (f"{extension}/run.js", "$UNSET")
    assert sse.transport == "sse"


def test_a_disabled_plugin_is_passed_over(user: Home) -> None:
    """The project's settings override the user's, and its local ones override both."""
    for name in ("off", "on", "again"):
        user.skill(user.install(name), f"skills/{name}")

    def settings(folder: Path, name: str, **enabled: bool) -> None:
        ids = {f"{plugin}@team": is_on for plugin, is_on in enabled.items()}
        write(folder / name, json.dumps({"enabledPlugins": ids}))

    settings(user.claude, "settings.json", off=False, on=True, again=False)
    settings(user.project / ".claude", "settings.json", again=False, on=False)
    settings(user.project / ".claude", "settings.local.json", again=True, on=True)
    assert set(user.items().values()) == {"on", "again"}
    reason = "the plugin off@team is disabled in the settings of Claude Code"
    assert user.reasons() == {".claude/plugins/cache/team/off/1.0.0": reason}


def test_a_plugin_of_another_project_or_without_a_folder_is_passed_over(user: Home) -> None:
    """A plugin may be installed for several projects and for the user."""
    both = user.install("both", projectPath="/elsewhere")
    user.install("both", projectPath=str(user.project))
    user.skill(both, "skills/both")
    other = user.install("other", projectPath="/elsewhere")
    user.skill(other, "skills/other")
    user.install("gone", installPath=str(user.claude / "gone"))
    user.install("relative", installPath="gone")
    user.skill(user.install("bad/name"), "skills/bad")
    assert user.items() == {"both@team/both": "both"}
    cache, listing = ".claude/plugins/cache/team", ".claude/plugins/installed_plugins.json"
    assert user.reasons() == {
        f"{cache}/other/1.0.0": "the plugin other@team is only for /elsewhere",
        ".claude/gone": "the folder of the plugin gone@team is missing",
        listing: "it names no folder of the plugin relative@team",
        f"{cache}/bad/name/1.0.0": "'bad/name@team' is no name of a plugin",
    }


def test_folders_outside_of_a_plugin_are_not_read(user: Home) -> None:
    """Neither links nor named paths lead out of it."""
    outside = user.home / "private"
    write(outside / "diary.md")
    user.skill(outside, "own")
    root = user.install("tools", {"commands": ["../../../../../../../private"], "skills": "/"})
    (root / "agents").symlink_to(outside)
    assert user.items() == {}
    place = ".claude/plugins/cache/team/tools/1.0.0/agents"
    assert user.reasons() == {place: "it is a link that leads out of its plugin"}


def test_the_skills_and_agents_of_extensions_are_found(user: Home) -> None:
    """Markdown commands in an extension are for other hosts. A disabled extension is left out."""
    for name in ("cloud", "off", "on"):
        root = user.extensions / name
        write(root / "gemini-extension.json", json.dumps({"name": name, "version": "1.0.0"}))
        user.skill(root, f"skills/{name}")
        write(root / "commands" / "other.md")
    write(user.extensions / "cloud" / "agents" / "planner.md")
    user.skill(user.extensions, "stray/skills/stray")
    here, above = f"{user.project}/", f"{user.project.parent}/*"
    rules = {"off": ["!/elsewhere/*", f"!{above}"], "on": [f"!{above}", here], "cloud": 1}
    enablement = {name: {"overrides": overrides} for name, overrides in rules.items()}
    write(user.extensions / "extension-enablement.json", json.dumps(enablement))
    assert user.items() == {
        "cloud@gemini/cloud": "cloud",
        "cloud@gemini-agents/planner": "planner",
        "on@gemini/on": "on",
    }
    assert user.reasons() == {".gemini/extensions/off": "the extension is disabled in Gemini"}


@pytest.mark.parametrize(
    "place",
    [
        ".claude/plugins/installed_plugins.json",
        ".claude/plugins/cache/team/tools/1.0.0/.claude-plugin/plugin.json",
        ".claude/settings.json",
        ".gemini/extensions/cloud/gemini-extension.json",
    ],
)
def test_a_damaged_file_is_one_problem(user: Home, place: str) -> None:
    """The problem names the file and line. The servers of the last run keep their items."""
    root = user.install("tools", {"mcpServers": {"own": {"command": "x"}}})
    user.skill(root, "skills/pdf")
    write(user.extensions / "cloud" / "gemini-extension.json", servers(far={"command": "x"}))
    before = user.catalogue()
    assert before.problems == ()
    write(user.home / place, '{"plugins":\n')
    after = user.catalogue(before.known)
    (problem,) = after.problems
    assert (problem.path, problem.line) == (str(user.home / place), 2)
    assert {"own", "far"} <= {source.name for source in after.sources}


@pytest.mark.parametrize("text", ["[]", '{"plugins": []}', '{"plugins": {"a@b": [1, null]}}'])
def test_a_list_in_an_unknown_form_harms_nothing(user: Home, text: str) -> None:
    """Other sources are still found."""
    skills = user.skill(user.claude, "skills/own")
    write(user.listing, text)
    assert user.items() == {"user-claude/own": skills.parent.name}
