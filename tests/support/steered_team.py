"""A coordinator whose clocks, queue and worker the test controls."""

from collections.abc import Callable
from pathlib import Path

from typing_extensions import override

from repertory.coordination.failures import FailedHashes, Failure, MemoryFailures
from repertory.embedding.models import Model
from repertory.embedding.words import WordsEngine
from repertory.errors import StoreError
from repertory.index.cache import SqliteVectorCache
from repertory.index.edge import EdgeStore
from repertory.index.edge_collection import EdgeCollection
from repertory.indexing.collection_names import generation_of
from repertory.indexing.coordinator import Coordinator
from repertory.indexing.job import Job, QueueName
from repertory.indexing.scan import scan_source
from repertory.sources.configured import Catalogue
from repertory.values import NAMESPACE
from repertory.watch_status import WatchStatus
from tests.support.builders import Folder, coordination, words_writer
from tests.support.lossy_queue import LossyQueue

FEW = 4  # the maximum number of listed failures


class Modelled(WordsEngine):
    """An engine whose model is available."""

    model = Model(id="test", slug="test", dimension=1, max_tokens=8)


class Another(Modelled):
    """An engine of another model."""

    model = Model(id="another", slug="another", dimension=1, max_tokens=8)


class CountingStore(EdgeStore):
    """A store that counts how often a collection is opened, and can be unavailable."""

    opened = 0
    is_away = False

    def open(self, name: str) -> EdgeCollection:
        """Open a collection and count the call."""
        if self.is_away:
            raise StoreError("The store is away.")
        self.opened += 1
        return super().open(name)


class CountingFailures(MemoryFailures):
    """Failures with a short list, which counts how often all of them are read."""

    def __init__(self) -> None:
        super().__init__(limit=FEW)
        self.reads = 0

    @override
    def failed_items(self) -> FailedHashes:
        self.reads += 1
        return super().failed_items()

    @override
    def list(self) -> list[Failure]:
        self.reads += 1
        return super().list()


class FullQueue(LossyQueue):
    """A queue that refuses jobs once ``room`` is used up, and counts snapshots."""

    room = 1_000_000
    snapshots = 0

    @override
    def submit(self, job: Job, queue_name: QueueName, delay: float = 0.0) -> None:
        if not self.room:
            raise StoreError("The queue is full.")
        self.room -= 1
        super().submit(job, queue_name, delay)

    @override
    def keep_keywords(self, collection: str) -> None:
        self.snapshots += 1
        super().keep_keywords(collection)


class SteeredTeam:
    """A catalogue of folders, a coordinator, and jobs that wait until the test runs them."""

    def __init__(self, root: Path, *folders: Folder) -> None:
        self.time = 1_000.0
        self.now = 1_000.0
        self.folders = folders
        self.store = CountingStore(root)
        self.cache = SqliteVectorCache(root / "vectors.sqlite", 1)
        self.failures = CountingFailures()
        self.coordination = coordination(root, failures=self.failures)
        self.deltas = self.coordination.deltas
        self.engine = WordsEngine("a test")
        self.queue = FullQueue(
            words_writer(self.store, self.cache, self.coordination, lambda: self.engine)
        )
        self.start()

    def close(self) -> None:
        """Close the cache; the team cannot be used afterwards."""
        self.cache.close()

    def start(self) -> None:
        """Start the watch service, and scan all folders."""
        self.start_unread()
        self.scan()

    def start_unread(self, last: WatchStatus | None = None) -> None:
        """Start the coordinator from the last report, if any, without scanning."""
        self.coordinator = Coordinator(
            store=self.store,
            queue=self.queue,
            coordination=self.coordination,
            active=NAMESPACE,
            clock=lambda: self.time,
            now=lambda: self.now,
            last=last,
        )
        self.coordinator.adopt(Catalogue(self.folders))

    def adopt(self, *folders: Folder) -> None:
        """Replace the watched folders, and scan them."""
        self.folders = folders
        self.coordinator.adopt(Catalogue(folders))
        self.scan()

    def scan(self, *folders: Folder) -> None:
        """Scan some folders, by default all."""
        for folder in folders or self.folders:
            self.coordinator.observe(scan_source(folder))
        self.tick()

    def tick(self, seconds: float = 1.0) -> None:
        """Let some time pass."""
        self.time += seconds
        self.coordinator.tick()

    def work(self) -> None:
        """Run all jobs and their follow-up jobs."""
        for _ in range(3):
            while self.queue.jobs:
                self.queue.deliver(0)
            self.tick()

    def deliver(self, item: str) -> None:
        """Run the first waiting job that writes or removes an item."""
        self.queue.deliver(self._places(item)[0])

    def lose(self, item: str) -> None:
        """Drop all waiting jobs that write or remove an item."""
        for place in reversed(self._places(item)):
            del self.queue.jobs[place]

    def fail(self, item: str) -> None:
        """Let the first waiting job of an item fail permanently."""
        job, _ = self.queue.jobs.pop(self._places(item)[0])
        self.failures.add(
            Failure(
                id=job.id,
                collection=job.collection,
                items={one.id: one.metadata_hash() for one in job.items}
                | dict.fromkeys(job.removed, ""),
                error="It broke.",
                at=0.0,
                attempts=3,
            )
        )

    def sent(self, item: str) -> int:
        """How many waiting jobs write or remove an item."""
        return len(self._places(item))

    def queues(self) -> list[QueueName]:
        """The queues of the waiting jobs."""
        return [name for _, name in self.queue.jobs]

    def use(self, engine: WordsEngine) -> None:
        """Give the workers another model, and run all jobs that follow from it."""
        self.engine = engine
        self.queue.writer = words_writer(self.store, self.cache, self.coordination, lambda: engine)
        self.coordinator.reconcile()
        self.tick()
        self.work()

    def rebuild(self) -> None:
        """Request a new generation of the collection, as an administrator can."""
        generation = generation_of(self.active) + 1
        self.queue.begin(self.coordinator.status().configuration, generation)
        self.tick()

    @property
    def active(self) -> str:
        """The name of the active collection; empty if missing."""
        return self.store.alias(NAMESPACE) or ""

    def indexed(self) -> set[str]:
        """The ids of the items in the active collection."""
        return set(self.hashes())

    def hashes(self) -> dict[str, str]:
        """The metadata hashes of the active collection, by id."""
        with self.store.open(self.active) as collection:
            return {state.item: state.metadata_hash for state in collection.states()}

    def _places(self, item: str) -> list[int]:
        return [
            place
            for place, (job, _) in enumerate(self.queue.jobs)
            if item in job.removed or any(one.id == item for one in job.items)
        ]

    def wait(self, seconds: float, each: Callable[[], None] = lambda: None) -> None:
        """Let time pass in steps of one second, each after a call of ``each``."""
        for _ in range(round(seconds)):
            each()
            self.tick()


Steer = Callable[..., SteeredTeam]  # creates a team with the given folders
