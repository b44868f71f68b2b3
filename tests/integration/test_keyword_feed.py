"""The keyword index follows its collection even if announcements are lost."""

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from repertory.catalogue.item import Item, item_key
from repertory.errors import StoreError
from repertory.index.keywords.index import KeywordIndex
from repertory.index.vectors import Collection
from repertory.indexing import keyword_feed, keyword_sync
from repertory.indexing.keyword_feed import KeywordFeed
from repertory.live_search.followed_index import followed
from tests.support.builders import Folder
from tests.support.points import point
from tests.support.steered_team import Steer


@pytest.mark.parametrize("page", [1, 2, 3, 8, 100])
def test_the_keyword_index_catches_up_page_by_page(
    steer: Steer, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """Recent writes are found with any page size."""
    monkeypatch.setattr(keyword_feed, "PAGE", page)
    monkeypatch.setattr(keyword_feed, "MAX_COMPARED", 0)  # disable the complete comparison
    folder = Folder("team", *"abcdefg")
    team = steer(folder)
    team.work()
    with team.store.open(team.active) as collection:
        feed = KeywordFeed(collection, team.coordination)
        feed.open()
        assert {entry.id: entry.hash for entry in feed.index.all()} == team.hashes()
        for name in "chi":
            folder.write(name, "It was changed.")
        team.scan()
        team.work()
        feed.catch_up()
        assert {entry.id: entry.hash for entry in feed.index.all()} == team.hashes()
        before = feed.index
        feed.catch_up()
        assert feed.index is before


def test_a_process_with_its_own_large_store_notices_removals(
    steer: Steer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its index is never verified, and announcements may be lost."""
    monkeypatch.setattr(keyword_feed, "MAX_COMPARED", 0)
    folder = Folder("team", *"abc")
    team = steer(folder)
    team.work()
    with team.store.open(team.active) as collection:
        feed = KeywordFeed(collection, team.coordination)
        feed.open(is_shared=False)
        before = feed.revision
        del folder.items["b"]
        team.scan()
        team.work()
        team.deltas.drop(team.active)
        feed.advance()
        assert {entry.id for entry in feed.index.all()} == {"team/a", "team/c"}
        assert feed.revision > before  # the version of the index that answers name


def test_items_removed_since_a_snapshot_are_not_searched_after_a_restart(
    steer: Steer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The announcements are lost, and the collection is large."""
    monkeypatch.setattr(keyword_feed, "MAX_COMPARED", 0)
    folder = Folder("team", *"abc")
    team = steer(folder)
    team.work()
    with team.store.open(team.active) as collection:
        KeywordFeed(collection, team.coordination).keep()
        del folder.items["b"]
        team.scan()
        team.work()
        team.deltas.drop(team.active)
        index = followed(collection, team.coordination, is_shared=True, is_served=True)
        assert {entry.id for entry in index.feed.index.all()} == {"team/a", "team/c"}


def test_a_snapshot_includes_changes_without_announcements(
    steer: Steer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise all later snapshots of a large collection would repeat the error."""
    monkeypatch.setattr(keyword_feed, "MAX_COMPARED", 0)
    monkeypatch.setattr(keyword_feed, "PAGE", 2)
    folder = Folder("team", *"abcde")
    team = steer(folder)
    team.work()
    with team.store.open(team.active) as collection:
        KeywordFeed(collection, team.coordination).keep()
        del folder.items["b"], folder.items["e"]
        folder.write("c", "It was changed.")
        team.scan()
        team.work()
        monkeypatch.setattr(keyword_feed, "OVERLAP", -1_000_000)
        team.deltas.drop(team.active)
        KeywordFeed(collection, team.coordination).keep()
        reader = KeywordFeed(collection, team.coordination)
        reader.open()
        assert {entry.id: entry.hash for entry in reader.index.all()} == team.hashes()


def test_a_claim_ends_if_another_process_has_just_stored_the_index(
    steer: Steer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next process must not wait for one that builds nothing."""
    team = steer(Folder("team", "a"))
    team.work()
    claims, snapshots = team.coordination.claims, team.coordination.snapshots
    with team.store.open(team.active) as collection:
        other = KeywordFeed(collection, team.coordination)
        other.open()
        snapshots.drop(team.active)
        take = claims.take

        def late(names: Sequence[str], seconds: float) -> set[str]:
            other.save()
            return take(names, seconds)

        monkeypatch.setattr(claims, "take", late)
        feed = KeywordFeed(collection, team.coordination)
        feed.open()
        assert len(feed.index) == 1
    claim = f"keywords:{team.active}"
    assert take([claim], 1.0) == {claim}


@pytest.mark.parametrize("has_snapshot", [False, True])
def test_an_interrupted_snapshot_is_continued(
    steer: Steer, monkeypatch: pytest.MonkeyPatch, *, has_snapshot: bool
) -> None:
    """Items that were read before the worker ended are not read again."""
    monkeypatch.setattr(keyword_feed, "STEP", 2)
    monkeypatch.setattr(keyword_feed, "STORE_INTERVAL_S", 0.0)
    folder = Folder("team", *"abcdefg"[: 1 if has_snapshot else 7])
    team = steer(folder)
    team.work()
    with team.store.open(team.active) as collection:
        team.coordination.snapshots.drop(team.active)
        if has_snapshot:
            KeywordFeed(collection, team.coordination).keep()
            for name in "bcdefg":
                folder.write(name, "It is new.")
            team.scan()
            team.work()
        read: list[str] = []
        refreshed = keyword_sync.refreshed

        def ends(index: KeywordIndex, items: Sequence[str], of: Collection) -> object:
            if len(read) >= 4:
                raise StoreError("The worker ends.")
            read.extend(items)
            return refreshed(index, items, of)

        monkeypatch.setattr(keyword_sync, "refreshed", ends)
        with pytest.raises(StoreError, match="ends"):
            KeywordFeed(collection, team.coordination).keep()
        assert len(read) == 4
        monkeypatch.undo()

        reader = KeywordFeed(collection, team.coordination)
        reader.open()
        assert len(reader.index) == 4 + has_snapshot
        assert reader.is_partial is not has_snapshot
        reader.advance()
        assert not reader.is_partial
        assert {entry.id: entry.hash for entry in reader.index.all()} == team.hashes()
        KeywordFeed(collection, team.coordination).keep()
        again = KeywordFeed(collection, team.coordination)
        again.open()
        assert {entry.id: entry.hash for entry in again.index.all()} == team.hashes()


@pytest.mark.parametrize("is_announced", [False, True])
def test_a_snapshot_includes_items_written_while_it_is_made(
    steer: Steer, monkeypatch: pytest.MonkeyPatch, *, is_announced: bool
) -> None:
    """This includes items before the current position, and lost announcements."""
    monkeypatch.setattr(keyword_feed, "STEP", 2)
    monkeypatch.setattr(keyword_feed, "PAGE", 2)
    monkeypatch.setattr(keyword_feed, "MAX_COMPARED", 0)  # disable the complete comparison
    monkeypatch.setattr(keyword_feed, "OVERLAP", 0)
    folder = Folder("team", *"abcdefg")
    team = steer(folder)
    team.work()
    steps = 0

    def write() -> None:
        nonlocal steps
        steps += 1
        if steps == 3:
            for name in "abcdefghi":
                folder.write(name, "It was changed.")
            team.scan()
            team.work()
            if not is_announced:
                team.coordination.deltas.drop(team.active)

    with team.store.open(team.active) as collection:
        team.coordination.snapshots.drop(team.active)
        KeywordFeed(collection, team.coordination).keep(write)
        reader = KeywordFeed(collection, team.coordination)
        reader.open()
        assert {entry.id: entry.hash for entry in reader.index.all()} == team.hashes()


def test_items_written_while_a_gap_is_read_are_found_after_the_next_gap(
    steer: Steer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside a large build, announcements may be dropped faster than a reader is."""
    monkeypatch.setattr(keyword_feed, "STEP", 2)
    monkeypatch.setattr(keyword_feed, "PAGE", 2)
    monkeypatch.setattr(keyword_feed, "MAX_COMPARED", 0)  # disable the complete comparison
    monkeypatch.setattr(keyword_feed, "OVERLAP", 100)
    team = steer(Folder("team", *"abcdefg"))
    team.work()
    with team.store.open(team.active) as collection:
        ids = [state.item for state in collection.page(0, 7)]  # in the order of their keys
        records = collection.records([*map(item_key, ids)])
        rereads = 0

        def change(item: str, revision: int) -> None:
            record = {**records[item], "description": f"It was changed in {revision}."}
            found = msgspec.convert(record, Item).metadata_hash()
            stored = point(item, np.ones(1, np.float32), revision=revision, record=record)
            collection.upsert([replace(stored, metadata_hash=found)])
            team.coordination.deltas.drop(team.active)

        class Slow(KeywordFeed):
            def reread(self, items: Sequence[str]) -> None:
                nonlocal rereads
                super().reread(items)
                rereads += 1
                if rereads == 2:
                    change(ids[0], 3_000_000)  # before the current position
                    change(ids[-1], 4_000_000)

        reader = Slow(collection, team.coordination)
        reader.open()
        for item in ids:
            change(item, 2_000_000)
        for _ in range(2):
            reader.advance()
        assert {entry.id: entry.hash for entry in reader.index.all()} == team.hashes()


def test_an_unreadable_record_does_not_block_others(
    steer: Steer, caplog: pytest.LogCaptureFixture
) -> None:
    """The record of another release is skipped and logged; later changes are found."""
    team = steer(Folder("team", "a"))
    team.work()
    with team.store.open(team.active) as collection:
        feed = KeywordFeed(collection, team.coordination)
        feed.open()
        good = collection.records([item_key("team/a")])["team/a"]
        for revision, (name, kind) in enumerate({"b": "prompt", "c": "skill"}.items(), 100):
            item, record = f"team/{name}", {**good, "id": f"team/{name}", "name": name}
            found = msgspec.convert(record, Item).metadata_hash()
            stored = point(
                item, np.ones(1, np.float32), revision=revision, record={**record, "kind": kind}
            )
            collection.upsert([replace(stored, metadata_hash=found)])
            team.deltas.announce(team.active, {item: found})
            feed.advance()
        assert {entry.id for entry in feed.index.all()} == {"team/a", "team/c"}
        before = feed.index
        feed.compare()
        assert feed.index is before
    assert "record_unreadable" in caplog.text
