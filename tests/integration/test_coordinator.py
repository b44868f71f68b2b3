"""What the coordinator does when jobs, stores and clocks misbehave in ways that need a story."""

from collections.abc import Iterator
from pathlib import Path

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
from repertory.indexing.collections import ACTIVE, generation_of
from repertory.indexing.coordinator import LOST_AFTER_S, Coordinator
from repertory.indexing.generations import GRACE_S
from repertory.indexing.job import QueueName
from repertory.indexing.scan import scan_source
from repertory.sources.configured import Catalogue
from tests.support.builders import Folder, words_writer
from tests.support.lossy_queue import LossyQueue


class Modelled(WordsEngine):
    """An engine of a model that is to be had."""

    model = Model(id="test", slug="test", dimension=1, max_tokens=8)


class CountingStore(EdgeStore):
    """A store that counts how often a collection is opened, and may be away."""

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
        """Have these folders watched."""
        self.folders = folders
        self.coordinator.adopt(Catalogue(folders))
        self.look()

    def look(self) -> None:
        """Look at all folders."""
        for folder in self.folders:
            self.coordinator.observe(scan_source(folder))
        self.tick()

    def tick(self, seconds: float = 1.0) -> None:
        """Some time passes."""
        self.time += seconds
        self.coordinator.tick()

    def work(self) -> None:
        """Do all jobs, and what follows from them."""
        for _ in range(3):
            while self.queue.jobs:
                self.queue.deliver(0)
            self.tick()

    def queues(self) -> list[QueueName]:
        """The queues of the jobs that wait."""
        return [name for _, name in self.queue.jobs]

    def indexed(self) -> set[str]:
        """The ids of what is searched."""
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


def test_a_failure_may_be_retried_after_the_watch_service_was_started_again(team: Team) -> None:
    """What failed before the start, is tried again and still on its way, outlives a reconcile."""
    (folder,) = team.folders
    folder.write("bad")
    team.look()
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
def test_an_empty_configuration_is_refused_without_haste(team: Team, is_unreadable: bool) -> None:
    """While a configuration that offers nothing is refused, the store is not read all the time."""
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
    team.look()
    team.work()
    assert team.indexed() == {"other/b"}
    assert team.coordinator.status().error == ""


def test_a_lost_save_does_not_wait_for_the_end_of_a_build(team: Team) -> None:
    """Jobs of a build that wait do not hide that a save was lost."""
    (folder,) = team.folders
    collection = team.store.alias(ACTIVE) or ""
    team.queue.begin(team.coordinator.status().configuration, generation_of(collection) + 1)
    team.tick()
    assert team.queues() == [QueueName.BUILDS]
    folder.write("b")
    team.look()
    team.queue.jobs = [one for one in team.queue.jobs if one[1] is QueueName.BUILDS]
    team.tick(LOST_AFTER_S + 1)
    assert QueueName.SAVES in team.queues()


def test_jobs_are_not_sent_again_because_the_store_was_away(team: Team) -> None:
    """An outage of Qdrant loses no job, so the queue does not grow with every one."""
    (folder,) = team.folders
    folder.write("b")
    team.look()
    for is_away in (True, False) * 3:
        team.store.is_away = is_away
        team.coordinator.reconcile()
        team.tick()
    assert len(team.queue.jobs) == 1
    team.work()
    assert team.indexed() == {"team/a", "team/b"}


def test_an_item_comes_back_though_the_clock_went_back(team: Team) -> None:
    """What was deleted, and made again after a start at an earlier hour, is written at once."""
    (folder,) = team.folders
    folder.write("b")
    team.look()
    team.work()
    team.now += 3_600
    folder.delete("b")
    team.look()
    team.work()
    assert team.indexed() == {"team/a"}
    team.now -= 3_600
    team.start()
    folder.write("b")
    team.look()
    team.work()
    assert team.indexed() == {"team/a", "team/b"}


def test_a_gap_is_met_again_when_the_store_is_back(team: Team) -> None:
    """Deltas that were lost while the store was away are not taken for read."""
    (folder,) = team.folders
    folder.write("b")
    team.look()
    team.queue.jobs.clear()
    team.deltas.drop(team.store.alias(ACTIVE) or "")
    team.store.is_away = True
    team.tick()
    team.store.is_away = False
    team.tick()
    team.work()
    assert team.indexed() == {"team/a", "team/b"}


def test_what_was_stored_without_a_model_goes_when_there_is_one(team: Team) -> None:
    """Nobody goes back to it; what another model made stays."""
    team.engine = Modelled("a test")
    team.coordinator.reconcile()
    team.tick()
    team.work()
    assert "_test-" in (team.store.alias(ACTIVE) or "")
    team.tick(GRACE_S + 1)
    team.tick(GRACE_S + 1)
    assert team.store.collections() == [team.store.alias(ACTIVE)]


def test_failures_go_with_what_they_were_to_be_written_to(team: Team) -> None:
    """They are no news of a collection that is not filled any more."""
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
    team.look()
    team.tick()
    assert team.failures.list() == []
