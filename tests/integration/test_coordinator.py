"""The coordinator when jobs, stores and clocks misbehave."""

from itertools import pairwise

import msgspec
import pytest

from repertory.catalogue.item import Item
from repertory.coordination.failures import Failure
from repertory.errors import StoreError
from repertory.index.edge_collection import EdgeCollection
from repertory.indexing.collection_names import recipe_of
from repertory.indexing.coordinator import LOST_AFTER_S, POLL_INTERVAL_S
from repertory.indexing.generations import GRACE_S
from repertory.indexing.job import QueueName
from repertory.indexing.scan import scan_source
from repertory.notices import FAILED
from repertory.search.known_sources import KnownSources
from repertory.values import NAMESPACE
from tests.support.builders import Folder
from tests.support.steered_team import FEW, Modelled, Steer, SteeredTeam


@pytest.fixture
def team(steer: Steer) -> SteeredTeam:
    """A team that has indexed one skill."""
    made = steer(Folder("team", "a"))
    made.work()
    assert made.indexed() == {"team/a"}
    return made


def test_a_lost_save_is_sent_again_while_others_are_saved(team: SteeredTeam) -> None:
    """It takes at most 20 s, however many other saves are confirmed and reconciled meanwhile."""
    (folder,) = team.folders
    folder.write("urgent")
    team.scan()
    team.lose("team/urgent")

    def save() -> None:
        folder.write("busy", f"At {team.time}")
        team.coordinator.observe(scan_source(folder))
        if team.sent("team/busy") > 1:  # the queue is never empty
            team.deliver("team/busy")
        if team.time % 5 == 0:
            team.coordinator.reconcile()

    team.wait(LOST_AFTER_S - 1, save)
    assert not team.sent("team/urgent")
    assert "team/urgent" not in team.indexed()
    team.wait(5, save)
    assert team.sent("team/urgent") or "team/urgent" in team.indexed()
    team.work()
    assert team.indexed() == {"team/a", "team/busy", "team/urgent"}


def test_a_text_that_cannot_be_read_now_is_sent_later(
    team: SteeredTeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts lie on a disk; the error is shown, and the item is not forgotten."""
    (folder,) = team.folders
    folder.write("b")

    def fails(_: Item) -> Item:
        raise StoreError("The disk is away.")

    with monkeypatch.context() as patch:
        patch.setattr(Item, "whole", fails)
        team.scan()
        team.wait(3)
        assert "disk is away" in team.coordinator.error
        assert team.coordinator.is_busy
    team.work()
    assert team.indexed() == {"team/a", "team/b"}


def test_a_lost_save_is_sent_again_once_in_a_while(team: SteeredTeam) -> None:
    """Each time it is lost, and no more often than every 15 s."""
    (folder,) = team.folders
    folder.write("b")
    team.scan()
    sent = []
    for _ in range(100):
        if team.sent("team/b"):
            sent.append(team.time)
            team.lose("team/b")
        team.tick()
    gaps = [later - earlier for earlier, later in pairwise(sent)]
    assert gaps
    assert all(LOST_AFTER_S <= gap <= LOST_AFTER_S + 2 for gap in gaps)


def test_what_waits_is_not_lost(team: SteeredTeam) -> None:
    """While no worker takes jobs, the queue does not grow, reconciled or not."""
    (folder,) = team.folders
    for name in "bcd":
        folder.write(name)
        team.scan()
    folder.delete("a")
    team.scan()
    team.wait(60)
    team.coordinator.reconcile()
    team.wait(60)
    assert len(team.queue.jobs) == 4
    team.work()
    assert team.indexed() == {"team/b", "team/c", "team/d"}


def test_what_could_not_be_queued_is_sent_soon(team: SteeredTeam) -> None:
    """When the queue fails half way, the other half is not sent twice."""
    (folder,) = team.folders
    for number in range(40):  # two jobs
        folder.write(f"s{number:02}")
    team.queue.room = 1
    team.scan()
    assert "full" in team.coordinator.error
    assert len(team.queue.jobs) == 1
    team.queue.room = 9
    team.tick()
    assert [len(job.items) for job, _ in team.queue.jobs] == [32, 8]
    assert team.coordinator.error == ""
    team.work()
    assert len(team.indexed()) == 41


def test_an_older_write_confirms_no_newer_one(team: SteeredTeam) -> None:
    """Of two saves of an item the second is lost; it is awaited, and sent again."""
    (folder,) = team.folders
    folder.write("a", "First")
    team.scan()
    folder.write("a", "Second")
    team.scan()
    del team.queue.jobs[1]
    team.work()
    assert team.coordinator.status().pending == 1
    team.tick(LOST_AFTER_S + 1)
    team.work()
    assert team.hashes() == {"team/a": folder.items["a"].metadata_hash()}


def test_a_late_write_is_corrected_without_a_reconcile(team: SteeredTeam) -> None:
    """An item is saved, saved again and set back, and the last job is lost unnoticed."""
    (folder,) = team.folders
    for text in ("First", "Second", "First"):
        folder.write("a", text)
        team.scan()
    team.deliver("team/a")
    team.tick()  # it confirms the third save, which has the same text
    assert not team.coordinator.status().pending
    del team.queue.jobs[1]
    team.work()
    assert team.hashes() == {"team/a": folder.items["a"].metadata_hash()}


def test_a_removal_on_its_way_is_not_sent_again(team: SteeredTeam) -> None:
    """A reconcile finds the item still stored, and waits."""
    (folder,) = team.folders
    folder.write("b")
    team.scan()
    team.work()
    folder.delete("b")
    team.scan()
    team.coordinator.reconcile()
    team.tick()
    assert team.sent("team/b") == 1
    team.work()
    assert team.indexed() == {"team/a"}


def test_revisions_do_not_go_back_after_a_reconcile(team: SteeredTeam) -> None:
    """The time of day stands still, and what was sent is not stored yet."""
    (folder,) = team.folders
    for text in ("First", "Second", "Third"):
        folder.write("a", text)
        team.coordinator.reconcile()
        team.scan()
    revisions = [job.revision for job, _ in team.queue.jobs]
    assert revisions == sorted(set(revisions))
    team.queue.jobs.reverse()
    team.work()
    assert team.hashes() == {"team/a": folder.items["a"].metadata_hash()}


def test_a_failure_is_not_tried_again_by_itself(team: SteeredTeam) -> None:
    """Neither after a restart; an older version stays indexed, and is not the source's."""
    (folder,) = team.folders
    folder.write("a", "Bad")
    folder.write("bad")
    before = team.hashes()
    team.scan()
    team.fail("team/a")
    team.wait(40)
    assert not team.queue.jobs
    assert not team.coordinator.status().pending
    assert [one.items for one in team.coordinator.status().sources] == [1]
    team.start()
    team.wait(40)
    assert not team.queue.jobs
    assert team.hashes() == before


def test_searches_say_that_an_item_has_failed(team: SteeredTeam) -> None:
    """Until it is indexed: what is found instead is older than its file."""

    def notices() -> tuple[str, ...]:
        return KnownSources().after(team.coordinator.status(), "").every_notice(1)

    (folder,) = team.folders
    folder.write("a", "Bad")
    team.scan()
    assert FAILED not in notices()
    team.fail("team/a")
    team.wait(2)
    assert FAILED in notices()
    assert FAILED not in KnownSources().after(team.coordinator.status().inherited(), "").notices
    folder.write("a", "Good")
    team.scan()
    team.work()
    team.wait(2)
    assert FAILED not in notices()


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("ids", [["first"], None])
def test_a_failure_can_be_retried(
    team: SteeredTeam, restarted: bool, ids: list[str] | None
) -> None:
    """What the source offers is sent at once, with a new revision."""
    (folder,) = team.folders
    folder.write("bad")
    team.scan()
    team.fail("team/bad")
    if restarted:
        team.start()
    team.tick()
    if ids is None:
        assert team.failures.clear() == 1
    else:
        assert team.failures.remove([one.id for one in team.failures.list()]) == 1
    team.tick()
    assert team.sent("team/bad") == 1
    team.coordinator.reconcile()
    team.tick()
    assert team.sent("team/bad") == 1
    team.work()
    assert team.indexed() == {"team/a", "team/bad"}
    assert not team.coordinator.status().pending


def test_a_failed_removal_is_retried_as_well(team: SteeredTeam) -> None:
    """Until then the item stays indexed, and nothing is sent."""
    (folder,) = team.folders
    folder.write("b")
    team.scan()
    team.work()
    folder.delete("b")
    team.scan()
    team.fail("team/b")
    team.wait(40)
    assert not team.queue.jobs
    assert team.indexed() == {"team/a", "team/b"}
    team.failures.clear()
    team.tick()
    team.work()
    assert team.indexed() == {"team/a"}


def test_a_retry_never_raises_the_dead(team: SteeredTeam) -> None:
    """A failed save is retried long after its item was deleted, while no watch service ran."""
    (folder,) = team.folders
    folder.write("bad")
    team.scan()
    team.fail("team/bad")
    folder.delete("bad")
    assert team.failures.clear() == 1
    team.start()
    team.work()
    assert team.indexed() == {"team/a"}
    assert not team.queue.jobs


def test_more_failures_than_are_listed_are_not_tried_again(team: SteeredTeam) -> None:
    """They end no rebuild either, which tries each of them once."""
    (folder,) = team.folders
    bad = [f"bad-{number}" for number in range(FEW * 3)]
    for name in bad:
        folder.write(name)
        team.scan()
    for name in bad:
        team.fail(f"team/{name}")
    team.tick()
    assert not team.coordinator.status().pending
    team.wait(60, team.coordinator.reconcile)
    assert not team.queue.jobs
    assert len(team.failures.list()) == FEW
    assert team.failures.count() == len(bad)

    before = team.active
    team.rebuild()
    (job,) = [job for job, _ in team.queue.jobs]
    team.queue.jobs.clear()
    for one in job.split():
        team.queue.submit(one, QueueName.BUILDS)
    for name in bad:
        team.fail(f"team/{name}")
    team.work()
    assert team.active != before
    assert team.indexed() == {"team/a"}


def test_failures_are_read_only_when_they_change(team: SteeredTeam) -> None:
    """Whatever is pending or has failed."""
    (folder,) = team.folders
    folder.write("bad")
    folder.write("b")
    team.scan()
    (job, queue_name) = team.queue.jobs.pop()
    for one in job.split():
        team.queue.submit(one, queue_name)
    team.fail("team/bad")
    team.tick()
    reads = team.failures.reads
    team.wait(10)
    assert team.failures.reads == reads
    folder.write("bad", "Other words")
    team.scan()
    assert team.failures.reads > reads


def test_a_failure_leaves_the_list_with_its_text(team: SteeredTeam) -> None:
    """When its item changes, when it is deleted, or when it is written after all."""
    (folder,) = team.folders
    for name in ("changed", "deleted", "written"):
        folder.write(name)
        team.scan()
    team.queue.submit(team.queue.jobs[2][0], QueueName.SAVES)
    for name in ("changed", "deleted", "written"):
        team.fail(f"team/{name}")
    team.tick()
    assert team.failures.count() == 3
    team.work()
    assert team.indexed() == {"team/a", "team/written"}
    assert {item for one in team.failures.list() for item in one.items} == {
        "team/changed",
        "team/deleted",
    }
    folder.write("changed", "Other words")
    folder.delete("deleted")
    team.scan()
    team.work()
    assert team.failures.count() == 0
    assert team.indexed() == {"team/a", "team/written", "team/changed"}


def test_failures_are_kept_while_sources_are_unread(team: SteeredTeam) -> None:
    """After a restart, and while a source is away, their items may be as they were."""
    more = Folder("more", "x")
    team.adopt(*team.folders, more)
    team.work()
    more.write("bad")
    team.scan()
    team.fail("more/bad")
    team.start_unread()
    team.tick()
    team.scan(team.folders[0])
    team.wait(3)
    assert team.failures.count() == 1
    more.is_unreadable = True
    team.scan()
    team.wait(3)
    assert team.failures.count() == 1
    more.is_unreadable = False
    more.delete("bad")
    team.scan()
    team.tick()
    assert team.failures.count() == 0


@pytest.mark.parametrize("is_unreadable", [False, True])
def test_refusing_an_empty_configuration_costs_few_reads(
    team: SteeredTeam, is_unreadable: bool
) -> None:
    """While a configuration without items is refused, the store is read only now and then."""
    empty = Folder("other")
    empty.is_unreadable = is_unreadable
    team.adopt(empty)
    team.work()
    assert team.indexed() == {"team/a"}
    assert "no items at all" in team.coordinator.status().error
    assert team.coordinator.is_finished
    team.store.opened = 0
    for _ in range(20):
        team.tick(0.05)
    assert not team.coordinator.is_busy
    assert team.store.opened <= 2
    empty.is_unreadable = False
    empty.write("b")
    team.scan()
    team.work()
    assert team.indexed() == {"other/b"}
    assert team.coordinator.status().error == ""


def test_a_lost_save_does_not_wait_for_the_end_of_a_build(team: SteeredTeam) -> None:
    """Queued jobs of a build do not hide that a save was lost."""
    (folder,) = team.folders
    team.rebuild()
    assert team.queues() == [QueueName.BUILDS]
    folder.write("b")
    team.scan()
    team.queue.jobs = [one for one in team.queue.jobs if one[1] is QueueName.BUILDS]
    team.tick(LOST_AFTER_S + 1)
    assert QueueName.SAVES in team.queues()


def test_an_unavailable_store_resends_no_jobs(team: SteeredTeam) -> None:
    """An outage of Qdrant loses no job, so the queue does not grow."""
    (folder,) = team.folders
    folder.write("b")
    team.scan()
    for is_away in (True, False) * 3:
        team.store.is_away = is_away
        team.coordinator.reconcile()
        team.tick()
    assert len(team.queue.jobs) == 1
    team.work()
    assert team.indexed() == {"team/a", "team/b"}


def test_a_deleted_item_returns_although_the_clock_was_set_back(team: SteeredTeam) -> None:
    """An item that is created again after a restart at an earlier time is written at once."""
    (folder,) = team.folders
    folder.write("b")
    team.scan()
    team.work()
    team.now += 3_600
    folder.delete("b")
    team.scan()
    team.work()
    assert team.indexed() == {"team/a"}
    team.now -= 3_600
    team.start()
    folder.write("b")
    team.scan()
    team.work()
    assert team.indexed() == {"team/a", "team/b"}


@pytest.mark.parametrize("removes", [False, True])
def test_a_late_write_of_a_watch_whose_clock_was_ahead_is_corrected(
    team: SteeredTeam, *, removes: bool
) -> None:
    """Another watch took over while its job waited; no reconcile is needed."""
    (folder,) = team.folders
    team.now += 3_600
    folder.delete("a") if removes else folder.write("a", "Older words")
    folder.write("b")
    team.scan()
    team.now -= 3_600
    team.start()
    folder.write("a", "Newer words")
    team.scan()
    for _ in range(round(2 * LOST_AFTER_S)):
        team.work()
    assert not team.coordinator.is_busy
    (newer,) = [item for item in folder.scan().items if item.id == "team/a"]
    assert team.hashes()["team/a"] == newer.metadata_hash()


def test_a_gap_is_handled_when_the_store_is_back(team: SteeredTeam) -> None:
    """Deltas that were lost during an outage are not treated as read."""
    (folder,) = team.folders
    folder.write("b")
    folder.write("c")
    team.scan()
    team.queue.deliver(0, keep=True)
    team.deltas.drop(team.active)
    team.store.is_away = True
    team.tick()
    team.store.is_away = False
    team.tick()
    assert not team.coordinator.status().pending
    assert len(team.queue.jobs) == 1
    folder.write("d")
    team.scan()
    team.queue.jobs.clear()
    team.deltas.drop(team.active)
    team.tick(LOST_AFTER_S + 1)
    team.work()
    assert team.indexed() == {"team/a", "team/b", "team/c", "team/d"}


def test_a_collection_without_a_model_is_dropped_once_there_is_one(team: SteeredTeam) -> None:
    """It is never active again; collections of other models stay."""
    team.engine = Modelled("a test")
    team.coordinator.reconcile()
    team.tick()
    team.work()
    assert "_test-" in team.active
    team.tick(GRACE_S + 1)
    team.tick(GRACE_S + 1)
    assert team.store.collections() == [team.active]


def test_a_release_with_another_recipe_builds_again(
    team: SteeredTeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is upgraded while it runs: a new collection, and no recipes mixed in one."""
    (folder,) = team.folders
    before = team.store.alias(NAMESPACE) or ""
    for module in ("indexing.collection_names", "catalogue.item"):
        monkeypatch.setattr(f"repertory.{module}.RECIPE", recipe_of(before) + 1)
    team.start()
    team.tick()
    assert team.coordinator.status().building
    folder.write("b")
    team.scan()
    assert set(team.queues()) == {QueueName.SAVES, QueueName.BUILDS}
    team.work()
    active = team.store.alias(NAMESPACE) or ""
    assert recipe_of(active) == recipe_of(before) + 1
    assert team.indexed() == {"team/a", "team/b"}
    assert team.coordinator.status().building is None
    with team.store.open(before) as old:
        assert [state.item for state in old.states()] == ["team/a"]


def test_unreadable_jobs_leave_the_list_when_their_collection_is_whole(team: SteeredTeam) -> None:
    """Their items were sent again meanwhile; a failed request stays until one succeeds."""
    (folder,) = team.folders
    unreadable = Failure(
        id="unreadable",
        collection=team.store.alias(NAMESPACE) or "",
        items={},
        error="The job is of version 0.",
        at=0.0,
        attempts=1,
    )
    request = msgspec.structs.replace(unreadable, id="request", is_request=True)
    stranger = msgspec.structs.replace(unreadable, id="stranger", collection="")
    former = msgspec.structs.replace(request, id="former", collection="no longer kept")
    for failure in (unreadable, request, stranger, former):
        team.failures.add(failure)
    folder.write("b")
    team.scan()
    team.tick()
    assert {failure.id for failure in team.failures.list()} == {"unreadable", "request"}
    team.work()
    assert [failure.id for failure in team.failures.list()] == ["request"]


def test_failures_are_dropped_with_their_collection(team: SteeredTeam) -> None:
    """A collection that is no longer written to has no failures."""
    (folder,) = team.folders
    folder.write("bad")
    team.scan()
    team.fail("team/bad")
    team.tick()
    assert team.failures.list()
    team.adopt(*team.folders, Folder("more", "x"))
    team.work()
    assert team.failures.list() == []
    assert team.failures.count() == 0


def test_a_build_is_published_when_it_can_be_searched_fast(
    team: SteeredTeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then the previous one is searched, saves go on, and the store is asked in each poll."""
    asked: list[str] = []
    is_built = False

    def is_ready(collection: EdgeCollection) -> bool:
        asked.append(collection.name)
        return is_built

    monkeypatch.setattr(EdgeCollection, "is_ready", is_ready)
    (folder,) = team.folders
    before = team.store.alias(NAMESPACE)
    other = Folder("other", "b")
    team.adopt(folder, other)
    team.work()
    assert team.store.alias(NAMESPACE) == before
    asked.clear()
    for _ in range(10):
        team.tick(POLL_INTERVAL_S / 5)
    assert len(asked) == 2
    other.write("c")
    team.scan()
    team.work()
    assert team.store.alias(NAMESPACE) == before
    is_built = True
    team.tick()
    assert team.store.alias(NAMESPACE) == asked[-1] != before
    assert team.indexed() == {"team/a", "other/b", "other/c"}


def test_a_first_index_is_published_before_it_can_be_searched_fast(
    steer: Steer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It replaces nothing."""
    monkeypatch.setattr(EdgeCollection, "is_ready", lambda _: False)
    team = steer(Folder("team", "a"))
    team.work()
    assert team.indexed() == {"team/a"}
