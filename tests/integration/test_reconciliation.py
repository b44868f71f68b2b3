"""Reconciliation: what is stored is compared with the ledger, slice by slice."""

from pathlib import Path

import pytest

from repertory.indexing import ledgers
from repertory.indexing.coordinator import POLL_INTERVAL_S
from tests.support.builders import Folder
from tests.support.steered_team import SteeredTeam

NAMES = "abcdefg"


def indexed(root: Path, *names: str) -> SteeredTeam:
    """A team that has indexed these skills."""
    team = SteeredTeam(root, Folder("team", *names))
    team.work()
    assert team.indexed() == {f"team/{name}" for name in names}
    return team


def test_a_reconcile_finds_what_nothing_announced(tmp_path: Path) -> None:
    """An item that vanished from the collection is written again."""
    team = indexed(tmp_path, "a")
    with team.store.open(team.active) as collection:
        collection.delete_items(["team/a"], 2**52)
    team.wait(3)
    assert team.indexed() == set()
    team.coordinator.reconcile()
    team.tick()
    team.work()
    assert team.indexed() == {"team/a"}
    team.cache.close()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_a_reconcile_compares_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """What differs in any of them is sent again, and nothing else."""
    monkeypatch.setattr(ledgers, "SLICE", size)
    team = indexed(tmp_path, *NAMES)
    for lost in ("a", "def", "g", NAMES, ""):
        for _ in range(2 * len(NAMES)):  # an earlier pass goes on
            team.tick(POLL_INTERVAL_S)
        with team.store.open(team.active) as collection:
            collection.delete_items([f"team/{name}" for name in lost], 2**52)
        team.coordinator.reconcile()
        for _ in range(2 * len(NAMES)):
            team.tick(POLL_INTERVAL_S)
        assert {name for name in NAMES if team.sent(f"team/{name}")} == {*lost}
        team.work()
        assert team.indexed() == {f"team/{name}" for name in NAMES}
    team.cache.close()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_a_build_is_published_after_a_pass_without_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """What got lost in it meanwhile is written again first."""
    monkeypatch.setattr(ledgers, "SLICE", size)
    for lost in NAMES:
        team = indexed(tmp_path / lost, *NAMES)
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
        team.cache.close()
