"""Rebuilds beside the active index, the first index, and which indexes are kept or dropped."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from repertory.coordination.unused_since import MemoryUnusedSince
from repertory.index.edge_collection import EdgeCollection
from repertory.index.vectors import State
from repertory.indexing.collection_names import configuration_of, model_slug, next_alias
from repertory.indexing.coordinator import KEEP_UNUSED_S
from repertory.indexing.generations import GRACE_S, MIN_DELTAS, SNAPSHOT_INTERVAL_S, Generations
from repertory.indexing.job import QueueName
from repertory.indexing.ledger import MAX_VERSIONS
from repertory.indexing.ledgers import IDLE_TIMEOUT_S
from repertory.indexing.unused_indexes import INTERVAL_S, UnusedIndexes
from repertory.notices import HAS_RIVAL
from repertory.sources.source import Scan, WatchedFolder
from repertory.values import NAMESPACE
from repertory.watch_status import Building, UnusedIndex, WatchStatus
from tests.support.builders import Folder
from tests.support.steered_team import Another, Modelled, Steer, SteeredTeam


@pytest.fixture
def files() -> Folder:
    """A source with one item."""
    return Folder("files", "f")


@pytest.fixture
def server() -> Folder:
    """Another source, with two items."""
    return Folder("server", "x", "y")


@pytest.fixture
def team(steer: Steer, files: Folder, server: Folder) -> SteeredTeam:
    """A team that has indexed both sources."""
    made = steer(files, server)
    made.work()
    assert made.indexed() == ALL
    return made


ALL = {"files/f", "server/x", "server/y"}


def emptied(team: SteeredTeam) -> list[str]:
    """The names of the sources that are reported as suddenly empty."""
    sources = team.coordinator.status().sources
    return [one.name for one in sources if "suddenly empty" in one.error]


def test_items_of_a_suddenly_empty_source_are_kept(team: SteeredTeam, server: Folder) -> None:
    """The folder may be unmounted. The status names it until it has items again."""
    server.items.clear()
    team.scan()
    team.coordinator.reconcile()
    team.wait(20)
    team.work()
    assert not team.queue.jobs
    assert team.indexed() == ALL
    assert emptied(team) == ["server"]
    team.start()
    team.work()
    assert team.indexed() == ALL
    assert emptied(team) == ["server"]
    server.write("x")
    team.scan()
    team.work()
    assert team.indexed() == {"files/f", "server/x"}
    assert emptied(team) == []


def test_a_requested_rebuild_accepts_an_empty_source(team: SteeredTeam, server: Folder) -> None:
    """A requested rebuild removes the items of the empty source, as the status message says."""
    server.items.clear()
    team.scan()
    team.rebuild()
    team.work()
    assert team.indexed() == {"files/f"}
    assert emptied(team) == []


def test_an_automatic_rebuild_keeps_the_items_of_an_empty_source(
    team: SteeredTeam, server: Folder
) -> None:
    """A new model starts the rebuild by itself while the folder may be unmounted."""
    server.items.clear()
    team.scan()
    team.use(Modelled("a test"))
    assert "_test-" in team.active
    assert team.indexed() == ALL
    assert emptied(team) == ["server"]


def test_another_configuration_keeps_the_items_of_an_emptied_source(
    team: SteeredTeam, server: Folder
) -> None:
    """Only the items of sources that the new configuration does not name are dropped."""
    server.items.clear()
    team.adopt(server, Folder("more", "m"))
    team.work()
    assert team.indexed() == {"server/x", "server/y", "more/m"}


def test_an_empty_source_at_another_path_does_not_inherit_items(
    team: SteeredTeam, files: Folder
) -> None:
    """The new configuration uses the name for another folder, which is empty."""
    other = Folder("server")
    other.identity = lambda: {"name": "server", "path": "elsewhere"}  # type: ignore[method-assign]
    team.adopt(files, other)
    team.work()
    assert team.indexed() == {"files/f"}


def test_an_unreadable_item_of_a_source_at_another_path_is_kept(
    team: SteeredTeam, files: Folder
) -> None:
    """The name now stands for another folder, whose unreadable item may be the known one."""
    other = Folder("server")
    other.identity = lambda: {"name": "server", "path": "elsewhere"}  # type: ignore[method-assign]
    other.scan = lambda: Scan(  # type: ignore[method-assign]
        items=[], problems=[], unread=frozenset({"server/x"})
    )
    team.adopt(files, other)
    team.work()
    assert team.indexed() == {"files/f", "server/x"}


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("visible_to", [(), ("few",), ("few", "others")])
def test_an_unreadable_source_inherits_items_only_if_it_is_not_more_visible(
    team: SteeredTeam,
    files: Folder,
    server: Folder,
    visible_to: tuple[str, ...],
    is_restarted: bool,
) -> None:
    """The name stands for another folder; the old items must not become visible to more people."""
    server.visible_to = ("few", "some")
    team.adopt(files, server)
    team.work()
    other = Folder("server")
    other.identity = lambda: {"name": "server", "path": "elsewhere"}  # type: ignore[method-assign]
    other.visible_to = visible_to
    other.is_unreadable = True
    if is_restarted:
        team.folders = (files, other)
        former = {"files": (), "server": ("few", "some")}
        team.start_unread(WatchStatus(collection=team.active, former=former))
        team.scan()
    else:
        team.adopt(files, other)
    team.work()
    assert team.indexed() == (ALL if visible_to == ("few",) else {"files/f"})


def test_the_former_visibility_reported_for_another_index_is_ignored(
    team: SteeredTeam, files: Folder
) -> None:
    """A restored Redis may return such a report, whose names may mean other sources."""
    other = Folder("server")
    other.identity = lambda: {"name": "server", "path": "elsewhere"}  # type: ignore[method-assign]
    other.is_unreadable = True
    files.visible_to = ("few",)
    team.folders = (files, other)
    former: dict[str, tuple[str, ...]] = {"files": (), "server": ()}
    others = "repertory_0123456789abcdef_other_g1"
    team.start_unread(WatchStatus(collection=others, former=former))
    team.tick()
    assert team.coordinator.status().former == {}
    team.scan()
    team.work()
    assert team.indexed() == {"files/f"}


def test_a_configuration_that_was_just_published_is_the_former_one(
    team: SteeredTeam, files: Folder, server: Folder
) -> None:
    """Its visibility is known even if the next configuration follows at once."""
    other = Folder("server", "z")
    other.identity = lambda: {"name": "server", "path": "elsewhere"}  # type: ignore[method-assign]
    other.visible_to = ("few",)
    before = team.active
    team.adopt(files, other)
    while team.active == before:
        while team.queue.jobs:
            team.queue.deliver(0)
        team.tick()
    team.adopt(files, server, Folder("more", "m"))
    assert team.coordinator.status().former == {"files": (), "server": ("few",)}


def test_two_watches_of_different_catalogues_do_not_replace_each_other_for_ever(
    team: SteeredTeam, files: Folder
) -> None:
    """They share a Qdrant but no Redis. A watch that is replaced twice stops with an error."""
    own, others = team.active, "repertory_0123456789abcdef_other_g1"
    team.store.create(others, 3).close()
    team.store.set_alias(NAMESPACE, others)
    team.work()
    assert (team.active, team.coordinator.error) == (own, "")
    team.store.set_alias(NAMESPACE, others)
    files.write("new")
    team.scan()
    team.work()
    assert (team.active, team.coordinator.error) == (others, HAS_RIVAL)
    assert team.coordinator.is_finished
    team.adopt(files)
    team.work()
    assert configuration_of(team.active) == team.coordinator.status().configuration
    assert team.coordinator.error == ""


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_rebuild_keeps_the_items_of_an_unreadable_source(
    team: SteeredTeam, server: Folder, is_restarted: bool
) -> None:
    """They are copied from the active index, also after a restart."""
    server.is_unreadable = True
    if is_restarted:
        team.start()
    team.scan()
    before = team.active
    team.rebuild()
    team.work()
    assert team.active != before
    assert team.indexed() == ALL
    server.is_unreadable = False
    server.delete("y")
    team.scan()
    team.work()
    assert team.indexed() == {"files/f", "server/x"}


class Shared(Folder):
    """A source whose item ids equal those of another source; it may have limited visibility."""

    def __init__(self, name: str, *items: str, visible_to: tuple[str, ...] = ()) -> None:
        super().__init__(name, *items)
        self.visible_to = visible_to

    def write(self, name: str, description: str = "", body: str = "") -> None:
        """Save an item."""
        super().write(name, description, body)
        self.items[name] = msgspec.structs.replace(self.items[name], id=f"shared/{name}")


@pytest.mark.parametrize("first", [True, False])
def test_an_item_of_an_unreadable_source_keeps_its_precedence(steer: Steer, *, first: bool) -> None:
    """It still precedes an item of the same id from a later or less visible source."""
    one, two = Shared("one", "a", "b"), Shared("two", "a", visible_to=() if first else ("few",))
    team = steer(*((one, two) if first else (two, one)))
    team.work()
    held = team.hashes()
    one.is_unreadable = True
    two.write("a", "Other words")
    team.scan()
    team.work()
    assert team.hashes() == held
    assert [
        (state.name, state.stale) for state in team.coordinator.status().sources if state.stale
    ] == [("one", 2)]
    team.start_unread()
    team.scan(two)
    team.work()
    assert team.hashes() == held
    before = team.active
    team.rebuild()
    team.work()
    team.work()
    assert team.active != before
    assert team.hashes() == held
    one.is_unreadable = False
    one.delete("a")
    team.scan()
    team.work()
    assert team.hashes()["shared/a"] == two.items["a"].metadata_hash()


def test_items_of_a_source_that_was_not_read_yet_are_kept(team: SteeredTeam, files: Folder) -> None:
    """After a restart, the index keeps the items of sources that were not scanned yet."""
    team.start_unread()
    team.scan(files)
    team.work()
    assert not team.queue.jobs
    assert team.indexed() == ALL
    assert emptied(team) == []


def test_a_build_is_not_published_before_every_folder_was_read(
    team: SteeredTeam, files: Folder, server: Folder
) -> None:
    """The coordinator restarts during the build and has scanned only one of two folders."""
    files.folder = server.folder = WatchedFolder(Path("/nowhere"), lambda _: True)
    before = team.active
    team.rebuild()
    server.write("new")
    team.queue.jobs.clear()
    team.start_unread()
    team.scan(files)
    team.work()
    assert team.active == before
    team.scan(server)
    team.work()
    assert team.active != before
    assert team.indexed() == ALL | {"server/new"}


def test_a_removal_during_a_build_reaches_both_indexes(team: SteeredTeam, server: Folder) -> None:
    """The active index and the build get separate jobs."""
    team.rebuild()
    assert team.queues() == [QueueName.BUILDS]
    server.delete("y")
    team.scan()
    team.work()
    assert team.indexed() == {"files/f", "server/x"}


@pytest.mark.parametrize("waiting", [1, 2 * MAX_VERSIONS - 1], ids=["the last", "many of them"])
def test_a_build_is_published_despite_constant_saves(
    team: SteeredTeam, files: Folder, waiting: int
) -> None:
    """At every tick another save is pending. The build is complete when it is published."""
    before = team.active
    team.rebuild()
    for number in range(round(IDLE_TIMEOUT_S) + 5):
        files.write("f", f"Other words {number}")
        team.scan(files)
        for _ in range(len(team.queue.jobs) - waiting):
            team.queue.deliver(0)
        assert team.coordinator.is_busy
    assert team.active != before
    assert team.indexed() == ALL
    team.work()
    assert team.indexed() == ALL


def test_a_build_waits_for_a_missing_item_despite_other_saves(
    team: SteeredTeam, files: Folder
) -> None:
    """The job of that item is lost and sent again while other items are saved."""
    before = team.active
    team.rebuild()
    assert team.sent("server/x") == 1
    team.lose("server/x")
    for number in range(4):
        files.write("f", f"Other words {number}")
        team.scan(files)
        while team.sent("files/f"):
            team.deliver("files/f")
    assert team.active == before
    team.wait(20)
    assert team.sent("server/x") == 1
    files.write("f", "The last words")
    team.scan(files)
    assert team.active == before
    team.work()
    assert team.active != before
    assert team.indexed() == ALL


def test_items_are_written_to_collections_of_their_configuration_only(
    team: SteeredTeam, files: Folder
) -> None:
    """While another configuration is built, the active index does not change."""
    before, held = team.active, team.hashes()
    files.write("f", "Other words")
    team.adopt(files, Folder("more", "m"))
    assert team.active == before
    written = {configuration_of(job.collection) for job, _ in team.queue.jobs}
    assert written
    assert configuration_of(before) not in written
    team.work()
    with team.store.open(before) as collection:
        assert {one.item: one.metadata_hash for one in collection.states()} == held
    assert team.indexed() == {"files/f", "more/m"}


def test_the_replaced_generation_outlives_its_searches(team: SteeredTeam) -> None:
    """It is dropped after a grace period, with its announcements and snapshot."""
    before = team.active
    team.deltas.announce(before, {"a": "1"})
    team.rebuild()
    team.work()
    assert team.active != before
    team.tick(GRACE_S - 5)
    assert before in team.store.collections()
    team.tick(6)
    assert team.store.collections() == [team.active]
    assert team.deltas.length(before) == 0
    assert team.coordination.snapshots.load(before) is None


@pytest.mark.parametrize("is_whole", [True, False])
def test_the_replaced_index_is_read_only_if_items_must_be_kept(
    team: SteeredTeam, server: Folder, monkeypatch: pytest.MonkeyPatch, *, is_whole: bool
) -> None:
    """Reading a million states takes 21 s and is needless if every source was read completely."""
    before, read = team.active, []
    states = EdgeCollection.states

    def noted(self: EdgeCollection, items: Sequence[str] | None = None) -> Iterator[State]:
        read.append((self.name, items))
        return states(self, items)

    server.is_unreadable = not is_whole
    team.scan()
    team.rebuild()
    monkeypatch.setattr(EdgeCollection, "states", noted)
    team.work()
    assert team.active != before
    assert team.indexed() == ALL
    assert ((before, None) not in read) is is_whole


def test_a_single_command_drops_the_replaced_generation(team: SteeredTeam) -> None:
    """It does not wait for searches, but keeps a collection that another process has open."""
    before = team.active
    team.rebuild()
    team.work()
    with team.store.open(before):
        team.coordinator.retire()
        assert before in team.store.collections()
    team.coordinator.retire()
    assert team.store.collections() == [team.active]
    assert team.indexed() == ALL


def test_an_empty_index_may_follow_an_empty_index(steer: Steer) -> None:
    """An empty source is refused only if it would remove items."""
    team = steer()
    for folder in (Folder("team"), Folder("other")):
        before = team.active
        team.adopt(folder)
        team.work()
        assert team.coordinator.error == ""
        assert team.coordinator.is_finished
        assert team.active not in ("", before)
    folder.write("a")
    team.scan()
    team.work()
    assert team.indexed() == {"other/a"}


def test_a_published_index_gets_its_snapshot(team: SteeredTeam) -> None:
    """Otherwise every query process would build its own."""
    team.queue.snapshots = 0
    team.rebuild()
    team.work()
    assert team.queue.snapshots == 1
    assert team.coordination.snapshots.load(team.active)


def test_a_snapshot_is_requested_after_many_changes(team: SteeredTeam) -> None:
    """The request comes at the next interval, and announcements in the snapshot are trimmed."""
    team.queue.snapshots = 0
    team.tick(SNAPSHOT_INTERVAL_S)
    assert team.queue.snapshots == 0
    name, hashes = team.active, team.hashes()
    for _ in range(MIN_DELTAS + 1):
        team.deltas.announce(name, hashes)
    team.wait(SNAPSHOT_INTERVAL_S)
    assert team.queue.snapshots == 1
    assert team.deltas.length(team.active) == 0


def test_a_first_index_is_searchable_from_its_first_item(steer: Steer, files: Folder) -> None:
    """Until it is complete, its status says how many items are missing, also after a restart."""
    files.write("g")
    team = steer(files)
    (job, queue_name) = team.queue.jobs.pop()
    for one in job.split():
        team.queue.submit(one, queue_name)
    assert team.active == ""
    team.queue.deliver(0)
    team.tick()
    assert team.indexed() == {"files/f"}
    status = team.coordinator.status()
    assert status.building == Building(collection=team.active, done=1, total=2)
    assert status.first_items == 2
    assert not team.coordinator.is_finished
    waiting = team.queue.jobs
    team.start()
    assert team.coordinator.status().first_items == 2
    team.queue.jobs = waiting
    team.work()
    assert team.indexed() == {"files/f", "files/g"}
    assert team.coordinator.status().building is None
    assert team.coordinator.is_finished


def test_an_unused_index_is_kept_for_a_while(team: SteeredTeam, files: Folder) -> None:
    """It is listed with its size. Using it again resets its time."""
    first, folders = team.active, team.folders
    team.adopt(files)
    team.work()
    assert team.active != first
    left = team.now

    def wait(seconds: float) -> list[UnusedIndex]:
        team.now += seconds
        team.tick(INTERVAL_S)
        return team.coordinator.status().unused

    assert wait(0) == [UnusedIndex(collection=first, points=3, since=left)]
    assert wait(KEEP_UNUSED_S - 1) == [UnusedIndex(collection=first, points=3, since=left)]
    second = team.active
    team.adopt(*folders)
    team.work()
    assert team.active == first
    returned = team.now
    assert wait(0) == [UnusedIndex(collection=second, points=1, since=returned)]
    assert wait(KEEP_UNUSED_S - 1) == [UnusedIndex(collection=second, points=1, since=returned)]
    team.start()
    assert wait(2) == []
    assert team.store.collections() == [first]


def test_an_index_of_an_unused_model_is_dropped(team: SteeredTeam) -> None:
    """Collections of other namespaces and collections that are no index stay."""
    others = {"repertory_sandbox_0123456789abcdef_test-r1", f"other{team.active[9:]}"}
    for name in others:
        team.store.create(name, 1).close()
    team.use(Modelled("a test"))
    model = team.active
    team.use(Another("a test"))
    assert "_another-" in team.active
    team.tick(INTERVAL_S)
    assert [one.collection for one in team.coordinator.status().unused] == [model]
    team.now += KEEP_UNUSED_S
    team.tick(INTERVAL_S)
    assert team.coordinator.status().unused == []
    assert set(team.store.collections()) == {team.active, *others}


def test_the_vectors_of_an_unused_model_are_dropped(team: SteeredTeam) -> None:
    """They are dropped some time after its last index; vectors of other namespaces stay."""
    team.use(Modelled("a test"))
    model, old = team.active, model_slug(team.active)
    mine, new, other = f"repertory_vectors_{old}", "repertory_vectors_another", "b_vectors_c"
    for name in (mine, new, other):
        team.store.create(name, 1).close()
    team.use(Another("a test"))
    for kept in ({model, mine}, {mine}, {mine}, set[str]()):
        team.tick(INTERVAL_S)
        assert {*team.store.collections()} == {team.active, new, other, *kept}
        team.now += KEEP_UNUSED_S


def test_an_index_of_another_data_directory_is_never_unused(team: SteeredTeam) -> None:
    """Its own aliases mark its searched index and the one that it is filling."""
    searched, filled = (f"repertory_{digit * 16}_test-r2_g1" for digit in "12")
    directory, configuration = f"repertory_{'3' * 16}", "2" * 16
    for name in (searched, filled):
        team.store.create(name, 1).close()
    team.store.set_alias(f"repertory_{'1' * 16}", searched)  # as a complete index has it
    team.store.set_alias(directory, searched)
    team.store.set_alias(f"{directory}_{configuration}_next", filled)
    for _ in range(2):
        team.now += KEEP_UNUSED_S
        team.tick(INTERVAL_S)
        assert team.coordinator.status().unused == []
    assert set(team.store.collections()) == {team.active, searched, filled}


def test_an_index_that_is_being_replaced_is_not_unused(team: SteeredTeam, files: Folder) -> None:
    """Searches read it until the build is complete, however long that takes."""
    before = team.active
    team.adopt(files)
    for _ in range(3):
        team.now += KEEP_UNUSED_S
        team.tick(INTERVAL_S)
    assert team.active == before
    assert team.coordinator.status().unused == []
    team.work()
    assert team.indexed() == {"files/f"}


def test_indexes_in_an_embedded_store_are_never_unused(team: SteeredTeam) -> None:
    """Other data directories may use indexes that this one does not use."""
    dropped: list[str] = []
    active = "repertory_0123456789abcdef"
    own = UnusedIndexes(team.store, active, MemoryUnusedSince(), 0.0, dropped.append)
    own.check([], INTERVAL_S, team.now)
    assert (own.listed, dropped) == ([], [])


def test_an_existing_index_is_not_opened_early_as_a_first_index(team: SteeredTeam) -> None:
    """Another directory with this configuration has built it, perhaps with another model."""
    active = "repertory_0123456789abcdef"
    configuration = configuration_of(team.active)
    generations = Generations(team.store, team.queue, team.coordination, active)
    generations.adopt(configuration)
    team.store.set_alias(next_alias(active, configuration), team.active)
    generations.poll(team.time)
    assert generations.is_building
    generations.open_first()
    assert generations.active is None


def test_a_build_is_not_finished_before_it_is_published(team: SteeredTeam) -> None:
    """All items are written, but the store fails during the last comparison."""
    before = team.active
    team.rebuild()
    while team.queue.jobs:
        team.queue.deliver(0)
    team.store.is_away = True
    team.tick()
    assert not team.coordinator.is_busy
    assert not team.coordinator.is_finished
    team.store.is_away = False
    team.wait(2)
    assert team.coordinator.is_finished
    assert team.active != before
