"""Sources on file systems that ignore the case or Unicode form of names, as macOS does."""

import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from repertory.indexing.scan import scan_all
from repertory.sources.configured import build_catalogue
from repertory.sources.discover import discover
from repertory.sources.registry import build
from repertory.sources.source import WatchedFolder
from repertory_watch.events import FolderWatches
from tests.support.builders import write
from tests.support.folders import any_spelling
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it simulates macOS on Linux")

SKILL = "---\nname: s\ndescription: Does something.\n---\n"
DOCUMENT = "# Leave\n\nHow to take a day off.\n"


def ids(root: Path, entries: list[dict[str, Any]], *, found: bool = False) -> list[str]:
    """The ids of all items of these sources."""
    catalogue = build_catalogue(entries, root, found=found)
    scans = [one.scan for one in scan_all(catalogue.sources, lambda: None)]
    return sorted(item.id for scan in scans if scan for item in scan.items)


@pytest.mark.parametrize(
    ("folder", "written"),
    [
        ("Private", "private"),
        ("team/Private", "Team/private"),
        ("équipe", unicodedata.normalize("NFD", "équipe")),
        (unicodedata.normalize("NFD", "한글"), "한글"),
    ],
)
def test_an_outer_source_does_not_read_a_folder_of_restricted_visibility(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, written: str
) -> None:
    """The spelling of the folder in the configuration or in a link makes no difference."""
    write(tmp_path / "docs" / folder / "leave.md", DOCUMENT)
    (tmp_path / "docs" / "link").symlink_to(written)
    any_spelling(tmp_path, monkeypatch)
    entries: list[dict[str, Any]] = [
        {"type": "documents", "name": "all", "path": "Docs"},
        {"type": "documents", "name": "few", "path": f"docs/{written}", "visible_to": ["few"]},
    ]
    assert ids(tmp_path, entries) == ["few/leave.md"]


def test_unicode_forms_are_equal_where_case_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A case-sensitive disk of macOS, or ZFS, distinguishes case but not Unicode forms."""
    for folder in ("équipe", "ÉQUIPE"):
        write(tmp_path / "docs" / folder / "leave.md", DOCUMENT)
    any_spelling(tmp_path, monkeypatch, any_case=False)
    written = unicodedata.normalize("NFD", "équipe")
    entries: list[dict[str, Any]] = [
        {"type": "documents", "name": "all", "path": "docs"},
        {"type": "documents", "name": "few", "path": f"docs/{written}", "visible_to": ["few"]},
    ]
    assert ids(tmp_path, entries) == ["all/ÉQUIPE/leave.md", "few/leave.md"]


def test_a_known_folder_with_capitals_is_found_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its skills belong only to the source of the known folder."""
    root = tmp_path / "work"
    write(root / "Skills" / "one" / "SKILL.md", SKILL)
    write(root / "other" / "SKILL.md", SKILL)
    (root / ".claude").mkdir()
    (root / ".claude" / "skills").symlink_to("../skills")
    any_spelling(tmp_path, monkeypatch)
    for given in (root, tmp_path / "WORK"):
        found = ids(given, discover(given).entries, found=True)
        assert found == sorted([f"{given.name}/other", "project/one"])


def test_a_lower_case_skill_file_outside_skills_folders_is_a_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files beside ``skill.md`` are documents, too."""
    for name in ("skill.md", "leave.md"):
        write(tmp_path / "guides" / name, DOCUMENT)
    any_spelling(tmp_path, monkeypatch)
    entry = {"type": "documents", "name": "all", "path": "."}
    assert ids(tmp_path, [entry]) == ["all/guides/leave.md", "all/guides/skill.md"]


@pytest.mark.parametrize("name", ["SKILL.md", "skill.md"])
def test_a_skill_is_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Either name of its file is accepted, and no file of the skill is a document."""
    root = tmp_path / "work"
    write(root / "skills" / "one" / name, SKILL)
    write(root / "skills" / "one" / "leave.md", DOCUMENT)
    any_spelling(tmp_path, monkeypatch)
    assert ids(root, discover(root).entries, found=True) == ["project/one"]


def test_the_target_of_a_linked_skills_folder_has_no_documents(tmp_path: Path) -> None:
    """The skill's file may have the lower-case name."""
    write(tmp_path / ".hidden" / "one" / "skill.md", SKILL)
    (tmp_path / "skills").symlink_to(".hidden")
    skills = {"type": "skills", "name": "skills", "path": "skills"}
    documents = {"type": "documents", "name": "all", "path": "."}
    assert ids(tmp_path, [skills, documents]) == ["skills/one"]


@pytest.mark.parametrize(
    ("old", "new"),
    [("Read.md", "READ.md"), ("Team", "team"), ("é", unicodedata.normalize("NFD", "é"))],
)
def test_a_rename_that_changes_only_the_spelling_removes_the_old_item(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    """The file system still finds the file by its old name."""
    is_file = old.endswith(".md")
    path = tmp_path / old if is_file else tmp_path / old / "one.md"
    write(path, DOCUMENT)
    any_spelling(tmp_path, monkeypatch)
    [source] = build({"type": "documents", "name": "team", "path": str(tmp_path)}, Path("/"))
    source.scan()
    (tmp_path / old).rename(tmp_path / new)
    change = source.rescan([str(tmp_path / old), str(tmp_path / new)])
    assert change is not None
    below = "" if is_file else "/one.md"
    assert [one.id for one in change.items] == [f"team/{new}{below}"]
    assert change.gone == {f"team/{old}{below}"}


def test_a_save_under_another_spelling_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event may have the spelling that the program used."""
    write(tmp_path / "Read.md", DOCUMENT)
    any_spelling(tmp_path, monkeypatch)
    [source] = build({"type": "documents", "name": "team", "path": str(tmp_path)}, Path("/"))
    source.scan()
    write(tmp_path / "Read.md", f"{DOCUMENT}\nAsk your lead first.\n")
    change = source.rescan([str(tmp_path / "READ.md")])
    assert change is not None
    assert [one.id for one in change.items] == ["team/Read.md"]


@pytest.mark.parametrize("written", ["Tools/Some.json", "tools"])
def test_events_name_files_as_they_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    """Events have the spelling on disk, however the source's path is spelled."""
    write(tmp_path / "TOOLS" / "some.json", "[]")
    any_spelling(tmp_path, monkeypatch)
    told: list[tuple[str, str]] = []
    folder = WatchedFolder(tmp_path / written, lambda name: name.endswith(".json"))
    with FolderWatches(lambda name, path: told.append((name, path))) as watches:
        watches.follow({"tools": folder})
        assert watches.polling == {}
        write(tmp_path / "TOOLS" / "some.json", "[ ]")
        until(lambda: ("tools", str(tmp_path / "TOOLS" / "some.json")) in told)
