"""Rescanning changed paths gives the same result as a full scan."""

import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repertory.catalogue.item import Item
from repertory.errors import SourceError
from repertory.sources import reading_cache
from repertory.sources.reading import files, walk
from repertory.sources.source import Scan, Source
from repertory.system.untrusted_files import read_inside
from tests.support.edits import a_source, delete, edit

TYPES = ("skills", "markdown-skills", "python-skills", "documents", "neuroscript", "tools")
FOLDERS = ("", "a", "a/b", "a/b/c", "d", ".agents/skills/e", "node_modules")
SKILL_NAMES = ("SKILL.md", "skill.md", "skill.json", "skill.toml")
NAMES = (*SKILL_NAMES, "one.md", "two.md", "p.ns.txt", ".gitignore")
TEXTS = (
    "---\nname: x\ndescription: Does one.\n---\nBody.",
    "---\nname: x\ndescription: Does one.\n---\n" + "A long body. " * 30,
    "---\nname: x\ndescription: Does one.\n---\n" + "Another body. " * 30,
    "---\nname: y\ndescription: Does two.\n---\nBody.",
    '{"name": "x", "description": "Does one.", "tools": [{"name": "t", "inputSchema": {}}]}',
    'description = "Does it."',
    "DEFINE PROCEDURE P()\nCOMMENT:\nPURPOSE: It does.\nENDCOMMENT\nEND",
    "DEFINE PROCEDURE P()\nEND\nDEFINE PROCEDURE P()\nEND",
    "*.md\n",
    "b/\n!one.md\n",
    "---\nbroken: [\n",
    "",
)

# A new source cannot know that a broken file listed tools, unless its text says so.
TOOL_TEXTS = (TEXTS[4], '{"tools": []}', "[]", '{"tools": [')

Rounds = list[list[tuple[str, ...]]]
places = st.builds(os.path.join, st.sampled_from(FOLDERS), st.sampled_from(NAMES))
folders = st.sampled_from([*FOLDERS[1:], "f", "a/g"])


def edits(texts: tuple[str, ...]) -> st.SearchStrategy[Rounds]:
    """Rounds of edits that write these texts."""
    one = st.one_of(
        st.tuples(st.just("write"), places, st.sampled_from(texts)),
        st.tuples(st.just("write"), places, st.sampled_from(texts)),
        st.tuples(st.just("delete"), st.one_of(places, folders)),
        st.tuples(st.just("move"), st.one_of(places, folders), st.one_of(places, folders)),
        st.tuples(st.just("link"), st.one_of(places, folders), st.one_of(places, folders)),
        st.tuples(st.just("close"), folders),
        st.tuples(st.just("empty")),
    )
    return st.lists(st.lists(one, min_size=1, max_size=4), min_size=1, max_size=6)


class Follower:
    """The items and the summary of a source, kept up to date by applying its changes."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.items: dict[str, Item] = {}
        self.summary = Scan(items=[])
        self.error = ""
        self.changes = 0

    def scan(self) -> None:
        """Scan everything."""
        self.error = ""
        try:
            scan = self.source.scan()
        except SourceError as error:
            self.error = str(error)
            return
        self.items = {item.id: item for item in scan.items}
        self.summary = scan

    def follow(self, paths: list[Path]) -> None:
        """Apply the changes at these paths, or scan everything if the source asks for it."""
        change = self.source.rescan([str(path) for path in paths])
        if change is None:
            self.scan()
            return
        self.changes += 1
        self.items |= {item.id: item for item in change.items}
        for item in change.gone:
            self.items.pop(item, None)
        self.summary = change.summary

    def kept(self) -> object:
        """Everything that decides which items stay in the index."""
        summary = self.summary
        offered = self.items.keys() | summary.unchanged
        return self.error or (offered, summary.unchanged, summary.unread, summary.unread_under)

    def said(self) -> object:
        """Items and problems in a fixed order, or the error."""
        if self.error:
            return self.error
        summary = self.summary
        return (
            sorted(msgspec.json.encode(item.whole()) for item in self.items.values()),
            sorted(map(str, summary.problems)),
            sorted(summary.unread),
            sorted(summary.unread_under),
        )


@pytest.mark.parametrize("type_", TYPES)
@settings(max_examples=25)
@given(data=st.data())
def test_changes_give_the_same_result_as_a_scan(type_: str, data: st.DataObject) -> None:
    """After any edits, items, problems and unread paths equal those of a new source's scan."""
    texts = TOOL_TEXTS if type_ == "tools" else TEXTS
    rounds = data.draw(edits(texts))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "root"
        for one in ("a/SKILL.md", "a/one.md", "d/two.md", "a/b/p.ns.txt"):
            edit(root, "write", one, texts[0])
        following = Follower(a_source(type_, root))
        following.source.disk = Path(folder)
        following.scan()
        for round_ in rounds:
            following.follow([path for one in round_ for path in edit(root, *one)])
            fresh = Follower(a_source(type_, root))
            fresh.scan()
            assert following.said() == fresh.said()
        for path in root.rglob("*"):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o700)


@settings(max_examples=50)
@given(rounds=edits(TOOL_TEXTS))
def test_changes_and_scans_keep_the_same_items(rounds: Rounds) -> None:
    """The last items of a broken file are kept after a change of any file, as after a scan."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "root"
        for one in ("a/SKILL.json", "a/one.json"):
            edit(root, "write", one, TEXTS[4].replace('"t"', f'"{one}"'))
        following = Follower(a_source("tools", root))
        following.source.disk = Path(folder)
        following.scan()
        edit(root, "write", "a/one.json", TOOL_TEXTS[-1])
        following.follow([root / "a/one.json"])
        for round_ in rounds:
            kept = following.kept()
            following.scan()
            assert kept == following.kept()
            following.follow([path for one in round_ for path in edit(root, *one)])
        for path in root.rglob("*"):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o700)


def make_skills(root: Path, number: int) -> None:
    """Make folders of skills."""
    for one in range(number):
        text = f"---\nname: s{one}\ndescription: Does {one}.\n---\n"
        edit(root, "write", f"s{one}/SKILL.md", text)


def test_a_change_reads_only_the_changed_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed file or new folder is read alone, and a deleted folder causes no read."""
    make_skills(tmp_path, 20)
    following = Follower(a_source("skills", tmp_path))
    following.scan()
    listed: list[str] = []
    opened: list[str] = []

    def scandir(path: str, inner: Any = os.scandir) -> object:  # noqa: ANN401 - as it is
        listed.append(path)
        return inner(path)

    def read(root: str, place: str, *given: Any, **named: Any) -> bytes:  # noqa: ANN401 - passed on
        opened.append(place)
        return read_inside(root, place, *given, **named)

    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(files, "read_inside", read)
    following.follow(edit(tmp_path, "write", "s3/SKILL.md", "---\ndescription: New.\n---\n"))
    assert (listed, opened) == ([], ["s3/SKILL.md"])
    following.follow(edit(tmp_path, "write", "new/SKILL.md", "---\ndescription: New.\n---\n"))
    assert (listed, opened[1:]) == ([str(tmp_path / "new")], ["new/SKILL.md"])
    gone = delete(tmp_path / "s5")
    del listed[1:]  # deleting lists the folder, too
    following.follow(gone)
    assert (len(listed), len(opened)) == (1, 2)
    assert following.changes == 3
    assert len(following.items) == 20


@pytest.mark.parametrize("is_late", [False, True])
def test_a_change_during_a_scan_is_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    """The change need not wait for the scan, whose result includes it, even if it is late."""
    monkeypatch.setattr(walk, "SLICE", 2)
    monkeypatch.setattr(reading_cache, "SLICE", 2)
    make_skills(tmp_path, 9)
    source = a_source("skills", tmp_path)
    pauses: list[int] = []
    source.on_pause = lambda: pauses.append(0)
    source.scan()
    left = len(pauses) if is_late else 1
    told: list[str] = []

    def save() -> None:
        nonlocal left
        left -= 1
        if not left:
            paths = edit(tmp_path, "write", "s0/SKILL.md", "---\ndescription: Late.\n---\n")
            change = source.rescan([str(path) for path in paths])
            assert change is not None
            told.extend(item.description for item in change.items)

    source.on_pause = save
    scan = source.scan()
    assert told == ["Late."]
    assert next(item for item in scan.items if item.id == "team/s0").description == "Late."


def test_a_change_after_an_interrupted_scan_asks_for_a_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scan may have read only some of the files."""
    monkeypatch.setattr(reading_cache, "SLICE", 2)
    make_skills(tmp_path, 3)
    source = a_source("skills", tmp_path)
    source.scan()

    def end() -> None:
        raise SourceError("The watch ends.")

    source.on_pause = end
    with pytest.raises(SourceError, match="The watch ends"):
        source.scan()
    source.on_pause = None
    changed = edit(tmp_path, "write", "s0/SKILL.md", "---\ndescription: Late.\n---\n")
    assert source.rescan([str(path) for path in changed]) is None


def test_changes_below_a_missing_root_ask_for_a_scan(tmp_path: Path) -> None:
    """Its items are not deleted one by one: the scan will fail, and they are kept."""
    make_skills(tmp_path / "root", 3)
    source = a_source("skills", tmp_path / "root")
    source.scan()
    (tmp_path / "root").rename(tmp_path / "elsewhere")
    assert source.rescan([str(tmp_path / "root/s1/SKILL.md")]) is None
    (tmp_path / "root").mkdir()  # as an unmounted disk leaves it
    assert source.rescan([str(tmp_path / "root/s1/SKILL.md")]) is None


@pytest.mark.parametrize("path", ["root", "elsewhere/SKILL.md", "root/link/SKILL.md", "root/s0"])
def test_changes_that_need_a_scan_ask_for_one(tmp_path: Path, path: str) -> None:
    """These are the root itself, paths outside it, and sources or targets of links."""
    make_skills(tmp_path / "root", 2)
    (tmp_path / "root/link").symlink_to(tmp_path / "root/s0")
    source = a_source("skills", tmp_path / "root")
    assert source.rescan([str(tmp_path / path)]) is None  # it was never scanned
    source.scan()
    assert source.rescan([str(tmp_path / path)]) is None
    assert source.rescan([str(tmp_path / "root/s1/SKILL.md")]) is not None
