"""A keyword index finds the same items if its largest arrays are in a mapped file."""

import gc
import sys
from pathlib import Path

import pytest

from repertory.index.keywords import segment
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.snapshot import unpack
from tests.support.builders import tool
from tests.support.keyword_search import pack

ITEMS = [
    tool(f"s{number % 3}__tool_{number}", f"Rotate the keys of {number}") for number in range(60)
]
QUERIES = ("rotate keys", "tool_7", "41", "rotaet")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the size from which segments are mapped to a few items."""
    monkeypatch.setattr(segment, "MAPPED_FROM", 2)


def answers(index: KeywordIndex) -> list[list[str]]:
    """The ids that each query finds, best first."""
    return [
        [entry.id for entry in index.entries(index.match(query).best(20).tolist())]
        for query in QUERIES
    ]


def open_files(folder: Path) -> list[str]:
    """The files of a folder that this process maps."""
    maps = Path("/proc/self/maps").read_text("utf-8").splitlines()
    return [line for line in maps if str(folder) in line]


def test_a_mapped_index_finds_the_same_items(tmp_path: Path) -> None:
    """This holds after its memory was freed, after changes, and after a restored snapshot."""
    index = KeywordIndex.empty().updated((), ITEMS)
    index.prepare(tmp_path)
    plain = KeywordIndex.empty().updated((), ITEMS)
    assert answers(index) == answers(plain)
    index.free_memory()
    assert answers(index) == answers(plain)
    packed = pack(index, 1)
    assert packed == pack(plain, 1)
    assert answers(unpack(packed.head, packed.segments).keywords) == answers(plain)
    more = [tool(f"s4__more_{number}", "Rotate the logs") for number in range(40)]
    changed = index.updated([ITEMS[0].id], more)
    changed.prepare(tmp_path)
    assert answers(changed) == answers(plain.updated([ITEMS[0].id], more))


@pytest.mark.skipif(sys.platform != "linux", reason="Only Linux lists mapped files.")
def test_the_file_is_deleted_with_the_index(tmp_path: Path) -> None:
    """The file has no name, so its space is freed when it is no longer mapped."""
    index = KeywordIndex.empty().updated((), ITEMS)
    index.prepare(tmp_path)
    assert open_files(tmp_path)
    assert not [*tmp_path.iterdir()]
    del index
    gc.collect()
    assert not open_files(tmp_path)


def test_an_index_stays_in_memory_if_no_file_can_be_created(tmp_path: Path) -> None:
    """The disk may be full, or the folder may have been deleted."""
    index = KeywordIndex.empty().updated((), ITEMS)
    index.prepare(tmp_path / "gone")
    assert answers(index) == answers(KeywordIndex.empty().updated((), ITEMS))
