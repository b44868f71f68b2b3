"""The coordinator's status: the state of each source, problems, and pending changes."""

import msgspec
import pytest

from repertory.errors import StoreError
from repertory.indexing import coordinator, ledger
from repertory.indexing.collection_names import configuration_of
from repertory.indexing.first_problems import MAX_PROBLEMS
from repertory.indexing.scan import scan_source
from repertory.live_search.known_sources import KnownSources
from repertory.notices import LATE
from repertory.sources.configured import Catalogue
from repertory.sources.source import error, warning
from repertory.watch_status import LATE_S, SourceState
from tests.support.builders import Folder
from tests.support.steered_team import Steer, SteeredTeam


@pytest.fixture
def files() -> Folder:
    """A source with one item."""
    return Folder("files", "f")


@pytest.fixture
def server() -> Folder:
    """A source with two items."""
    return Folder("server", "x", "y")


@pytest.fixture
def team(steer: Steer, files: Folder, server: Folder) -> SteeredTeam:
    """A team that has indexed both sources."""
    made = steer(files, server)
    made.work()
    return made


def state_of(team: SteeredTeam, source: Folder) -> SourceState:
    """The reported state of a source."""
    (state,) = [one for one in team.coordinator.status().sources if one.name == source.name]
    return state


def test_each_source_has_a_state(team: SteeredTeam, files: Folder, server: Folder) -> None:
    """The state has the type, the place, the number of items, and the number of stale ones."""
    first = state_of(team, server)
    assert (first.type, first.location, first.items) == ("skills", "nowhere", 2)
    assert (first.stale, first.error, first.is_starting, first.awaits_trust) == (
        0,
        "",
        False,
        False,
    )
    assert first.seen > 0
    server.is_unreadable = True
    team.scan()
    away = state_of(team, server)
    assert (away.items, away.stale, away.error) == (2, 2, "The folder is unreadable.")
    assert away.seen == first.seen
    assert state_of(team, files).error == ""


def test_a_source_that_was_not_scanned_is_starting(
    team: SteeredTeam, files: Folder, server: Folder
) -> None:
    """Its indexed items are counted as soon as they are known, and are not stale."""
    team.start_unread()
    state = state_of(team, server)
    assert (state.is_starting, state.items, state.seen) == (True, 0, 0.0)
    team.scan(files)
    state = state_of(team, server)
    assert (state.is_starting, state.items, state.stale, state.error) == (True, 2, 0, "")
    assert not state_of(team, files).is_starting


def is_late(team: SteeredTeam) -> bool:
    """Whether searches show the notice that changes are not searchable yet."""
    known = KnownSources().after(team.coordinator.status(), configuration_of(team.active))
    return LATE in known.every_notice(1)


def test_searches_say_that_a_changed_configuration_is_not_searchable_yet(
    team: SteeredTeam, files: Folder, server: Folder
) -> None:
    """Saves wait for its index too. A rebuild of the same configuration delays no saves."""
    team.rebuild()
    team.wait(2 * LATE_S)
    assert team.coordinator.is_building
    assert not is_late(team)
    team.work()
    team.adopt(files, server, Folder("more", "m"))
    team.wait(LATE_S - 4)
    team.adopt(*team.folders)  # as after an edit of a policy
    assert not is_late(team)
    files.write("f", "Other words")
    team.scan()
    team.wait(4)
    assert is_late(team)
    team.work()
    assert "more/m" in team.indexed()
    assert not is_late(team)


def test_the_visibility_of_the_searched_sources_is_reported(
    team: SteeredTeam, files: Folder, server: Folder
) -> None:
    """While another configuration is built, a new watch reads it from the last report."""
    files.visible_to = ("few",)
    team.tick()
    assert team.coordinator.status().former == {}
    files, before = Folder("files", "g"), {"files": ("few",), "server": ()}
    team.adopt(files, server, Folder("more", "m"))
    last = team.coordinator.status()
    assert (last.former, last.searched) == (before, before)
    team.start_unread(last)
    team.tick()
    assert team.coordinator.status().searched == before
    team.scan()
    team.work()
    assert "more/m" in team.indexed()
    assert team.coordinator.status().former == {}
    assert team.coordinator.status().searched == {"files": (), "server": (), "more": ()}


def test_searches_say_that_a_large_change_is_not_searchable_yet(
    team: SteeredTeam, files: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The notice stays until the last item is stored, although each batch is fast."""
    monkeypatch.setattr(ledger, "MAX_SAVED", 2)
    monkeypatch.setattr(coordinator, "MAX_PENDING", 1)
    for number in range(2 * round(LATE_S)):
        files.write(f"f{number}")

    def do() -> None:
        if team.queue.jobs:
            team.queue.deliver(0)

    team.scan()
    team.wait(LATE_S - 2, do)
    assert not is_late(team)
    team.wait(4, do)
    assert is_late(team)
    team.wait(4 * LATE_S, do)
    assert not team.coordinator.is_busy
    assert not is_late(team)


def test_searches_say_that_the_watch_cannot_send_saves(
    team: SteeredTeam, files: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store may refuse the watch's API key while searches use another one."""

    def refuse(_: object) -> dict[str, str]:
        raise StoreError("The Qdrant server refused us: check the API key.")

    with monkeypatch.context() as patch:
        patch.setattr(team.store, "aliases", refuse)
        files.write("f", "Other words")
        team.scan()
        team.wait(LATE_S - 3)
        assert not is_late(team)
        team.wait(5)
        assert is_late(team)
    team.work()
    assert not is_late(team)


def test_a_first_index_is_not_late(steer: Steer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches say instead how many items it lacks."""
    monkeypatch.setattr(ledger, "MAX_SAVED", 1)
    monkeypatch.setattr(coordinator, "MAX_PENDING", 1)
    made = steer(Folder("files", *"abcd"))
    made.tick()
    made.queue.deliver(0)
    made.wait(2 * LATE_S)
    assert made.indexed() == {"files/a"}
    assert made.coordinator.is_building
    assert not made.coordinator.status().is_late


@pytest.mark.parametrize(("fault", "expected"), [("", True), ("It is invalid.", False)])
def test_a_source_awaits_trust_unless_it_is_invalid(
    team: SteeredTeam, server: Folder, fault: str, expected: bool
) -> None:
    """Trust would not help an invalid source."""
    server.is_trusted = False
    server.fault = fault
    assert state_of(team, server).awaits_trust is expected


def test_an_emptied_source_is_stale(team: SteeredTeam, server: Folder) -> None:
    """Its items are kept, and its state has an error."""
    server.items.clear()
    team.scan()
    state = state_of(team, server)
    assert (state.items, state.stale) == (2, 2)
    assert "suddenly empty" in state.error


def test_a_source_whose_items_another_source_offers_is_not_empty(
    team: SteeredTeam, files: Folder, server: Folder
) -> None:
    """Items that neither source offers any more are removed."""
    files.items["x"] = msgspec.structs.replace(server.items["x"], source="files")
    server.delete("y")
    team.scan()
    team.work()
    state = state_of(team, server)
    assert (state.items, state.stale, state.error) == (0, 0, "")
    assert team.indexed() == {"files/f", "server/x"}


def test_the_items_of_the_searched_index_are_counted(team: SteeredTeam, server: Folder) -> None:
    """The build that runs does not have them yet."""
    server.is_unreadable = True
    team.scan()
    team.rebuild()
    assert team.coordinator.status().building
    assert state_of(team, server).items == 2


def test_problems_are_counted_and_the_first_are_listed(
    team: SteeredTeam, files: Folder, server: Folder
) -> None:
    """Errors of failing sources come first, then errors and warnings of the configuration."""
    problems = [warning("repertory.toml", f"Warning {number}.") for number in range(MAX_PROBLEMS)]
    team.coordinator.adopt(Catalogue((files, server), (*problems, error("a", "An error."))))
    server.is_unreadable = True
    team.scan()
    status = team.coordinator.status()
    first = msgspec.structs.replace(
        error("server", "The folder is unreadable."), sources=("server",)
    )
    assert status.problems == [first, error("a", "An error."), *problems][:MAX_PROBLEMS]
    assert (status.errors, status.warnings) == (2, MAX_PROBLEMS)


def test_the_configuration_and_its_collection_are_named(steer: Steer) -> None:
    """They are empty without sources; the collection is unknown until the first tick."""
    folder = Folder("team", "a")
    team = steer()
    assert team.coordinator.status().configuration == ""
    team.adopt(folder)
    team.work()
    status = team.coordinator.status()
    assert (status.configuration, status.collection) == (Catalogue((folder,)).hash, team.active)
    team.start_unread()
    assert team.coordinator.status().collection == ""


def test_unwritten_items_are_named(team: SteeredTeam, files: Folder) -> None:
    """Each has its path, which is empty for a removed item."""
    assert team.coordinator.unwritten == {}
    files.write("g")
    files.items["g"] = msgspec.structs.replace(files.items["g"], path="skills/g/SKILL.md")
    files.delete("f")
    team.scan()
    assert team.coordinator.unwritten == {"files/g": "skills/g/SKILL.md", "files/f": ""}
    team.work()
    assert team.coordinator.unwritten == {}
    team.start_unread()
    assert team.coordinator.unwritten == {}


def test_the_coordinator_is_busy_until_everything_is_written(
    team: SteeredTeam, files: Folder
) -> None:
    """A scan without differences does not make it busy, and a reconcile is no error."""
    assert not team.coordinator.is_busy
    team.coordinator.observe(scan_source(files))
    assert not team.coordinator.is_busy
    files.write("g")
    team.coordinator.observe(scan_source(files))
    assert team.coordinator.is_busy
    team.tick()
    assert team.coordinator.is_busy
    assert not team.coordinator.is_finished
    team.work()
    assert not team.coordinator.is_busy
    team.coordinator.reconcile()
    assert team.coordinator.error == ""
    team.tick()
    assert team.coordinator.is_finished
