"""The coordinator when jobs, stores and clocks misbehave."""

from itertools import pairwise
from unittest.mock import Mock, PropertyMock

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
from repertory.indexing.ledger import MAX_VERSIONS
from repertory.indexing.scan import scan_source
from repertory.live_search.known_sources import KnownSources
from repertory.notices import FAILED
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
    """It takes at most 20 s, despite other saves, confirmations and reconciles."""
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
    """Texts are read from the disk; a failure is reported, and the item stays pending."""
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


def test_a_lost_save_is_sent_again_at_intervals(team: SteeredTeam) -> None:
    """It is sent each time it is lost, but at most every 15 s."""
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


def test_waiting_jobs_are_not_sent_again(team: SteeredTeam) -> None:
    """Without workers the queue does not grow, even after a reconcile."""
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


def test_jobs_that_a_full_queue_refused_are_sent_soon(team: SteeredTeam) -> None:
    """If the queue fails half-way, only the other half is sent again."""
    (folder,) = team.folders
    for number in range(40):  # enough for two jobs
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


def test_a_queue_that_stays_full_is_logged_once_a_minute(
    team: SteeredTeam, caplog: pytest.LogCaptureFixture
) -> None:
    """Between two attempts to send, the coordinator succeeds, because it reads the store first."""
    (folder,) = team.folders
    folder.write("b")
    team.queue.room = 0
    team.scan()
    failures = 0
    for _ in range(100):
        team.tick(POLL_INTERVAL_S * 1.5)
        team.tick(POLL_INTERVAL_S / 2)
        failures += bool(team.coordinator.failure)
    logged = [record for record in caplog.records if record.message == "coordinator_waits"]
    assert failures < 100
    assert len(logged) == 2


@pytest.mark.parametrize("collections", [1, 2], ids=["no build", "a build"])
def test_the_queue_does_not_grow_with_each_save_of_an_item(
    team: SteeredTeam, collections: int
) -> None:
    """While no worker runs, some versions of an item wait; then the newest is written."""
    (folder,) = team.folders
    if collections == 2:
        team.work()
        team.rebuild()
    before = team.active

    def save() -> None:
        folder.write("a", f"At {team.time}")
        team.coordinator.observe(scan_source(folder))

    team.wait(100, save)
    assert team.sent("team/a") == MAX_VERSIONS * collections
    assert team.active == before
    team.work()
    assert (team.active != before) == (collections == 2)
    assert team.hashes() == {"team/a": folder.items["a"].metadata_hash()}


def test_a_held_save_is_sent_once_an_older_one_is_done(team: SteeredTeam) -> None:
    """It does not wait for the newer pending versions, which may be lost."""
    (folder,) = team.folders
    for number in range(MAX_VERSIONS + 1):
        folder.write("a", f"Text {number}")
        team.scan()
    assert len(team.queue.jobs) == MAX_VERSIONS
    team.deliver("team/a")
    team.tick()
    assert len(team.queue.jobs) == MAX_VERSIONS
    del team.queue.jobs[:-1]
    team.work()
    assert team.hashes() == {"team/a": folder.items["a"].metadata_hash()}


def test_an_older_write_does_not_confirm_a_newer_one(team: SteeredTeam) -> None:
    """The second of two saves of an item is lost; it stays pending and is sent again."""
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
    """An item is saved, saved again and reverted, and the last job is lost unnoticed."""
    (folder,) = team.folders
    for text in ("First", "Second", "First"):
        folder.write("a", text)
        team.scan()
    team.deliver("team/a")
    team.tick()  # the first save confirms the third, which has the same text
    assert not team.coordinator.status().pending
    del team.queue.jobs[1]
    team.work()
    assert team.hashes() == {"team/a": folder.items["a"].metadata_hash()}


def test_a_waiting_removal_is_not_sent_again(team: SteeredTeam) -> None:
    """A reconcile finds the item still stored, but the removal is already queued."""
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


def test_revisions_increase_across_reconciles(team: SteeredTeam) -> None:
    """The clock stands still, and the sent items are not stored yet."""
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


def test_a_failed_item_is_not_retried_automatically(team: SteeredTeam) -> None:
    """This includes a restart. The older version stays indexed and still counts."""
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
    """The notice stays until the item is indexed, since the index has an older version."""

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
    """The current text is sent at once, and only once."""
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


def test_a_failed_removal_can_be_retried(team: SteeredTeam) -> None:
    """Until the retry the item stays indexed, and nothing is sent."""
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


def test_a_retry_does_not_restore_a_deleted_item(team: SteeredTeam) -> None:
    """A failed save is retried after its item was deleted while no watch service ran."""
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


def test_failures_beyond_the_listed_ones_are_not_retried(team: SteeredTeam) -> None:
    """A rebuild tries each of them once, and completes."""
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
    """Pending and failed items cause no further reads."""
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


def test_a_failure_is_removed_when_its_item_changes(team: SteeredTeam) -> None:
    """It is also removed when the item is deleted or written after all."""
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
    """After a restart, or while a source is unreadable, its items may be unchanged."""
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
    """A configuration without items is refused, and the store is then read only occasionally."""
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
    """Queued jobs of a build do not hide the loss of a save."""
    (folder,) = team.folders
    team.rebuild()
    assert team.queues() == [QueueName.BUILDS]
    folder.write("b")
    team.scan()
    team.queue.jobs = [one for one in team.queue.jobs if one[1] is QueueName.BUILDS]
    team.tick(LOST_AFTER_S + 1)
    assert QueueName.SAVES in team.queues()


def test_an_unavailable_store_resends_no_jobs(team: SteeredTeam) -> None:
    """An outage of Qdrant loses no jobs, so the queue does not grow."""
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
    """An item that is created again after a restart with an earlier clock is written at once."""
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
    """Another watch took over while the job waited; no reconcile is needed."""
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
    """Announcements that were lost during an outage are not treated as read."""
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


def test_a_collection_without_a_model_is_dropped_once_a_model_is_used(team: SteeredTeam) -> None:
    """It cannot become active again."""
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
    """The server is upgraded in operation; a collection never mixes two recipes."""
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


def test_unreadable_jobs_leave_the_list_when_their_collection_is_complete(
    team: SteeredTeam,
) -> None:
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
    """A collection that is no longer written has no failures."""
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
    """Until its graph is ready, the old index is searched, and saves reach the new one."""
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
    """It replaces no other index, so it does not wait for its graph."""
    monkeypatch.setattr(EdgeCollection, "is_ready", lambda _: False)
    team = steer(Folder("team", "a"))
    team.work()
    assert team.indexed() == {"team/a"}


def test_a_first_index_is_not_opened_once_the_lease_has_ended(
    steer: Steer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease may end while a tick runs."""
    team = steer(Folder("team", "a"))
    while team.queue.jobs:
        team.queue.deliver(0)
    held = [True]
    lease = Mock()
    type(lease).is_held = PropertyMock(side_effect=lambda: bool(held and held.pop()))
    with monkeypatch.context() as patch:
        patch.setattr(team.coordinator, "_lease", lease)
        team.tick()
    assert not held
    assert team.active == ""
    team.tick()
    assert team.indexed() == {"team/a"}
