"""The collections of a configuration: when they are requested, and when they are dropped."""

import pytest
from typing_extensions import override

from repertory.coordination.deltas import REMOVED
from repertory.errors import StoreBusyError, StoreError
from repertory.indexing import generations as module
from repertory.indexing.collection_names import configuration_of
from repertory.indexing.generations import (
    GRACE_S,
    ITEMS_OF_DELTA,
    MIN_DELTAS,
    REQUEST_INTERVAL_S,
    SNAPSHOT_INTERVAL_S,
    Generations,
)
from repertory.values import NAMESPACE
from tests.support.builders import Folder
from tests.support.steered_team import FullQueue, Steer, SteeredTeam


class Inbox(FullQueue):
    """A queue that only records requests for collections and snapshots."""

    is_full = False

    def __init__(self, queue: FullQueue) -> None:
        super().__init__(queue.writer)
        self.asked: list[str] = []

    @override
    def begin(self, configuration: str, generation: int | None = None) -> None:
        if self.is_full:
            raise StoreError("The queue is full.")
        self.asked.append(configuration)

    @override
    def keep_keywords(self, collection: str) -> None:
        self.snapshots += 1


@pytest.fixture
def team(steer: Steer) -> SteeredTeam:
    """A team that has indexed one skill."""
    made = steer(Folder("team", "a"))
    made.work()
    return made


@pytest.fixture
def inbox(team: SteeredTeam) -> Inbox:
    """A recording queue beside the team's own."""
    return Inbox(team.queue)


def of_the_team(team: SteeredTeam, inbox: Inbox) -> Generations:
    """The generations of the team's configuration, as after a restart."""
    generations = Generations(team.store, inbox, team.coordination, NAMESPACE)
    generations.adopt(configuration_of(team.active))
    generations.poll(0.0)
    return generations


def test_a_collection_is_requested_until_it_exists(team: SteeredTeam, inbox: Inbox) -> None:
    """The request is repeated every few seconds, and later only on demand."""
    other = "0123456789abcdef"
    generations = Generations(team.store, inbox, team.coordination, NAMESPACE)
    generations.adopt(other)
    asked_at = []
    for now in range(12):
        before = len(inbox.asked)
        assert generations.poll(float(now)) == set()
        asked_at += [now] * (len(inbox.asked) - before)
    assert asked_at == [0, REQUEST_INTERVAL_S, 2 * REQUEST_INTERVAL_S]
    assert set(inbox.asked) == {other}
    inbox.writer.begin(other)
    generations.poll(12.0)
    inbox.asked.clear()
    assert generations.poll(100.0) == {generations.target}
    assert inbox.asked == []
    generations.request_target()
    generations.poll(101.0)
    generations.poll(102.0)
    assert inbox.asked == [other]


def test_a_snapshot_is_requested_above_a_number_of_changes(team: SteeredTeam, inbox: Inbox) -> None:
    """It is requested at most once in each interval."""
    generations = of_the_team(team, inbox)
    name = team.active
    team.deltas.drop(name)
    for number in range(MIN_DELTAS):
        team.deltas.announce(name, {f"team/{number}": REMOVED})
    generations.request_snapshot(0.0, 0)
    assert inbox.snapshots == 0
    team.deltas.announce(name, {"team/b": REMOVED})
    generations.request_snapshot(SNAPSHOT_INTERVAL_S - 1, 0)
    assert inbox.snapshots == 0
    generations.request_snapshot(SNAPSHOT_INTERVAL_S, 0)
    generations.request_snapshot(SNAPSHOT_INTERVAL_S + 1, 0)
    assert inbox.snapshots == 1
    generations.request_snapshot(2 * SNAPSHOT_INTERVAL_S, 0)
    assert inbox.snapshots == 2
    generations.request_snapshot(3 * SNAPSHOT_INTERVAL_S, (MIN_DELTAS + 1) * ITEMS_OF_DELTA)
    assert inbox.snapshots == 2
    generations.request_snapshot(4 * SNAPSHOT_INTERVAL_S, MIN_DELTAS * ITEMS_OF_DELTA)
    assert inbox.snapshots == 3


def test_another_configurations_collection_is_left_alone(team: SteeredTeam, inbox: Inbox) -> None:
    """It gets no snapshot, and is not dropped."""
    generations = Generations(team.store, inbox, team.coordination, NAMESPACE)
    generations.adopt("0123456789abcdef")
    generations.poll(0.0)
    assert generations.active == team.active
    assert not generations.is_own
    assert generations.replaces_others
    for number in range(MIN_DELTAS + 1):
        team.deltas.announce(team.active, {f"team/{number}": REMOVED})
    team.store.create(f"{team.active}9", 1).close()
    generations.request_snapshot(0.0, 0)
    generations.retire(0.0)
    generations.retire(GRACE_S)
    generations.retire_now()
    assert inbox.snapshots == 0
    assert set(team.store.collections()) == {team.active, f"{team.active}9"}


def test_a_generation_that_another_project_searches_is_kept(
    team: SteeredTeam, inbox: Inbox
) -> None:
    """Projects with the same sources share collections, and another one may search an older one."""
    generations = of_the_team(team, inbox)
    older = f"{team.active}7"
    team.store.create(older, 1).close()
    team.store.set_alias("repertory_of_another_project", older)
    generations.retire(0.0)
    generations.retire(GRACE_S)
    generations.retire_now()
    assert team.store.alias("repertory_of_another_project") == older
    team.store.set_alias("repertory_of_another_project", team.active)
    generations.retire_now()
    assert team.store.collections() == [team.active]


def test_a_collection_is_dropped_with_its_snapshot_and_deltas(
    team: SteeredTeam, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A collection that another process has open keeps them."""
    generations, older = of_the_team(team, inbox), f"{team.active}7"
    snapshots = team.coordination.snapshots
    team.store.create(older, 1).close()
    snapshots.save(older, b"words", {})
    team.deltas.announce(older, {"team/a": REMOVED})

    def is_open(_: str) -> None:
        raise StoreBusyError("It is open.")

    with monkeypatch.context() as patch:
        patch.setattr(team.store, "drop", is_open)
        generations.drop(older)
    assert (snapshots.load(older) is None, team.deltas.length(older)) == (False, 1)
    generations.drop(older)
    assert (snapshots.load(older) is None, team.deltas.length(older)) == (True, 0)
    assert team.store.collections() == [team.active]


def test_the_predecessor_of_a_large_index_is_kept_longer(
    team: SteeredTeam, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Query processes search it until they have read the words of the new index."""
    monkeypatch.setattr(module, "GRACE_OF_ITEM_S", 100.0)
    generations = of_the_team(team, inbox)
    team.store.create(f"{team.active}7", 1).close()
    for now in (0.0, GRACE_S, GRACE_S + 99.0):
        generations.retire(now)
        assert len(team.store.collections()) == 2
    generations.retire(GRACE_S + 100.0)
    assert team.store.collections() == [team.active]


def test_a_full_queue_of_requests_holds_up_nothing(team: SteeredTeam, inbox: Inbox) -> None:
    """Saves have their own queue, so a full one is an error only without a target."""
    generations = of_the_team(team, inbox)
    inbox.is_full = True
    generations.request_target()
    assert generations.poll(0.0) == {team.active}
    generations.adopt("0123456789abcdef")
    with pytest.raises(StoreError, match="full"):
        generations.poll(0.0)
    inbox.is_full = False
    generations.poll(0.0)
    assert inbox.asked[-1] == "0123456789abcdef"


def test_unused_generations_are_dropped_one_by_one(team: SteeredTeam, inbox: Inbox) -> None:
    """Each has its own grace period; a new one of the same name starts again."""
    generations = of_the_team(team, inbox)
    older = [f"{team.active}{number}" for number in (7, 8)]
    for name in older:
        team.store.create(name, 1).close()
    generations.retire(0.0)
    generations.retire(GRACE_S - 1)
    assert len(team.store.collections()) == 3
    generations.retire(GRACE_S + 1)
    assert len(team.store.collections()) == 2
    generations.retire(GRACE_S + 1)
    assert team.store.collections() == [team.active]
    generations.retire(GRACE_S + 1)
    team.store.create(older[0], 1).close()
    generations.retire(2 * GRACE_S)
    assert older[0] in team.store.collections()
