"""A query process follows its index, and keeps answering while another index replaces it."""

import threading
from operator import attrgetter
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from repertory.errors import StoreError
from repertory.index.edge_collection import EdgeCollection
from repertory.indexing import keyword_feed
from repertory.indexing.keyword_feed import KeywordFeed
from repertory.live_search.live import LiveSearch
from repertory.values import NAMESPACE
from repertory.watch_status import Building
from tests.support.builders import Folder, no_model
from tests.support.keyword_search import reader
from tests.support.steered_team import Steer, SteeredTeam
from tests.support.waiting import TIMEOUT_S, until


@pytest.fixture
def team(steer: Steer) -> SteeredTeam:
    """A team that has indexed seven skills."""
    made = steer(Folder("team", *"abcdefg"))
    made.work()
    return made


def live_of(team: SteeredTeam, *, is_shared: bool) -> LiveSearch:
    """A search without threads, which follows its index only on a refresh."""
    return LiveSearch(
        store=team.store,
        coordination=team.coordination,
        active=NAMESPACE,
        embedding=no_model,
        reader=reader(),
        is_shared=is_shared,
    )


def found(live: LiveSearch) -> dict[str, str]:
    """The hashes of all entries in the keyword index, by id."""
    return {entry.id: entry.hash for entry in live.engine.keywords.all()}


def fails(*_: Any, **__: Any) -> Any:  # noqa: ANN401 - in place of any method
    """Fail like a store that is unavailable."""
    raise StoreError("Away.")


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_partial_snapshot_is_completed_before_it_is_searched(
    team: SteeredTeam, monkeypatch: pytest.MonkeyPatch, *, is_shared: bool
) -> None:
    """A worker stores a large snapshot in steps, and may end after any of them."""
    monkeypatch.setattr(keyword_feed, "STEP", 2)
    monkeypatch.setattr(keyword_feed, "STORE_INTERVAL_S", 0.0)
    team.coordination.snapshots.drop(team.active)
    with team.store.open(team.active) as collection:
        steps = iter(range(2))
        with pytest.raises(StopIteration):  # the worker ends
            KeywordFeed(collection, team.coordination).keep(lambda: next(steps))
        stored = KeywordFeed(collection, team.coordination)
        stored.open()
    assert 0 < len(stored.index) < 7
    live = live_of(team, is_shared=is_shared)
    live.refresh()
    assert found(live) == team.hashes()
    live.close()


def test_the_old_collection_answers_until_the_new_one_can_be_opened(
    team: SteeredTeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It also answers by its vectors."""
    live = live_of(team, is_shared=True)
    live.refresh()
    before = live.engine
    team.rebuild()
    team.work()
    with monkeypatch.context() as patch:
        patch.setattr(KeywordFeed, "open", fails)
        live.refresh()
        assert live.engine is before
        assert live.engine.collection is not None
        assert not live.engine.degraded
    live.refresh()
    assert live.engine.collection is not None
    assert live.engine.collection.name == team.active
    live.close()


def test_items_written_while_a_killed_server_read_its_index_are_found(
    team: SteeredTeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading a large index takes long, and no later command compares all of it."""
    team.coordination.snapshots.drop(team.active)
    compare = KeywordFeed.compare

    def slowly(feed: KeywordFeed) -> None:
        compare(feed)
        [folder] = team.folders
        folder.write("a", "Of something else")
        team.scan()
        team.work()

    with monkeypatch.context() as patch:
        patch.setattr(KeywordFeed, "compare", slowly)
        with live_of(team, is_shared=False) as live:
            assert live.wait(TIMEOUT_S)
    later = live_of(team, is_shared=False)
    later.refresh()
    assert found(later) == team.hashes()
    later.close()


def test_an_outdated_keyword_index_is_not_stored(
    team: SteeredTeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next process would treat it as complete; without it, it reads the collection."""
    live = live_of(team, is_shared=False)
    live.refresh()
    team.coordination.snapshots.drop(team.active)  # as before every write
    [folder] = team.folders
    folder.write("a", "Of something else")
    team.scan()
    team.work()
    with monkeypatch.context() as patch:
        patch.setattr(KeywordFeed, "advance", fails)
        live.refresh()
    live.save()
    live.close()
    later = live_of(team, is_shared=False)
    later.refresh()
    assert found(later) == team.hashes()
    later.close()


@pytest.mark.parametrize(
    ("part", "place"), [("vectors", "store.alias"), ("deltas", "coordination.deltas.since")]
)
def test_each_outage_is_logged_once(
    team: SteeredTeam,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    part: str,
    place: str,
) -> None:
    """An operator reads later why searches answered by words only, or found changes late."""
    live = live_of(team, is_shared=True)
    live.refresh()
    owner, method = place.rsplit(".", 1)
    with caplog.at_level("INFO", "repertory"):
        with monkeypatch.context() as patch:
            patch.setattr(attrgetter(owner)(team), method, fails)
            for _ in range(3):
                live.refresh()
        for _ in range(2):
            live.refresh()
    logged = [(one.message, vars(one).get("part")) for one in caplog.records]
    assert [one for one in logged if one[1]] == [("part_lost", part), ("part_regained", part)]
    live.close()


def test_visibility_is_followed_while_the_store_is_unavailable(
    team: SteeredTeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes from the report of the watch, which does not need the store."""
    live = live_of(team, is_shared=True)
    status = team.coordinator.status()
    team.coordination.status.report("watch", msgspec.to_builtins(status))
    live.refresh()
    assert live.sources.names == ("team",)
    monkeypatch.setattr(team.store, "alias", fails)
    live.refresh()
    hidden = [replace(one, visible_to=("ops",)) for one in status.sources]
    later = replace(status, sources=hidden)
    team.coordination.status.report("watch", msgspec.to_builtins(later))
    live.refresh()
    assert live.sources.visible(frozenset()) == frozenset()
    live.close()


def test_visibility_is_followed_while_a_collection_is_opened(
    team: SteeredTeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening may take minutes, in which excluded people must not find anything."""
    status = team.coordinator.status()
    team.coordination.status.report("watch", msgspec.to_builtins(status))
    opening, opened = threading.Event(), threading.Event()

    def slowly(feed: KeywordFeed, **_: bool) -> None:
        opening.set()
        assert opened.wait(TIMEOUT_S)
        feed.compare()

    with live_of(team, is_shared=True) as live:
        until(lambda: live.sources.is_reported)
        assert live.sources.visible(frozenset()) == {"team"}
        monkeypatch.setattr(KeywordFeed, "open", slowly)
        team.rebuild()
        team.work()
        assert opening.wait(TIMEOUT_S)
        hidden = [replace(one, visible_to=("ops",)) for one in status.sources]
        later = replace(status, sources=hidden)
        team.coordination.status.report("watch", msgspec.to_builtins(later))
        until(lambda: not live.subsets.visible(frozenset()))
        opened.set()
        until(lambda: live.engine.collection and live.engine.collection.name == team.active)


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_server_that_starts_says_that_its_sources_are_not_compared_yet(
    team: SteeredTeam, *, is_shared: bool
) -> None:
    """It answers from the last index until its own watch service reports."""
    status = msgspec.to_builtins(team.coordinator.status())
    team.coordination.status.report("watch", status)
    with live_of(team, is_shared=is_shared) as live:
        assert live.wait(TIMEOUT_S)
        assert live.engine.notices == (() if is_shared else ("Starting: team.",))
        team.coordination.status.report("watch", status)
        until(lambda: live.engine.notices == ())


def test_words_are_searched_alone_until_the_collection_can_be_opened(
    team: SteeredTeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sources of that collection stay known over several attempts."""
    with team.store.open(team.active) as collection:
        KeywordFeed(collection, team.coordination).keep()
    status = team.coordinator.status()
    team.coordination.status.report("watch", msgspec.to_builtins(status))
    live = live_of(team, is_shared=True)
    known = []
    with monkeypatch.context() as patch:
        patch.setattr(team.store, "open", fails)
        for _ in range(3):
            live.refresh()
            assert len(found(live)) == 7
            assert live.engine.collection is None
            known.append(live.sources)
        fresh = live_of(team, is_shared=True)
        patch.setattr(fresh, "wait", lambda _: fresh.refresh())
        waiting = threading.Thread(target=fresh.await_first, args=(3_600.0,), daemon=True)
        waiting.start()
        waiting.join(TIMEOUT_S)  # a first search waits only until words can be searched
        assert not waiting.is_alive()
        fresh.close()
    live.refresh()
    assert [*known, live.sources] == [known[0]] * 4
    assert live.engine.collection is not None
    live.close()


def test_a_stopped_search_does_not_wait_for_its_first_index(
    team: SteeredTeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait ends although items are still missing."""
    building = Building(collection=team.active, done=7, total=100)
    status = replace(team.coordinator.status(), building=building)
    team.coordination.status.report("watch", msgspec.to_builtins(status))
    live = live_of(team, is_shared=True)
    monkeypatch.setattr(live, "wait", lambda _: live.refresh())
    live.stop()
    waiting = threading.Thread(target=live.await_first, args=(3_600.0,), daemon=True)
    waiting.start()
    waiting.join(TIMEOUT_S)
    assert not waiting.is_alive()
    assert live.sources.missing(len(found(live))) > 0
    live.close()


def test_items_read_before_a_failure_are_searched(
    team: SteeredTeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New items are read after lost announcements, and then the store fails."""
    live = live_of(team, is_shared=True)
    live.refresh()
    (folder,) = team.folders
    folder.write("h", "It is new.")
    team.scan()
    team.work()
    team.deltas.drop(team.active)
    with monkeypatch.context() as patch:
        patch.setattr(EdgeCollection, "count_items", fails)
        live.refresh()
        assert found(live) == team.hashes()
    live.refresh()
    assert found(live) == team.hashes()
    live.close()
