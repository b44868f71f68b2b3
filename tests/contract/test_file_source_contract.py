"""The contract of sources that read files, tested on each type."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from repertory.errors import SourceError
from repertory.sources.source import Severity
from tests.support.builders import write
from tests.support.source_cases import CASES, Case


@pytest.fixture(params=CASES, ids=lambda case: " with ".join([case.type, *case.options]))
def case(request: pytest.FixtureRequest) -> Case:
    """Each type of source in turn."""
    found: Case = request.param
    return found


def test_ids_are_unique_and_in_a_fixed_order(case: Case, tmp_path: Path) -> None:
    """The order does not depend on the order in which files were created."""
    case.fill(tmp_path / "up", range(9))
    for number in reversed(range(9)):
        case.fill(tmp_path / "down", range(number, number + 1))
    ids = [item.id for item in case.source(tmp_path / "up").scan().items]
    assert len(set(ids)) == 9
    assert ids == [item.id for item in case.source(tmp_path / "down").scan().items]


def test_an_id_depends_only_on_source_and_place(case: Case, tmp_path: Path) -> None:
    """An id does not change when other files or the text change."""
    case.fill(tmp_path, range(5))
    source = case.source(tmp_path)
    before = {item.path: item.id for item in source.scan().items}
    case.fill(tmp_path, range(5, 9))
    place, text = (part.replace("{n}", "0") for part in case.good)
    write(tmp_path / place, text.replace("Does", "Did"))
    after = {item.path: item.id for item in source.scan().items}
    assert before.items() <= after.items()
    assert len(after) == 9


def test_items_have_their_source_and_path(case: Case, tmp_path: Path) -> None:
    """Each item has its source's name, the path of its file, and hashes."""
    case.fill(tmp_path, range(2))
    items = case.source(tmp_path).scan().items
    assert len(items) == 2
    for item in items:
        assert item.source == "team"
        assert Path(item.path).is_relative_to(tmp_path)
        assert Path(item.path).is_file()
        assert item.metadata_hash()
        assert item.content_hash()


def test_scanning_twice_finds_the_same(case: Case, tmp_path: Path) -> None:
    """Repeated scans, and a scan of a new source, find the same items and problems."""
    case.fill(tmp_path, range(3))
    write(tmp_path / case.broken[0], case.broken[1])
    source = case.source(tmp_path)
    assert source.scan() == source.scan() == case.source(tmp_path).scan()


def test_an_empty_root_gives_an_empty_scan(case: Case, tmp_path: Path) -> None:
    """An empty folder is no error."""
    found = case.source(tmp_path).scan()
    assert (found.items, found.problems) == ([], [])
    assert not found.keeps("team/anything")


def test_a_missing_root_is_an_error(case: Case, tmp_path: Path) -> None:
    """A missing root raises an error instead of giving an empty scan."""
    with pytest.raises(SourceError, match="missing"):
        case.source(tmp_path / "missing").scan()


def test_a_removed_file_is_gone(case: Case, tmp_path: Path) -> None:
    """An item whose file was deleted is neither found nor kept."""
    case.fill(tmp_path, range(2))
    source = case.source(tmp_path)
    first = source.scan().items[0]
    Path(first.path).unlink()
    found = source.scan()
    assert first.id not in [item.id for item in found.items]
    assert not found.keeps(first.id)


def _unreadable(path: Path) -> None:
    path.symlink_to(path.parent / "nowhere")


def _binary(path: Path) -> None:
    path.write_bytes(b"\0\1\2")


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(64 << 20)


@pytest.mark.parametrize("spoil", [None, _unreadable, _binary, _huge])
def test_a_broken_file_is_a_problem_and_the_others_are_read(
    case: Case, tmp_path: Path, spoil: Callable[[Path], None] | None
) -> None:
    """A malformed, unreadable, binary or huge file causes one error with its path."""
    case.fill(tmp_path, range(3))
    path = tmp_path / case.broken[0]
    write(path, case.broken[1])
    if spoil:
        path.unlink()
        spoil(path)
    found = case.source(tmp_path).scan()
    assert len(found.items) == 3
    [problem] = found.problems
    assert (problem.severity, problem.path) == (Severity.ERROR, str(path))


def test_items_of_a_broken_file_are_kept(case: Case, tmp_path: Path) -> None:
    """An item whose file cannot be read any more is kept, not deleted."""
    case.fill(tmp_path, range(2))
    source = case.source(tmp_path)
    items = source.scan().items
    assert len(items) == 2
    for item in items:
        Path(item.path).write_bytes(b"\0")
        found = source.scan()
        assert item.id not in [other.id for other in found.items]
        assert found.keeps(item.id)


def test_items_of_an_unlistable_folder_are_kept(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Items in a folder that cannot be listed are kept (simulated, as tests may run as root)."""
    case.fill(tmp_path / "locked", range(1))
    case.fill(tmp_path, range(1, 2))
    source = case.source(tmp_path)
    before = source.scan()
    listing = os.scandir

    def scandir(path: str) -> Iterator[os.DirEntry[str]]:
        if Path(path).is_relative_to(tmp_path / "locked"):
            raise PermissionError(13, "Permission denied")
        return listing(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = source.scan()
    assert len(before.items) == 2
    assert len(found.items) == 1
    assert all(item in found.items or found.keeps(item.id) for item in before.items)
    assert [problem.path for problem in found.problems] == [str(tmp_path / "locked")]


def test_an_item_whose_own_folder_is_unlistable_is_kept(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of a skill is the skill, so its name has no further part."""
    case.fill(tmp_path, range(2))
    source = case.source(tmp_path)
    items = source.scan().items
    assert len(items) == 2
    gone = Path(items[0].path).parent
    listing = os.scandir

    def scandir(path: str) -> Iterator[os.DirEntry[str]]:
        if Path(path) == gone:
            raise PermissionError(13, "Permission denied")
        return listing(path)

    monkeypatch.setattr(os, "scandir", scandir)
    if gone == tmp_path:
        with pytest.raises(SourceError):
            source.scan()
    else:
        assert source.scan().keeps(items[0].id)


def test_the_identity_is_json_stable_and_unique(case: Case, tmp_path: Path) -> None:
    """The identity is JSON, unique to a source, and independent of the folder's content."""
    source = case.source(tmp_path)
    before = json.dumps(source.identity(), sort_keys=True)
    case.fill(tmp_path, range(2))
    source.scan()
    assert json.dumps(case.source(tmp_path).identity(), sort_keys=True) == before
    assert source.identity() != case.source(tmp_path, name="other").identity()
    assert source.identity() != case.source(tmp_path / "other").identity()
    assert source.identity()["type"] == source.type == case.type
