"""The latest scans: what may still exist, and what is not offered any more."""

from repertory.index.vectors import State
from repertory.indexing.latest_scans import LatestScans
from repertory.indexing.scan import scan_source
from repertory.sources.configured import Catalogue
from tests.support.builders import Folder


def state(item: str) -> State:
    """The state of an indexed item."""
    source = item.partition("/")[0]
    return State(item=item, source=source, content_hash="", metadata_hash="", revision=1)


def test_items_of_a_source_that_was_not_read_are_kept() -> None:
    """Until its first scan, and again while it is away; not those of other catalogues."""
    folder, scans = Folder("team", "a"), LatestScans({})
    scans.adopt(Catalogue((folder,)))
    assert scans.keeps(state("team/b"))
    assert not scans.keeps(state("other/b"))
    scans.add(scan_source(folder))
    assert not scans.keeps(state("team/b"))
    folder.is_unreadable = True
    scans.add(scan_source(folder))
    assert scans.keeps(state("team/b"))
    assert not scans.keeps(state("other/b"))


def test_what_is_read_decides_what_is_offered() -> None:
    """What is unread may be offered with any hash."""
    folder, scans = Folder("team", "a"), LatestScans({})
    scans.adopt(Catalogue((folder,)))
    scans.add(scan_source(folder))
    offered = folder.items["a"].metadata_hash()
    assert scans.may_offer("team/a", offered)
    assert not scans.may_offer("team/a", "another")
    assert not scans.may_offer("team/a", "")
    assert not scans.may_offer("team/b", "any")
    assert scans.may_offer("team/b", "")
    folder.is_unreadable = True
    scans.add(scan_source(folder))
    assert scans.may_offer("team/a", offered)
    assert scans.may_offer("team/b", "any")


def test_a_scan_of_a_source_that_left_is_ignored() -> None:
    """It may come late."""
    folder, scans = Folder("team", "a"), LatestScans({})
    scans.adopt(Catalogue(()))
    scans.add(scan_source(folder))
    assert not scans.items
    assert not scans.has("team")
    scans.adopt(Catalogue((folder,)))
    assert not scans.is_complete
    assert scans.has("team")
