"""The keyword index follows its collection, also where announcements were missed."""

from pathlib import Path

import pytest

from repertory.indexing import keyword_feed
from repertory.indexing.keyword_feed import KeywordFeed
from tests.support.builders import Folder
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
