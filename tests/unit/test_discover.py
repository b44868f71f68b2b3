"""Finding sources without a configuration."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from repertory.agent_hosts.document import with_entry
from repertory.agent_hosts.host import Host, Machine, Scope, System
from repertory.agent_hosts.table import HOSTS
from repertory.errors import ConfigurationError, SourceError, UsageError
from repertory.sources.configured import build_catalogue
from repertory.sources.discover import discover, entry_of
from repertory.sources.mcp.config import read_files
from repertory.sources.mcp.variables import fill_in
from repertory.sources.skill_folders import HOME_ROOTS, PROJECT_ROOTS
from tests.support.builders import write


def by_type(entries: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The entries of one type."""
    return [entry for entry in entries if entry["type"] == kind]


def test_every_known_skill_root_of_a_project_and_a_home_is_found(tmp_path: Path) -> None:
    """Each root is its own source, named after its place and host."""
    project, home = tmp_path / "project", tmp_path / "home"
    for place in PROJECT_ROOTS:
        (project / place).mkdir(parents=True)
    for place in HOME_ROOTS:
        (home / place).mkdir(parents=True)
    found = by_type(discover(project, home).entries, "skills")
    assert [entry["path"] for entry in found] == [
        *(str(project / place) for place in PROJECT_ROOTS),
        *(str(home / place) for place in HOME_ROOTS),
    ]
    names = [entry["name"] for entry in found]
    assert {"project", "project-claude", "user-claude", "user-copilot"} <= set(names)
    assert {"project-opencode-skill", "user-config-opencode-skill"} <= set(names)
    assert len(set(names)) == len(names)


def test_only_the_known_places_of_a_home_are_searched(tmp_path: Path) -> None:
    """Agent hosts may start servers in the home; its other folders are not indexed."""
    home = tmp_path / "home"
    write(home / ".claude" / "skills" / "a" / "SKILL.md")
    write(home / "deep" / "SKILL.md")
    write(home / "diary.md")

    link = tmp_path / "link"
    link.symlink_to(home)

    skills = [str(home / ".claude" / "skills")]
    assert [entry["path"] for entry in discover(home, home).entries] == skills
    assert [entry["path"] for entry in discover(home, link).entries] == skills
    assert [entry["path"] for entry in discover(Path(tmp_path.anchor), home).entries] == skills
    assert {entry["type"] for entry in discover(home).entries} == {"skills", "documents"}
    assert {entry["type"] for entry in discover(tmp_path, home).entries} == {"skills", "documents"}


@pytest.mark.parametrize("system", [System.LINUX, System.MACOS])
@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.id)
def test_the_configurations_of_hosts_in_a_home_are_found(
    tmp_path: Path, host: Host, system: System
) -> None:
    """They are found where ``connect`` writes them."""
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    file = host.places[Scope.USER].file(Machine(system, home, project, {}))
    write(file, "")
    assert by_type(discover(project, home).entries, "mcp") == [{"type": "mcp", "config": str(file)}]


def test_folders_of_the_home_that_variables_move_are_found(tmp_path: Path) -> None:
    """Hosts use them instead of the usual ones. Usual configurations are found as well."""
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    moved = {
        "XDG_CONFIG_HOME": tmp_path / "config",
        "CLAUDE_CONFIG_DIR": tmp_path / "claude",
        "CODEX_HOME": tmp_path / "codex",
    }
    files = {write(home / ".config" / "goose" / "config.yaml", "")}
    for host in HOSTS:
        machine = Machine(System.LINUX, home, project, {k: str(v) for k, v in moved.items()})
        files.add(write(host.places[Scope.USER].file(machine), ""))
    skills = [
        moved["XDG_CONFIG_HOME"] / "opencode" / "skills",
        moved["CLAUDE_CONFIG_DIR"] / "skills",
        moved["CODEX_HOME"] / "prompts",
    ]
    usual = home / ".claude" / "skills"
    for folder in (*skills, usual):
        write(folder / "a" / "SKILL.md", "---\nname: a\ndescription: Does a.\n---\n")
    found = discover(project, home, {name: str(path) for name, path in moved.items()}).entries
    assert {entry["config"] for entry in by_type(found, "mcp")} == set(map(str, files))
    paths = {entry["path"] for entry in found if "path" in entry}
    assert paths == {str(project), *map(str, skills)}
    assert {"user-config-opencode", "user-claude"} < {entry.get("name") for entry in found}
    relative = discover(project, home, dict.fromkeys(moved, "config")).entries
    assert {entry["path"] for entry in by_type(relative, "skills")} == {str(usual)}


@pytest.mark.parametrize(
    "host", [host for host in HOSTS if Scope.PROJECT in host.places], ids=lambda host: host.id
)
def test_the_configurations_of_hosts_in_a_project_are_found(tmp_path: Path, host: Host) -> None:
    """Their servers belong to the project, not to the folder of the host."""
    place = host.places[Scope.PROJECT]
    paths = {place.file(Machine(System.LINUX, tmp_path, tmp_path, {}))}
    paths |= {path.with_name(name) for path in paths for name in place.files}
    if host.id == "opencode":
        paths |= {tmp_path / ".opencode" / path.name for path in paths}
    for file in paths:
        data = with_entry(b"", host.syntax, (host.servers, "notes"), host.local(["notes", "-v"]))
        write(file, data.decode())
    found = by_type(discover(tmp_path).entries, "mcp")
    assert {entry["config"] for entry in found} == set(map(str, paths))
    (server,) = read_files(sorted(paths)).servers
    assert server.workspace == str(tmp_path)


@pytest.mark.parametrize(
    "place",
    [
        *(".kiro/settings/mcp.json", ".qwen/settings.json", ".junie/mcp/mcp.json"),
        *(".roo/mcp.json", ".kilocode/mcp.json", ".github/mcp.json", ".amazonq/mcp.json"),
        ".factory/mcp.json",
    ],
)
def test_the_configurations_of_further_hosts_are_found(tmp_path: Path, place: str) -> None:
    """Their servers belong to the project, not to a folder in it."""
    file = write(tmp_path / place, '{"mcpServers": {"notes": {"command": "notes"}}}')
    assert by_type(discover(tmp_path).entries, "mcp") == [{"type": "mcp", "config": str(file)}]
    (server,) = read_files([file]).servers
    assert (server.fault, server.workspace) == ("", str(tmp_path))


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.id)
def test_the_entries_of_each_host_are_read(tmp_path: Path, host: Host) -> None:
    """An entry is read as ``connect`` writes it for this host."""
    file = host.places[Scope.USER].file(Machine(System.LINUX, tmp_path, tmp_path, {}))
    reference = host.reference % "KEY" if host.reference else "secret"
    key = f"Bearer {reference}"
    data = with_entry(b"", host.syntax, (host.servers, "notes"), host.local(["notes", "-v", "1"]))
    if host.remote:
        remote = host.remote("https://x.example/mcp", key)
        data = with_entry(data, host.syntax, (host.servers, "far"), remote)
    servers = {one.name: one for one in read_files([write(file, data.decode())]).servers}
    notes = servers["notes"]
    assert (notes.fault, notes.command, notes.args) == ("", "notes", ("-v", "1"))
    if host.remote:
        far = servers["far"]
        assert (far.fault, far.transport, far.url) == ("", "http", "https://x.example/mcp")
        with_key = msgspec.structs.replace(far, environment={"KEY": "secret"})
        assert fill_in(with_key).headers == {"Authorization": "Bearer secret"}


def test_skills_elsewhere_are_one_source_beside_the_known_folders(tmp_path: Path) -> None:
    """It has the project's name. It exists if any skill is outside the known folders."""
    write(tmp_path / "skills" / "a" / "SKILL.md")
    known = {"type": "skills", "name": "project", "path": str(tmp_path / "skills")}
    assert by_type(discover(tmp_path).entries, "skills") == [known]
    write(tmp_path / "deep" / "er" / "thing" / "SKILL.md")
    name, path = tmp_path.name, str(tmp_path)
    elsewhere = {"type": "skills", "name": name, "path": path, "gitignore": True}
    assert by_type(discover(tmp_path).entries, "skills") == [known, elsewhere]


def test_other_kinds_of_sources_are_found(tmp_path: Path) -> None:
    """They are procedures, tool lists, Python and Markdown skills, and always documents."""
    write(tmp_path / "lib" / "area.ns.txt")
    write(tmp_path / "listed.json", json.dumps([{"name": "a", "inputSchema": {}}]))
    write(tmp_path / "package.json", "{}")
    for folder in ("tools", "python-skills", ".claude/commands"):
        (tmp_path / folder).mkdir(parents=True)
    kinds = [entry["type"] for entry in discover(tmp_path).entries]
    assert sorted(kinds) == [
        "documents",
        "markdown-skills",
        "neuroscript",
        "python-skills",
        "tools",
        "tools",
    ]


def test_the_commands_and_agents_of_hosts_are_found(tmp_path: Path) -> None:
    """They are found in the project and the home, under the names that the hosts use."""
    home, project = tmp_path / "home", tmp_path / "project"
    places = {
        project / ".github" / "prompts" / "review.prompt.md": "review",
        project / ".github" / "agents" / "planner.agent.md": "planner",
        project / ".cursor" / "commands" / "v1.2.md": "v1.2",
        home / ".claude" / "agents" / "tester.md": "tester",
        home / ".codex" / "prompts" / "draft.md": "draft",
        home / ".config" / "opencode" / "commands" / "ship.md": "ship",
        project / ".gemini" / "commands" / "git" / "commit.toml": "git:commit",
        home / ".gemini" / "commands" / "explain.toml": "explain",
        home / ".gemini" / "extensions" / "cloud" / "commands" / "ship.toml": "ship",
        home / ".gemini" / "extensions" / "cloud" / "commands" / "db" / "up.toml": "db:up",
    }
    for file in places:
        write(file, 'prompt = "It explains."' if file.suffix == ".toml" else "Does something.")
    for other in ("cloud/settings.toml", "cloud/src/commands/main.toml", "commands.toml"):
        write(home / ".gemini" / "extensions" / other, "prompt = 'It is no command.'")
    catalogue = build_catalogue(discover(project, home).entries, project, found=True)
    found = {item.path: item.name for source in catalogue.sources for item in source.scan().items}
    assert found == {str(file): name for file, name in places.items()}
    assert [source.name for source in catalogue.sources if source.type != "documents"] == [
        "cursor-commands",
        "github-prompts",
        "github-agents",
        "gemini-commands",
        "user-claude-agents",
        "user-codex-prompts",
        "user-config-opencode-commands",
        "user-gemini-commands",
        "user-gemini-extensions",
    ]


def test_a_found_configuration_is_not_trusted(tmp_path: Path) -> None:
    """Its servers are listed, but not read."""
    config = {"mcpServers": {"danger": {"command": "rm", "args": ["-rf", "/"]}}}
    write(tmp_path / ".mcp.json", json.dumps(config))
    (entry,) = by_type(discover(tmp_path).entries, "mcp")
    assert "trusted" not in entry
    (source,) = build_catalogue([entry], tmp_path).sources
    with pytest.raises(SourceError, match="trust"):
        source.scan()


def test_found_sources_make_a_catalogue_with_a_stable_hash(tmp_path: Path) -> None:
    """The same folder has the same configuration hash; a new source changes it."""
    (tmp_path / "skills").mkdir()
    first = build_catalogue(discover(tmp_path).entries, tmp_path).hash
    assert len(first) == 16
    assert int(first, 16) >= 0
    write(tmp_path / "skills" / "new" / "SKILL.md")
    assert build_catalogue(discover(tmp_path).entries, tmp_path).hash == first, (
        "items are not sources"
    )
    (tmp_path / "tools").mkdir()
    assert build_catalogue(discover(tmp_path).entries, tmp_path).hash != first


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("servers.json", '{"mcpServers": {"a": {"command": "x"}}}', "mcp"),
        ("config.toml", '[mcp_servers.a]\ncommand = "x"\n', "mcp"),
        ("tools.json", '[{"name": "a"}]', "tools"),
        ("SKILL.md", "---\nname: a\n---\n", "skills"),
    ],
)
def test_a_named_file_is_indexed_by_its_type(
    tmp_path: Path, name: str, text: str, kind: str
) -> None:
    """It is an MCP configuration, a tool list, or a skill. Naming a configuration trusts it."""
    (entry,) = entry_of(write(tmp_path / name, text))
    assert entry["type"] == kind
    assert entry.get("trusted", False) is (kind == "mcp")


def test_a_named_file_of_another_type_is_refused(tmp_path: Path) -> None:
    """The message lists the types that are accepted."""
    with pytest.raises(UsageError, match="neither"):
        entry_of(write(tmp_path / "picture.png"))


def test_found_sources_never_conflict(tmp_path: Path) -> None:
    """Names are unique, a broken file is a problem with its place, and a server is used once."""
    write(tmp_path / "SKILL.md", "---\nname: a\ndescription: b\n---\n")
    write(tmp_path / "listed.json", json.dumps([{"name": "a", "inputSchema": {}}]))
    write(tmp_path / ".mcp.json", '{"mcpServers": {"one": {"command": "x"}}}')
    write(tmp_path / ".cursor" / "mcp.json", '{"mcpServers": {"one": {"command": "y"}}}')
    write(tmp_path / ".vscode" / "mcp.json", "{ broken")
    found = build_catalogue(discover(tmp_path).entries, tmp_path, found=True)
    names = [source.name for source in found.sources]
    assert names == [tmp_path.name, "tool-files", "documents", "one"]
    repeated, broken = found.problems
    assert (broken.path, broken.line) == (str(tmp_path / ".vscode" / "mcp.json"), 1)
    assert broken.message.startswith("the JSON cannot be read")
    assert "several files" in repeated.message


def test_configured_sources_with_the_same_name_are_refused(tmp_path: Path) -> None:
    """Unlike discovered sources, they are not renamed."""
    entries = [{"type": "skills", "path": "a/x"}, {"type": "skills", "path": "b/x"}]
    with pytest.raises(ConfigurationError, match="'x'"):
        build_catalogue(entries, tmp_path)
