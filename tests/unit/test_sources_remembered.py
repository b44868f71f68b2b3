"""A source that caches its files gives the same scan as a new source."""

import contextlib
import os
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from repertory.errors import SourceError
from repertory.sources import folder_memory
from repertory.sources.folder import FolderSource
from repertory.sources.registry import build
from repertory.sources.source import Source
from repertory.system.files import Signature, signature
from tests.support.builders import write

TYPES = ("skills", "markdown-skills", "python-skills", "documents", "neuroscript", "tools")
FOLDERS = ("", "a", "a/b", "c")
NAMES = ("SKILL.md", "one.md", "two.md", "skill.json", "skill.toml", "p.ns.txt", ".gitignore")
TEXTS = (
    "---\nname: x\ndescription: Does one.\n---\nBody.",
    "---\nname: x\ndescription: Does two.\n---\nBody.",
    '{"name": "x", "description": "Does one.", "tools": [{"name": "t", "inputSchema": {}}]}',
    'description = "Does it."',
    "DEFINE PROCEDURE P()\nCOMMENT:\nPURPOSE: It does.\nENDCOMMENT\nEND",
    "*.md\n",
    "---\nbroken: [\n",
    "",
)

# No text is broken, because a new source cannot know which tools a broken file listed.
TOOL_TEXTS = (TEXTS[2], '{"tools": []}', "[]", '{"tools": [{"name": "u", "inputSchema": {}}]}')

Rounds = list[list[tuple[str, ...]]]
places = st.builds(os.path.join, st.sampled_from(FOLDERS), st.sampled_from(NAMES))


def edits(texts: tuple[str, ...], at_least: int) -> st.SearchStrategy[Rounds]:
    """Rounds of edits that write these texts."""
    folders = st.sampled_from(FOLDERS[1:])
    one = st.one_of(
        st.tuples(st.just("write"), places, st.sampled_from(texts)),
        st.tuples(st.just("delete"), places),
        st.tuples(st.just("move"), places, places),
        st.tuples(st.just("move folder"), folders, st.sampled_from(("d", "c/e"))),
    )
    return st.lists(st.lists(one, min_size=1, max_size=4), min_size=at_least, max_size=5)


def a_source(type_: str, root: Path) -> Source:
    """Build a source of a type on a folder."""
    [source] = build({"type": type_, "path": str(root), "name": "team"}, Path("/"))
    return source


def edit(root: Path, number: int, how: str, place: str, other: str = "") -> None:
    """Make one edit, a second after the previous one; impossible edits are skipped."""
    path = root / place
    if how == "write":
        write(path, other)
        os.utime(path, (number, number))
    elif how == "delete":
        path.unlink(missing_ok=True)
    elif path.exists() and not (root / other).exists():
        (root / other).parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):  # a folder into itself
            path.rename(root / other)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat no file as recently changed."""
    monkeypatch.setattr(folder_memory, "GRANULARITY", -60_000_000_000)


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("type_", TYPES)
@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_a_scan_after_any_edits_equals_that_of_a_new_source(
    type_: str, data: st.DataObject
) -> None:
    """Items, their order, problems and kept ids equal those of a source with an empty cache."""
    rounds = data.draw(edits(TOOL_TEXTS if type_ == "tools" else TEXTS, at_least=1))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        source = a_source(type_, root)
        number = 0
        for one in rounds:
            for each in one:
                number += 1
                edit(root, number, *each)
            assert source.scan() == a_source(type_, root).scan()


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("type_", TYPES)
@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(rounds=edits(TEXTS, at_least=2))
def test_a_resumed_source_reads_only_changed_files(type_: str, rounds: Rounds) -> None:
    """The scan and the unchanged items together equal the scan of a source that never stopped.

    If nothing has changed, a further resumed scan reports all items as unchanged.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        lasting = a_source(type_, root)
        remembered = folder_memory.Memory()
        number = 0
        for one in rounds:
            for each in one:
                number += 1
                edit(root, number, *each)
            source = a_source(type_, root)
            assert isinstance(source, FolderSource)
            source.resume(remembered, lambda: False)
            scan, whole = source.scan(), lasting.scan()
            items = {item.id: item for item in whole.items}
            assert all(items[item.id] == item for item in scan.items)
            # What a broken file offered before stays unchanged for both.
            assert {item.id for item in scan.items} | scan.unchanged == {*items} | whole.unchanged
            assert (scan.unread, scan.unread_under) == (whole.unread, whole.unread_under)
            assert sorted(map(str, scan.problems)) == sorted(map(str, whole.problems))
            remembered = source.memory()
            assert remembered.seen.is_current()
            again = a_source(type_, root)
            assert isinstance(again, FolderSource)
            again.resume(remembered, lambda: False)
            assert again.scan().unchanged >= {
                one.id
                for known in remembered.known.values()
                for one in known.items
                if not known.broken
            } - _of_several_files(remembered)


@pytest.mark.parametrize("type_", TYPES)
def test_items_of_files_that_there_is_no_time_to_read_are_kept(type_: str, tmp_path: Path) -> None:
    """They may be indexed, although this command has no record of their files."""
    write_all(tmp_path)
    found = {item.id for item in a_source(type_, tmp_path).scan().items}
    late = a_source(type_, tmp_path)
    assert isinstance(late, FolderSource)
    late.resume(folder_memory.Memory(), lambda: True)
    scan = late.scan()
    assert found
    assert scan.postponed
    assert not scan.items
    assert [one for one in found if not scan.keeps(one)] == []


def test_a_source_remembers_no_files_of_a_failed_scan(tmp_path: Path) -> None:
    """The next command reads all files again, because it cannot know what was indexed."""
    root = tmp_path / "root"
    write_all(root)
    source = a_source("skills", root)
    assert isinstance(source, FolderSource)
    source.scan()
    assert source.memory().known
    root.rename(tmp_path / "away")
    with pytest.raises(SourceError):
        source.scan()
    memory = source.memory()
    assert (memory.known, memory.seen.files) == ({}, {})


def write_all(root: Path) -> None:
    """Write files of all names and texts, each in a folder of its own."""
    for number, name in enumerate(NAMES[:-1]):
        for which, text in enumerate(TEXTS):
            write(root / f"{number}-{which}" / name, text)


def _of_several_files(remembered: folder_memory.Memory) -> set[str]:
    ids = Counter(one.id for known in remembered.known.values() for one in known.items)
    return {item for item, files in ids.items() if files > 1}


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("type_", TYPES)
def test_unchanged_items_are_the_same_objects(type_: str, tmp_path: Path) -> None:
    """Their cached hashes therefore remain valid."""
    write_all(tmp_path)
    source = a_source(type_, tmp_path)
    first, second = source.scan().items, source.scan().items
    assert first
    assert all(one is other for one, other in zip(first, second, strict=True))


def test_a_file_that_is_rewritten_within_one_time_step_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems store times in steps of two seconds, so both versions look the same."""

    def coarse(path: str) -> Signature | None:
        exact = signature(path)
        if exact is None:
            return None
        modified, changed, size, number = exact
        return modified - modified % 2_000_000_000, changed - changed % 2_000_000_000, size, number

    monkeypatch.setattr(folder_memory, "signature", coarse)
    file = tmp_path / "one.md"
    source = a_source("markdown-skills", tmp_path)
    for word in ("first", "other"):
        file.write_text(f"Does the {word}.")
        assert [item.description for item in source.scan().items] == [f"Does the {word}."]


@pytest.mark.usefixtures("later")
def test_an_unreadable_file_is_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cause may disappear without a change of the file."""
    (tmp_path / "one.md").write_text("Does it.")
    source = a_source("markdown-skills", tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("repertory.sources.folder.read_file", lambda *_: (None, []))
        assert source.scan().keeps("team/one")
    assert [item.id for item in source.scan().items] == ["team/one"]


def test_a_recently_changed_file_that_becomes_a_folder_is_noticed(tmp_path: Path) -> None:
    """The placeholder for the signature of a recent file differs from a folder's signature."""
    (file := tmp_path / "corpus.jsonl").write_text("{}")
    files = {str(file): folder_memory.settled_signature(str(file))}
    state = folder_memory.FolderState(files=files)
    file.unlink()
    file.mkdir()
    assert not state.is_current()


def test_temporary_files_of_editors_are_not_items(tmp_path: Path) -> None:
    """Locks, swap files, backups and system files are ignored without a problem."""
    (tmp_path / "one.md").write_text("Does it.")
    (tmp_path / ".#one.md").symlink_to("me@host.17:1")
    for name in ("._one.md", ".~lock.one.md", "#one.md#", "one.md~", ".one.md.swp", "4913"):
        (tmp_path / name).write_text("Does nothing.")
    for type_ in ("markdown-skills", "documents"):
        scan = a_source(type_, tmp_path).scan()
        assert [Path(item.path).name for item in scan.items] == ["one.md"]
        assert scan.problems == []
