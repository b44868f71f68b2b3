"""Reconciliation compares the collection with the ledger, slice by slice."""

import pytest
from msgspec.structs import replace

from repertory.index import layout
from repertory.indexing import ledgers
from repertory.indexing.coordinator import POLL_INTERVAL_S
from tests.support.builders import Folder
from tests.support.steered_team import Steer, SteeredTeam

NAMES = "abcdefg"


def indexed(steer: Steer, *names: str) -> SteeredTeam:
    """A team that has indexed these skills."""
    team = steer(Folder("team", *names))
    team.work()
    assert team.indexed() == {f"team/{name}" for name in names}
    return team


def test_a_reconcile_finds_unannounced_changes(steer: Steer) -> None:
    """An item that vanished from the collection is written again."""
    team = indexed(steer, "a")
    with team.store.open(team.active) as collection:
        collection.delete_items(["team/a"], 2**52)
    team.wait(3)
    assert team.indexed() == set()
    team.coordinator.reconcile()
    team.tick()
    team.work()
    assert team.indexed() == {"team/a"}


def test_a_damaged_item_is_written_again_or_removed(
    steer: Steer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log names it, and other differences are repaired too."""
    team = indexed(steer, *NAMES)
    (folder,) = team.folders
    with team.store.open(team.active) as collection, monkeypatch.context() as damaging:
        payload = layout.payload
        damaging.setattr(layout, "payload", lambda one: payload(one) | {"content_hash": None})
        bad = [one for one in collection.points() if one.item in {"team/b", "team/d"}]
        collection.upsert([replace(one, revision=one.revision + 1) for one in bad])
        collection.delete_items(["team/a", "team/g"], 2**52)
    del folder.items["d"]
    with caplog.at_level("WARNING"):
        team.coordinator.reconcile()
        team.scan()
        team.work()
    named = [vars(one)["item"] for one in caplog.records if one.message == "point_unreadable"]
    assert sorted(named) == ["team/b", "team/d"]
    assert team.indexed() == {f"team/{name}" for name in "abcefg"}
    assert layout.UNREADABLE not in team.hashes().values()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_a_reconcile_compares_slices(
    steer: Steer, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Items that differ in any slice are sent again, and no others."""
    monkeypatch.setattr(ledgers, "SLICE", size)
    team = indexed(steer, *NAMES)
    for lost in ("a", "def", "g", NAMES, ""):
        for _ in range(2 * len(NAMES)):  # an earlier pass may still run
            team.tick(POLL_INTERVAL_S)
        with team.store.open(team.active) as collection:
            collection.delete_items([f"team/{name}" for name in lost], 2**52)
        team.coordinator.reconcile()
        for _ in range(2 * len(NAMES)):
            team.tick(POLL_INTERVAL_S)
        assert {name for name in NAMES if team.sent(f"team/{name}")} == {*lost}
        team.work()
        assert team.indexed() == {f"team/{name}" for name in NAMES}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_a_build_is_published_after_a_pass_without_a_difference(
    steer: Steer, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """An item that the build lost is written again first."""
    monkeypatch.setattr(ledgers, "SLICE", size)
    for lost in NAMES:
        team = indexed(steer, *NAMES)
        before = team.active
        team.rebuild()
        while team.queue.jobs:
            team.queue.deliver(0)
        (target,) = {*team.store.collections()} - {before}
        with team.store.open(target) as collection:
            collection.delete_items([f"team/{lost}"], 2**52)
        while not team.sent(f"team/{lost}"):
            assert team.active == before
            team.tick(POLL_INTERVAL_S)
        while team.active == before:
            team.work()
        assert team.active == target
        assert team.indexed() == {f"team/{name}" for name in NAMES}


def rebuilding(team: SteeredTeam) -> str:
    """Start a build, write its items, begin its comparison, and return its collection."""
    before = team.active
    team.rebuild()
    while team.queue.jobs:
        team.queue.deliver(0)
    team.tick()
    assert team.active == before
    assert team.coordinator.is_verifying
    assert not team.coordinator.is_busy
    (target,) = {*team.store.collections()} - {before}
    return target


def save(team: SteeredTeam, *, deleted: str = "") -> None:
    """Save or delete an item, and run all jobs."""
    (folder,) = team.folders
    if deleted:
        folder.delete(deleted)
    else:
        folder.write("c", f"At {team.time}")
    team.scan()
    while team.queue.jobs:
        team.queue.deliver(0)


@pytest.mark.parametrize("size", [2, 3, 7])
@pytest.mark.parametrize("deleted", ["", "a", "g"])
def test_a_build_is_published_despite_concurrent_saves(
    steer: Steer, monkeypatch: pytest.MonkeyPatch, size: int, deleted: str
) -> None:
    """One pass over the slices is enough, although a save falls between any two of them."""
    team = indexed(steer, *NAMES)
    monkeypatch.setattr(ledgers, "SLICE", size)
    target = rebuilding(team)
    save(team, deleted=deleted)
    ticks = 0
    while team.active != target:
        ticks += 1
        assert ticks <= 1 + len(NAMES) // size
        team.tick(POLL_INTERVAL_S)
        if team.active != target:
            save(team)
    assert team.indexed() == {f"team/{name}" for name in NAMES if name != deleted}
    assert not team.coordinator.is_verifying


def test_items_that_are_sent_during_a_comparison_are_compared(
    steer: Steer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build that lost such an item is not published, whichever slices were compared before."""
    for slices in range(1, 3):  # one slice more is compared while the save is pending
        team = indexed(steer, *NAMES)
        monkeypatch.setattr(ledgers, "SLICE", 2)
        target = rebuilding(team)
        for _ in range(1, slices):
            team.tick(POLL_INTERVAL_S)
        save(team)
        with team.store.open(target) as collection:
            collection.delete_items(["team/c"], 2**52)
        while not team.sent("team/c"):
            assert team.active != target
            team.tick(POLL_INTERVAL_S)
        while team.active != target:
            team.work()
        assert team.indexed() == {f"team/{name}" for name in NAMES}


def test_many_items_that_are_sent_during_a_comparison_need_another_pass(
    steer: Steer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most one slice is read at a time."""
    team = indexed(steer, *NAMES)
    monkeypatch.setattr(ledgers, "SLICE", 2)
    target = rebuilding(team)
    for name in "hij":
        team.folders[0].write(name)
    save(team)
    passed = 0
    while team.active != target:
        team.tick(POLL_INTERVAL_S)
        passed += 1
    assert passed > 2 * len(NAMES) // 2
    assert len(team.indexed()) == len(NAMES) + 3
