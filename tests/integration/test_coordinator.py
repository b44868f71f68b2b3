"""The coordinator when jobs, stores and clocks misbehave."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from repertory.coordination.failures import Failure
from repertory.coordination.team import in_process
from repertory.embedding.models import Model
from repertory.embedding.words import WordsEngine
from repertory.errors import StoreError
from repertory.index.cache import SqliteVectorCache
from repertory.index.edge import EdgeStore
from repertory.index.edge_collection import EdgeCollection
from repertory.indexing.attempts import retry
from repertory.indexing.collections import ACTIVE, generation_of, recipe_of
from repertory.indexing.coordinator import LOST_AFTER_S, POLL_INTERVAL_S, Coordinator
from repertory.indexing.generations import GRACE_S
from repertory.indexing.job import QueueName
from repertory.indexing.scan import scan_source
from repertory.sources.configured import Catalogue
from tests.support.builders import Folder, words_writer
from tests.support.lossy_queue import LossyQueue


class Modelled(WordsEngine):
    """An engine whose model is available."""

    model = Model(id="test", slug="test", dimension=1, max_tokens=8)


class CountingStore(EdgeStore):
    """A store that counts how often a collection is opened, and can be unavailable."""

    opened = 0
    is_away = False

    def open(self, name: str) -> EdgeCollection:
        """Open, and count."""
        if self.is_away:
            raise StoreError("The store is away.")
        self.opened += 1
        return super().open(name)


class Team:
    """A coordinator whose clocks, queue and worker a test drives."""

    def __init__(self, root: Path, *folders: Folder) -> None:
        self.time = 1_000.0
        self.now = 1_000.0
        self.folders = folders
        self.store = CountingStore(root)
        self.cache = SqliteVectorCache(root / "vectors.sqlite", 1)
        self.coordination = in_process(root)
        self.deltas = self.coordination.deltas
        self.failures = self.coordination.failures
        self.engine = WordsEngine("a test")
        self.queue = LossyQueue(
            words_writer(self.store, self.cache, self.coordination, lambda: self.engine)
        )
        self.start()

    def start(self) -> None:
        """Start the watch service."""
        self.coordinator = Coordinator(
            store=self.store,
            queue=self.queue,
            coordination=self.coordination,
            active=ACTIVE,
            clock=lambda: self.time,
            now=lambda: self.now,
        )
        self.adopt(*self.folders)

    def adopt(self, *folders: Folder) -> None:
        """Watch these folders."""
        self.folders = folders
        self.coordinator.adopt(Catalogue(folders))
        self.scan()

    def scan(self) -> None:
        """Scan all folders."""
        for folder in self.folders:
            self.coordinator.observe(scan_source(folder))
        self.tick()

    def tick(self, seconds: float = 1.0) -> None:
        """Let some time pass."""
        self.time += seconds
        self.coordinator.tick()

    def work(self) -> None:
        """Do all jobs and their follow-up jobs."""
        for _ in range(3):
            while self.queue.jobs:
                self.queue.deliver(0)
            self.tick()

    def queues(self) -> list[QueueName]:
        """The queues of the waiting jobs."""
        return [name for _, name in self.queue.jobs]

    def indexed(self) -> set[str]:
        """The ids of the active collection."""
        with self.store.open(self.store.alias(ACTIVE) or "") as collection:
            return {state.item for state in collection.states()}


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    """A team that has indexed one skill."""
    made = Team(tmp_path, Folder("team", "a"))
    made.work()
    assert made.indexed() == {"team/a"}
    yield made
    made.cache.close()


def test_a_failure_can_be_retried_after_a_restart(team: Team) -> None:
    """A retried job that is still queued survives a reconcile."""
    (folder,) = team.folders
    folder.write("bad")
    team.scan()
    ((job, _),) = team.queue.jobs
    team.queue.jobs.clear()
    team.failures.add(
        Failure(
            id=job.id,
            collection=job.collection,
            items={item.id: item.metadata_hash() for item in job.items},
            error="It broke.",
            at=0.0,
            attempts=3,
            job=job.plain(),
        )
    )
    team.start()
    team.tick()
    assert not team.queue.jobs  # it is not tried again by itself
    retry(team.failures, team.queue)
    team.tick()
    team.coordinator.reconcile()
    team.tick()
    team.work()
    assert team.indexed() == {"team/a", "team/bad"}
    assert not team.coordinator.status().pending


@pytest.mark.parametrize("is_unreadable", [False, True])
def test_refusing_an_empty_configuration_costs_few_reads(team: Team, is_unreadable: bool) -> None:
    """While a configuration without items is refused, the store is read only now and then."""
    empty = Folder("other")
    empty.is_unreadable = is_unreadable
    team.adopt(empty)
    team.work()
    assert team.indexed() == {"team/a"}
    assert "no items at all" in team.coordinator.status().error
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


def test_a_lost_save_does_not_wait_for_the_end_of_a_build(team: Team) -> None:
    """Queued jobs of a build do not hide that a save was lost."""
    (folder,) = team.folders
    collection = team.store.alias(ACTIVE) or ""
    team.queue.begin(team.coordinator.status().configuration, generation_of(collection) + 1)
    team.tick()
    assert team.queues() == [QueueName.BUILDS]
    folder.write("b")
    team.scan()
    team.queue.jobs = [one for one in team.queue.jobs if one[1] is QueueName.BUILDS]
    team.tick(LOST_AFTER_S + 1)
    assert QueueName.SAVES in team.queues()


def test_an_unavailable_store_resends_no_jobs(team: Team) -> None:
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


def test_a_deleted_item_returns_although_the_clock_was_set_back(team: Team) -> None:
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


def test_a_gap_is_handled_when_the_store_is_back(team: Team) -> None:
    """Deltas that were lost during an outage are not treated as read."""
    (folder,) = team.folders
    folder.write("b")
    team.scan()
    team.queue.jobs.clear()
    team.deltas.drop(team.store.alias(ACTIVE) or "")
    team.store.is_away = True
    team.tick()
    team.store.is_away = False
    team.tick()
    team.work()
    assert team.indexed() == {"team/a", "team/b"}


def test_a_collection_without_a_model_is_dropped_once_there_is_one(team: Team) -> None:
    """It is never active again; collections of other models stay."""
    team.engine = Modelled("a test")
    team.coordinator.reconcile()
    team.tick()
    team.work()
    assert "_test-" in (team.store.alias(ACTIVE) or "")
    team.tick(GRACE_S + 1)
    team.tick(GRACE_S + 1)
    assert team.store.collections() == [team.store.alias(ACTIVE)]


def test_a_release_with_another_recipe_builds_again(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is upgraded while it runs: a new collection, and no recipes mixed in one."""
    (folder,) = team.folders
    before = team.store.alias(ACTIVE) or ""
    for module in ("indexing.collections", "catalogue.item"):
        monkeypatch.setattr(f"repertory.{module}.RECIPE", recipe_of(before) + 1)
    team.start()
    team.tick()
    assert team.coordinator.status().building
    folder.write("b")
    team.scan()
    assert set(team.queues()) == {QueueName.SAVES, QueueName.BUILDS}
    team.work()
    active = team.store.alias(ACTIVE) or ""
    assert recipe_of(active) == recipe_of(before) + 1
    assert team.indexed() == {"team/a", "team/b"}
    assert team.coordinator.status().building is None
    with team.store.open(before) as old:
        assert [state.item for state in old.states()] == ["team/a"]


def test_unreadable_jobs_leave_the_list_when_their_collection_is_whole(team: Team) -> None:
    """Their items were sent again meanwhile; a failed request stays until one succeeds."""
    (folder,) = team.folders
    unreadable = Failure(
        id="unreadable",
        collection=team.store.alias(ACTIVE) or "",
        items={},
        error="The job is of version 0.",
        at=0.0,
        attempts=1,
        job={},
    )
    request = msgspec.structs.replace(unreadable, id="request", is_request=True)
    stranger = msgspec.structs.replace(unreadable, id="stranger", collection="")
    for failure in (unreadable, request, stranger):
        team.failures.add(failure)
    folder.write("b")
    team.scan()
    team.tick()
    assert {failure.id for failure in team.failures.list()} == {"unreadable", "request"}
    team.work()
    assert [failure.id for failure in team.failures.list()] == ["request"]


def test_failures_are_dropped_with_their_collection(team: Team) -> None:
    """A collection that is no longer written to has no failures."""
    (folder,) = team.folders
    item = folder.items["a"]
    failure = Failure(
        id="1",
        collection="repertory_0123456789abcdef_keywords-r1_g1",
        items={item.id: item.metadata_hash()},
        error="It broke.",
        at=0.0,
        attempts=3,
        job={},
    )
    team.failures.add(failure)
    folder.write("b")
    team.scan()
    team.tick()
    assert team.failures.list() == []


def test_a_source_without_files_is_not_waited_for(team: Team) -> None:
    """A new configuration is searched before its server answers, with what was indexed of it."""
    slow = Folder("slow", "x")
    team.adopt(*team.folders, slow)
    team.work()
    assert team.indexed() == {"team/a", "slow/x"}

    files, more = team.folders[0], Folder("more", "y")
    team.folders = ()
    team.start()
    team.coordinator.adopt(Catalogue((files, slow, more)))
    for folder in (files, more):
        team.coordinator.observe(scan_source(folder))
    team.tick()
    team.work()
    starting = [one.name for one in team.coordinator.status().sources if one.is_starting]
    assert team.indexed() == {"team/a", "slow/x", "more/y"}
    assert starting == ["slow"]

    team.coordinator.observe(scan_source(slow))
    team.tick()
    assert not any(one.is_starting for one in team.coordinator.status().sources)


def test_an_index_of_servers_alone_waits_for_one_of_them(tmp_path: Path) -> None:
    """An empty index would answer that nothing was found."""
    made = Team(tmp_path)
    made.work()
    before, slow = made.store.alias(ACTIVE), Folder("slow", "x")
    made.coordinator.adopt(Catalogue((slow,)))
    made.tick()
    made.work()
    assert made.store.alias(ACTIVE) == before

    made.coordinator.observe(scan_source(slow))
    made.tick()
    made.work()
    assert made.indexed() == {"slow/x"}
    made.cache.close()


def test_a_build_is_published_when_it_can_be_searched_fast(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then the previous one is searched, saves go on, and the store is asked in each poll."""
    asked: list[str] = []
    is_built = False

    def is_ready(collection: EdgeCollection) -> bool:
        asked.append(collection.name)
        return is_built

    monkeypatch.setattr(EdgeCollection, "is_ready", is_ready)
    (folder,) = team.folders
    before = team.store.alias(ACTIVE)
    other = Folder("other", "b")
    team.adopt(folder, other)
    team.work()
    assert team.store.alias(ACTIVE) == before
    asked.clear()
    for _ in range(10):
        team.tick(POLL_INTERVAL_S / 5)
    assert len(asked) == 2
    other.write("c")
    team.scan()
    team.work()
    assert team.store.alias(ACTIVE) == before
    is_built = True
    team.tick()
    assert team.store.alias(ACTIVE) == asked[-1] != before
    assert team.indexed() == {"team/a", "other/b", "other/c"}


def test_a_first_index_is_published_before_it_can_be_searched_fast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It replaces nothing."""
    monkeypatch.setattr(EdgeCollection, "is_ready", lambda _: False)
    team = Team(tmp_path, Folder("team", "a"))
    team.work()
    assert team.indexed() == {"team/a"}
    team.cache.close()
