"""A keyword index whose largest arrays are in a file finds what one in memory finds."""

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
    """Segments of a few items are large."""
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


def test_a_mapped_index_finds_the_same(tmp_path: Path) -> None:
    """Also once its pages are given back, after changes, and as a snapshot."""
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


@pytest.mark.skipif(sys.platform != "linux", reason="Only Linux lists what a process maps.")
def test_the_file_goes_with_the_index(tmp_path: Path) -> None:
    """It has no name, and nothing else refers to it."""
    index = KeywordIndex.empty().updated((), ITEMS)
    index.prepare(tmp_path)
    assert open_files(tmp_path)
    assert not [*tmp_path.iterdir()]
    del index
    gc.collect()
    assert not open_files(tmp_path)


def test_an_index_stays_in_memory_where_no_file_can_be_made(tmp_path: Path) -> None:
    """As on a full disk, or in a folder that is gone."""
    index = KeywordIndex.empty().updated((), ITEMS)
    index.prepare(tmp_path / "gone")
    assert answers(index) == answers(KeywordIndex.empty().updated((), ITEMS))
