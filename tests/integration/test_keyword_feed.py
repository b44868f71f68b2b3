"""The keyword index follows its collection, also where announcements were missed."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from repertory.catalogue.item import Item, item_key
from repertory.indexing import keyword_feed
from repertory.indexing.keyword_feed import KeywordFeed
from tests.support.builders import Folder
from tests.support.points import point
from tests.support.steered_team import SteeredTeam


@pytest.mark.parametrize("page", [1, 2, 3, 8, 100])
def test_it_catches_up_page_by_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """Everything that was written lately is found, whatever a page holds."""
    monkeypatch.setattr(keyword_feed, "PAGE", page)
    monkeypatch.setattr(keyword_feed, "MAX_COMPARED", 0)  # only the pages help
    folder = Folder("team", *"abcdefg")
    team = SteeredTeam(tmp_path, folder)
    team.work()
    with team.store.open(team.active) as collection:
        feed = KeywordFeed(collection, team.coordination)
        feed.open()
        assert {entry.id: entry.hash for entry in feed.index.all()} == team.hashes()
        for name in "chi":
            folder.write(name, "It was changed.")
        team.scan()
        team.work()
        assert feed.catch_up()
        assert {entry.id: entry.hash for entry in feed.index.all()} == team.hashes()
        assert not feed.catch_up()
    team.cache.close()


def test_a_record_of_another_release_holds_up_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is left out and logged; what was announced after it is found."""
    team = SteeredTeam(tmp_path, Folder("team", "a"))
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
        assert not feed.compare()
        assert feed.index is before
    assert "record_unreadable" in caplog.text
    team.cache.close()
