"""Builds beside the active index, the first index, and what is kept and dropped afterwards."""

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
from repertory.indexing.ledgers import IDLE_TIMEOUT_S
from repertory.indexing.unused_indexes import INTERVAL_S, UnusedIndexes
from repertory.notices import HAS_RIVAL
from repertory.sources.source import Scan, WatchedFolder
from repertory.stats import Building, UnusedIndex, WatchStatus
from repertory.values import NAMESPACE
from tests.support.builders import Folder
from tests.support.steered_team import Another, Modelled, Steer, SteeredTeam


@pytest.fixture
def files() -> Folder:
    """A source of files with an item."""
    return Folder("files", "f")


@pytest.fixture
def server() -> Folder:
    """Another source, with two items."""
    return Folder("server", "x", "y")


@pytest.fixture
def team(steer: Steer, files: Folder, server: Folder) -> SteeredTeam:
    """A team that has indexed both."""
    made = steer(files, server)
    made.work()
    assert made.indexed() == ALL
    return made


ALL = {"files/f", "server/x", "server/y"}


def emptied(team: SteeredTeam) -> list[str]:
    """The sources that are reported as suddenly empty."""
    sources = team.coordinator.status().sources
    return [one.name for one in sources if "suddenly empty" in one.error]


def test_an_emptied_folder_empties_no_index(team: SteeredTeam, server: Folder) -> None:
    """It may be unmounted; its items stay after reconciles and restarts, and it is named."""
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


def test_a_rebuild_that_was_asked_for_accepts_an_emptied_folder(
    team: SteeredTeam, server: Folder
) -> None:
    """As the message says that names it."""
    server.items.clear()
    team.scan()
    team.rebuild()
    team.work()
    assert team.indexed() == {"files/f"}
    assert emptied(team) == []


def test_another_model_is_no_reason_to_empty_an_index(team: SteeredTeam, server: Folder) -> None:
    """A build that begins by itself, while a folder is not mounted, keeps its items."""
    server.items.clear()
    team.scan()
    team.use(Modelled("a test"))
    assert "_test-" in team.active
    assert team.indexed() == ALL
    assert emptied(team) == ["server"]


def test_another_configuration_keeps_the_items_of_an_emptied_source(
    team: SteeredTeam, server: Folder
) -> None:
    """And drops those of a source that it does not name."""
    server.items.clear()
    team.adopt(server, Folder("more", "m"))
    team.work()
    assert team.indexed() == {"server/x", "server/y", "more/m"}


def test_another_source_of_the_same_name_inherits_nothing(team: SteeredTeam, files: Folder) -> None:
    """The name now stands for another folder, which is empty."""
    other = Folder("server")
    other.identity = lambda: {"name": "server", "path": "elsewhere"}  # type: ignore[method-assign]
    team.adopt(files, other)
    team.work()
    assert team.indexed() == {"files/f"}


def test_another_source_of_the_same_name_keeps_its_unreadable_item(
    team: SteeredTeam, files: Folder
) -> None:
    """The name now stands for another folder, whose only item may be the known one."""
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
def test_an_unreadable_source_inherits_nothing_that_others_could_see(
    team: SteeredTeam,
    files: Folder,
    server: Folder,
    visible_to: tuple[str, ...],
    is_restarted: bool,
) -> None:
    """The name now stands for another folder. If it is no more visible, the items are kept."""
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


def test_a_report_about_another_index_says_nothing_about_the_searched_one(
    team: SteeredTeam, files: Folder
) -> None:
    """Such a report comes back with an old Redis: its names may mean other sources."""
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
    """Who may see its sources is known, although the next one comes before anything else."""
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
    """They share a Qdrant and no Redis. The one that is replaced again stops, and says why."""
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
def test_a_source_that_is_away_survives_a_rebuild(
    team: SteeredTeam, server: Folder, is_restarted: bool
) -> None:
    """Its items are copied from the active index."""
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
    """A source whose items have the ids of another one's, and perhaps few callers."""

    def __init__(self, name: str, *items: str, visible_to: tuple[str, ...] = ()) -> None:
        super().__init__(name, *items)
        self.visible_to = visible_to

    def write(self, name: str, description: str = "", body: str = "") -> None:
        """Save an item."""
        super().write(name, description, body)
        self.items[name] = msgspec.structs.replace(self.items[name], id=f"shared/{name}")


@pytest.mark.parametrize("first", [True, False])
def test_an_item_of_a_source_that_is_away_keeps_its_place(steer: Steer, *, first: bool) -> None:
    """Before one with the same id of a source that comes later, or that fewer callers see."""
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
    """After a restart, the index does not lose them in between."""
    team.start_unread()
    team.scan(files)
    team.work()
    assert not team.queue.jobs
    assert team.indexed() == ALL
    assert emptied(team) == []


def test_a_build_is_not_published_before_every_folder_was_read(
    team: SteeredTeam, files: Folder, server: Folder
) -> None:
    """After a restart in the middle of a build."""
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


def test_a_removal_during_a_build_holds_in_both(team: SteeredTeam, server: Folder) -> None:
    """The active index and the build get their own jobs."""
    team.rebuild()
    assert team.queues() == [QueueName.BUILDS]
    server.delete("y")
    team.scan()
    team.work()
    assert team.indexed() == {"files/f", "server/x"}


def test_a_build_ends_although_items_are_saved_all_the_time(
    team: SteeredTeam, files: Folder
) -> None:
    """A save is pending at every tick. What the build lacked before has to be there."""
    before = team.active
    team.rebuild()
    for number in range(round(IDLE_TIMEOUT_S) + 5):
        files.write("f", f"Other words {number}")
        team.scan(files)
        for _ in range(len(team.queue.jobs) - 1):
            team.queue.deliver(0)
        assert team.coordinator.is_busy
    assert team.active != before
    assert team.indexed() == ALL
    team.work()
    assert team.indexed() == ALL


def test_a_build_waits_for_what_it_lacked_before_it_is_compared(
    team: SteeredTeam, files: Folder
) -> None:
    """Also if its job is lost, and is sent again while others are saved."""
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
    """While another configuration is built, the active index stays as it is."""
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
    """It is dropped after a while, with its announcements."""
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
def test_what_is_replaced_is_read_only_if_something_is_kept(
    team: SteeredTeam, server: Folder, monkeypatch: pytest.MonkeyPatch, *, is_whole: bool
) -> None:
    """A million states take 21 s; if every source was read whole, nothing of them is missing."""
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


def test_one_command_leaves_no_replaced_generation(team: SteeredTeam) -> None:
    """It does not wait for searches; another process that has the collection open keeps it."""
    before = team.active
    team.rebuild()
    team.work()
    with team.store.open(before):
        team.coordinator.retire()
        assert before in team.store.collections()
    team.coordinator.retire()
    assert team.store.collections() == [team.active]
    assert team.indexed() == ALL


def test_an_empty_index_may_follow_nothing(steer: Steer) -> None:
    """It is refused only where it would replace items."""
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
    """So that not every query process builds its own."""
    team.queue.snapshots = 0
    team.rebuild()
    team.work()
    assert team.queue.snapshots == 1
    assert team.coordination.snapshots.load(team.active)


def test_a_snapshot_is_requested_after_many_changes(team: SteeredTeam) -> None:
    """Once in a while, until the announcements are trimmed."""
    team.queue.snapshots = 0
    team.tick(SNAPSHOT_INTERVAL_S)
    assert team.queue.snapshots == 0
    name, hashes = team.active, team.hashes()
    for _ in range(MIN_DELTAS + 1):
        team.deltas.announce(name, hashes)
    team.wait(SNAPSHOT_INTERVAL_S)
    assert team.queue.snapshots == 1
    assert team.deltas.length(team.active) == 0


def test_a_first_index_is_searched_from_its_first_items_on(steer: Steer, files: Folder) -> None:
    """It says how many are missing until it is complete, also after a restart."""
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
    """It is listed with its size; going back to it costs nothing, and starts its time again."""
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


def test_an_unused_model_is_dropped_as_well(team: SteeredTeam) -> None:
    """What is no index, or not of this team, stays."""
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


def test_the_vectors_of_an_unused_model_are_dropped_as_well(team: SteeredTeam) -> None:
    """A while after its last index; those of another namespace stay."""
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


def test_an_index_of_a_directory_on_the_same_server_is_left_to_it(team: SteeredTeam) -> None:
    """One that runs by itself has aliases of its own, also of what it is filling."""
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


def test_an_index_that_is_being_replaced_is_used(team: SteeredTeam, files: Folder) -> None:
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


def test_an_embedded_store_is_left_to_its_other_directories(team: SteeredTeam) -> None:
    """Their indexes are not unused because this directory does not use them."""
    dropped: list[str] = []
    active = "repertory_0123456789abcdef"
    own = UnusedIndexes(team.store, active, MemoryUnusedSince(), 0.0, dropped.append)
    own.check([], INTERVAL_S, team.now)
    assert (own.listed, dropped) == ([], [])


def test_an_index_that_was_built_before_is_not_opened_as_the_first(team: SteeredTeam) -> None:
    """Another directory with the same configuration has built one, perhaps with another model."""
    active = "repertory_0123456789abcdef"
    configuration = configuration_of(team.active)
    generations = Generations(team.store, team.queue, team.coordination, active)
    generations.adopt(configuration)
    team.store.set_alias(next_alias(active, configuration), team.active)
    generations.poll(team.time)
    assert generations.is_building
    generations.open_first()
    assert generations.active is None


def test_a_build_is_finished_when_it_is_published(team: SteeredTeam) -> None:
    """All of its items are there, but the store fails at the last comparison."""
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
