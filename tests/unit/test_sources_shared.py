"""Sources whose folders overlap, and sources that skip hidden and ignored folders."""

from pathlib import Path
from typing import Any

import pytest

from repertory.errors import ConfigurationError
from repertory.indexing.scan import scan_all
from repertory.sources.configured import build_catalogue
from repertory.sources.registry import build
from repertory.sources.source import PassedOver
from tests.support.builders import write

SKILL = "---\nname: s\ndescription: Does something.\n---\n"


def ids(root: Path, *entries: dict[str, Any]) -> list[str]:
    """The ids of the items that a configuration's sources find."""
    catalogue = build_catalogue(entries, root)
    scans = [one.scan for one in scan_all(catalogue.sources, lambda: None)]
    return sorted(item.id for scan in scans if scan for item in scan.items)


def test_the_innermost_source_reads_a_folder(tmp_path: Path) -> None:
    """Each skill belongs to the innermost source, in any order of entries and at any depth."""
    for place in ("a", "team/b", "team/deep/c"):
        write(tmp_path / place / "SKILL.md", SKILL)
    outer, inner, deep = (
        {"type": "skills", "name": name, "path": path}
        for name, path in (("outer", "."), ("inner", "team"), ("deep", "team/deep"))
    )
    expected = ["deep/c", "inner/b", "outer/a"]
    assert ids(tmp_path, outer, inner, deep) == expected
    assert ids(tmp_path, deep, inner, outer) == expected
    assert ids(tmp_path, outer) == ["outer/a", "outer/team/b", "outer/team/deep/c"]


def test_an_inner_source_changes_the_identity_of_the_outer_source(tmp_path: Path) -> None:
    """Otherwise an earlier scan, without the inner source, would still count as valid."""
    outer, inner = (
        {"type": "skills", "name": name, "path": path}
        for name, path in (("outer", "."), ("inner", "team"))
    )
    alone = build_catalogue([outer], tmp_path).sources[0]
    shared = build_catalogue([outer, inner], tmp_path).sources[0]
    assert alone != shared
    assert shared.identity() == {**alone.identity(), "without": ["team"]}


def test_documents_leave_single_files_to_inner_sources(tmp_path: Path) -> None:
    """Files that the inner source does not read belong to the outer one."""
    for place in ("a.md", "lib/b.md", "lib/code.py", "commands/do.md", "commands/notes.txt"):
        write(tmp_path / place, "Some text.\n")
    found = ids(
        tmp_path,
        {"type": "documents", "name": "outer", "path": ".", "include": ["**/*.py"]},
        {"type": "documents", "name": "lib", "path": "lib"},
        {"type": "markdown-skills", "name": "commands", "path": "commands"},
    )
    assert found == [
        *("commands/do", "lib/b.md", "outer/a.md", "outer/commands/notes.txt", "outer/lib/code.py")
    ]


def test_an_ignored_file_of_an_inner_source_is_not_reported_as_skipped(tmp_path: Path) -> None:
    """The inner source reads the file although the outer one ignores it."""
    write(tmp_path / "commands" / "do.md", "Some text.\n")
    write(tmp_path / ".gitignore", "do.md\n")
    catalogue = build_catalogue(
        [
            {"type": "documents", "name": "outer", "path": "."},
            {"type": "markdown-skills", "name": "commands", "path": "commands"},
        ],
        tmp_path,
    )
    outer, inner = (source.scan() for source in catalogue.sources)
    assert ([item.id for item in inner.items], outer.passed_over) == (["commands/do"], [])


def test_a_source_can_skip_hidden_and_ignored_folders(tmp_path: Path) -> None:
    """It still enters skill folders of known and unknown hosts, and reports skipped folders."""
    places = ("a", ".cache/b", "build/c", "pack/.claude/skills/d", ".claude/worktrees/x/e")
    for place in (*places, ".agent/skills/f", "pack/.new-host/skills/g/h"):
        write(tmp_path / place / "SKILL.md", SKILL)
    write(tmp_path / ".gitignore", "build\n")
    entry = {"type": "skills", "name": "all", "path": str(tmp_path)}
    [everything] = build(entry, tmp_path)
    [tracked] = build({**entry, "gitignore": True}, tmp_path)
    assert len(everything.scan().items) == 7
    scan = tracked.scan()
    assert [item.id for item in scan.items] == [
        *("all/.agent/skills/f", "all/a"),
        *("all/pack/.claude/skills/d", "all/pack/.new-host/skills/g/h"),
    ]
    assert scan.passed_over == [
        PassedOver(str(tmp_path / ".cache/b"), "it is hidden"),
        PassedOver(str(tmp_path / ".claude/worktrees"), "it is hidden"),
        PassedOver(str(tmp_path / "build"), "a .gitignore excludes it"),
    ]
    assert tracked.identity() == {**everything.identity(), "gitignore": True}
    with pytest.raises(ConfigurationError, match="true or false"):
        build({**entry, "gitignore": "yes"}, tmp_path)


def test_commands_with_two_suffixes_are_two_items(tmp_path: Path) -> None:
    """Only the suffix ``.md`` is removed from an id, so the ids of both files differ."""
    for name in ("deploy.md", "deploy.markdown"):
        write(tmp_path / name, "Deploy it.\n")
    entry = {"type": "markdown-skills", "name": "commands", "path": str(tmp_path)}
    assert ids(tmp_path, entry) == ["commands/deploy", "commands/deploy.markdown"]
