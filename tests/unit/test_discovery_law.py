"""Discovery only adds, and finds nothing twice: properties of generated projects."""

import json
import tempfile
from collections import defaultdict
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from repertory.catalogue.item import Item
from repertory.indexing.scan import scan_all
from repertory.sources.configured import build_catalogue
from repertory.sources.discover import discover
from tests.support.builders import write
from tests.support.scans import latest_scans

FOLDERS = (
    *("", "skills", ".claude/skills", ".agents/skills", "agent/skills", "examples/skills"),
    *("packages/web/.claude/skills", ".claude/commands", "markdown-skills", "python-skills"),
    *("tools", "docs", "docs/guide", ".claude-plugin", ".hidden", ".claude/worktrees/copy/skills"),
    *("node_modules/pack/skills", "project", "deep/documents", ".new-host/skills"),
    *("../home/.claude/skills", "../home/.agents/skills"),
    *("../plugin", "../plugin/skills", "../plugin/commands", "../plugin/docs"),
)
BELOW = ("", "a", "b", "a/skills", "a/references", ".claude/skills/b")
SKILL = "---\nname: s\ndescription: Does something.\n---\n"
FILES = {
    "SKILL.md": SKILL,
    "README.md": "# Title\n\nA paragraph.\n",
    "notes.txt": "Some notes.\n",
    "command.md": "Do this.\n",
    "command.markdown": "Do that.\n",
    "lib.ns.txt": "DEFINE PROCEDURE P()\nCOMMENT:\nPURPOSE: It does.\nENDCOMMENT\nEND\n",
    "skill.json": '{"name": "x", "description": "Does one."}',
    "manifest.json": '{"name": "y", "description": "Does two."}',
    "tools.json": '[{"name": "tool", "inputSchema": {}, "description": "Does it."}]',
    ".mcp.json": '{"mcpServers": {"project": {"command": "x"}, "documents": {"command": "y"}}}',
}

folders = st.tuples(st.sampled_from(FOLDERS), st.sampled_from(BELOW)).map(
    lambda parts: "/".join(filter(None, parts))
)
places = st.tuples(folders, st.sampled_from([*FILES, ""]))


def add(root: Path, place: tuple[str, str]) -> None:
    """Add a file, or an empty folder."""
    folder, name = place
    if name:
        write(root / folder / name, FILES[name])
    else:
        (root / folder).mkdir(parents=True, exist_ok=True)


def install_plugin(home: Path, root: Path) -> None:
    """List a folder as a plugin of Claude Code."""
    listing = home / ".claude" / "plugins" / "installed_plugins.json"
    write(listing, json.dumps({"plugins": {"plugin@team": [{"installPath": str(root)}]}}))


def found(root: Path, home: Path) -> dict[str, Item]:
    """The items of everything that is discovered."""
    discovered = discover(root, home)
    catalogue = build_catalogue(discovered.entries, root, found=True)
    return dict(latest_scans(catalogue).items)


def became_part_of_a_skill(item: Item, root: Path, place: tuple[str, str]) -> bool:
    """Whether a document lies in the folder of a new SKILL.md that is not at the project root."""
    folder, name = place
    is_beside = Path(item.path).is_relative_to(root / folder)
    return item.kind == "document" and name == "SKILL.md" and bool(folder) and is_beside


@given(
    before=st.lists(places, max_size=12),
    new=st.lists(places, min_size=1, max_size=3),
    name=st.sampled_from(["repository", "project", "documents", "tools", "user-claude"]),
)
def test_a_new_file_or_folder_removes_nothing(
    before: list[tuple[str, str]], new: list[tuple[str, str]], name: str
) -> None:
    """Each item keeps its id; only documents may become part of a new skill."""
    with tempfile.TemporaryDirectory() as folder:
        root, home = Path(folder, name), Path(folder, "home")
        root.mkdir()
        install_plugin(home, Path(folder, "plugin"))
        for place in before:
            add(root, place)
        for place in new:
            earlier = found(root, home)
            add(root, place)
            gone = [item for item_id, item in earlier.items() if item_id not in found(root, home)]
            assert [one.id for one in gone if not became_part_of_a_skill(one, root, place)] == []


@given(places=st.lists(places, max_size=15))
def test_nothing_is_found_twice(places: list[tuple[str, str]]) -> None:
    """Each file belongs to one source, however the folders of sources are nested."""
    with tempfile.TemporaryDirectory() as folder:
        root, home = Path(folder, "repository"), Path(folder, "home")
        root.mkdir()
        install_plugin(home, Path(folder, "plugin"))
        for place in places:
            add(root, place)
        sources: defaultdict[str, set[str]] = defaultdict(set)
        catalogue = build_catalogue(discover(root, home).entries, root, found=True)
        for one in scan_all(catalogue.sources, lambda: None):
            for item in one.scan.items if one.scan else ():
                sources[item.path].add(item.source)
        assert {path: names for path, names in sources.items() if len(names) > 1} == {}


def test_a_new_skills_folder_hides_no_skill_of_another_folder(tmp_path: Path) -> None:
    """The project's examples stay when a team adds the first folder with a known name."""
    write(tmp_path / "examples" / "skills" / "rotating-api-keys" / "SKILL.md", SKILL)
    before = set(found(tmp_path, tmp_path / "home"))
    write(tmp_path / "skills" / "new" / "SKILL.md", SKILL)
    (tmp_path / ".claude-plugin").mkdir()
    after = set(found(tmp_path, tmp_path / "home"))
    assert after - before == {"project/new"}
    assert before <= after


def test_a_folder_is_found_once_under_its_own_name(tmp_path: Path) -> None:
    """Links of agent hosts to a folder, or to single skills in it, add nothing."""
    root, home = tmp_path / "project", tmp_path / "home"
    write(root / ".agents" / "skills" / "pdf" / "SKILL.md", SKILL)
    write(root / "lib" / "skills" / "xls" / "SKILL.md", SKILL)
    write(home / ".claude" / "skills" / "own" / "SKILL.md", SKILL)
    links = {
        ".claude/skills": root / ".agents" / "skills",
        ".codex/skills": root / "lib" / "skills",
        ".qwen/skills": home / ".claude" / "skills",
        ".roo/skills/pdf": root / ".agents" / "skills" / "pdf",
        ".roo/skills/xls": root / "lib" / "skills" / "xls",
        "linked": root / ".agents" / "skills" / "pdf",
        ".kiro/skills": tmp_path / "nowhere",
    }
    before = set(found(root, home))
    for place, target in links.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).symlink_to(target)
    assert set(found(root, home)) == before
    passed = {one.path: one.reason for one in discover(root, home).passed_over}
    assert passed == {
        str(root / ".claude/skills"): f"it leads to {root / '.agents/skills'}, "
        "which the source project-agents reads",
        str(root / ".codex/skills"): f"it leads to {root / 'lib/skills'}, "
        "where its skills are found",
        str(root / ".qwen/skills"): f"it leads to {home / '.claude/skills'}, "
        "which the source user-claude reads",
        str(root / ".kiro/skills"): "it is a link that leads nowhere",
    }


def test_a_link_out_of_the_project_is_a_source(tmp_path: Path) -> None:
    """A host's folder may be a link to a team's shared folder."""
    write(tmp_path / "team" / "pdf" / "SKILL.md", SKILL)
    (tmp_path / "project" / ".claude").mkdir(parents=True)
    (tmp_path / "project" / ".claude" / "skills").symlink_to(tmp_path / "team")
    assert set(found(tmp_path / "project", tmp_path / "home")) == {"project-claude/pdf"}


def test_a_server_and_a_folder_of_one_name_are_both_found(tmp_path: Path) -> None:
    """The server's source gets a number; the ids of its tools do not change."""
    servers = {"project": {"command": "x"}, "documents": {"url": "http://127.0.0.1:9/mcp"}}
    write(tmp_path / ".mcp.json", json.dumps({"mcpServers": servers}))
    entries = [
        {**entry, "trusted": True} if entry["type"] == "mcp" else entry
        for entry in discover(tmp_path).entries
    ]
    alone = build_catalogue(entries, tmp_path, found=True)
    assert [one.name for one in alone.sources] == ["documents", "project", "documents-2"]
    folder = {"type": "skills", "name": "project", "path": str(tmp_path / "skills")}
    both = build_catalogue([folder, *entries], tmp_path, found=True)
    assert [one.name for one in both.sources] == [
        "project",
        *("documents", "project-2", "documents-2"),
    ]
    assert both.problems == ()
