"""A coordinator whose clocks, queue and worker a test drives."""

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
from repertory.stats import WatchStatus
from repertory.values import NAMESPACE
from tests.support.builders import Folder, coordination, words_writer
from tests.support.lossy_queue import LossyQueue

FEW = 4  # failures that the list keeps


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
        """Open, and count."""
        if self.is_away:
            raise StoreError("The store is away.")
        self.opened += 1
        return super().open(name)


class CountingFailures(MemoryFailures):
    """Failures of which few are listed, and that count how often they are read whole."""

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
    """A queue that refuses jobs once it has taken some, and counts its snapshots."""

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
    """A catalogue of folders, a coordinator, and jobs that wait until a test has them done."""

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
        """Close what is open; the team is not used afterwards."""
        self.cache.close()

    def start(self) -> None:
        """Start the watch service, and scan all folders."""
        self.start_unread()
        self.scan()

    def start_unread(self, last: WatchStatus | None = None) -> None:
        """Start the watch service after a last report; nothing is scanned yet."""
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
        """Watch these folders."""
        self.folders = folders
        self.coordinator.adopt(Catalogue(folders))
        self.scan()

    def scan(self, *folders: Folder) -> None:
        """Scan some folders, or all."""
        for folder in folders or self.folders:
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

    def deliver(self, item: str) -> None:
        """Do the first waiting job that writes or removes an item."""
        self.queue.deliver(self._places(item)[0])

    def lose(self, item: str) -> None:
        """Lose all waiting jobs that write or remove an item."""
        for place in reversed(self._places(item)):
            del self.queue.jobs[place]

    def fail(self, item: str) -> None:
        """Have the first waiting job of an item fail for good."""
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
        """Give the workers another model, and have everything done that follows."""
        self.engine = engine
        self.queue.writer = words_writer(self.store, self.cache, self.coordination, lambda: engine)
        self.coordinator.reconcile()
        self.tick()
        self.work()

    def rebuild(self) -> None:
        """Request a new generation, as a person does."""
        generation = generation_of(self.active) + 1
        self.queue.begin(self.coordinator.status().configuration, generation)
        self.tick()

    @property
    def active(self) -> str:
        """The active collection; empty without one."""
        return self.store.alias(NAMESPACE) or ""

    def indexed(self) -> set[str]:
        """The ids of the active collection."""
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
        """Let seconds pass, one by one."""
        for _ in range(round(seconds)):
            each()
            self.tick()


Steer = Callable[..., SteeredTeam]  # makes a team of some folders
