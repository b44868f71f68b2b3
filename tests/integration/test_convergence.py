"""The law of the team server: whatever happens to jobs, the index equals the sources in the end."""

from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from repertory.coordination.claims import MemoryClaims
from repertory.coordination.tombstones import RETENTION_S, MemoryTombstones
from repertory.index.cache import SqliteVectorCache
from repertory.index.edge import EdgeStore
from repertory.indexing.collections import ACTIVE
from repertory.indexing.coordinator import LOST_AFTER_S, Coordinator
from repertory.indexing.keyword_feed import KeywordFeed
from repertory.indexing.scan import scan_source
from repertory.sources.configured import Catalogue
from tests.support.builders import Folder, coordination, words_writer
from tests.support.lossy_queue import LossyQueue

NAMES = [f"skill-{number}" for number in range(6)]
LONG = "".join(f"## Part {n}\n" + f"Plain words of part {n} about nothing. " * 30 for n in range(4))
BODIES = ["", "Short.", LONG, LONG.replace("Part 3", "Last part")]


class Server(RuleBasedStateMachine):
    """A coordinator, a writer and a queue that loses, repeats and reorders."""

    def __init__(self) -> None:
        super().__init__()
        self.home = TemporaryDirectory(prefix="repertory-law-")
        root = Path(self.home.name)
        self.time = 1_000.0
        self.store = EdgeStore(root)
        self.cache = SqliteVectorCache(root / "vectors.sqlite", 1)
        self.folder = Folder()
        self.day = 0.0
        self.coordination = coordination(root, tombstones=MemoryTombstones(lambda: self.day))
        self.begin_again()

    def begin_again(self) -> None:
        """Recreate everything that a process holds in memory."""
        self.coordination = msgspec.structs.replace(self.coordination, claims=MemoryClaims())
        self.writer = words_writer(self.store, self.cache, self.coordination)
        self.queue = LossyQueue(self.writer)
        self.coordinator = Coordinator(
            store=self.store,
            queue=self.queue,
            coordination=self.coordination,
            active=ACTIVE,
            clock=lambda: self.time,
            now=lambda: 1_000.0,  # a clock that stands still
        )
        self.coordinator.adopt(Catalogue((self.folder,)))

    @initialize()
    def one_item_exists(self) -> None:
        """Start with an item, since an empty folder is a case of its own."""
        self.folder.write("always", "Here", "")
        self.scan()

    @rule(name=st.sampled_from(NAMES), words=st.sampled_from("abc"), body=st.sampled_from(BODIES))
    def save(self, name: str, words: str, body: str) -> None:
        """Create or change an item, perhaps back to an earlier text."""
        self.folder.write(name, words, body)
        self.scan()

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        """Delete an item, if it exists."""
        self.folder.delete(name)
        self.scan()

    @rule(broken=st.booleans())
    def break_or_mend(self, broken: bool) -> None:
        """Make the folder unreadable, or readable again."""
        self.folder.is_unreadable = broken
        self.scan()

    @rule()
    def scan(self) -> None:
        """Scan the folder."""
        self.coordinator.observe(scan_source(self.folder))
        self.tick()

    @rule()
    def tick(self) -> None:
        """Let a second pass."""
        self.time += 1.0
        self.coordinator.tick()

    @precondition(lambda self: self.queue.jobs)
    @rule(place=st.integers(0, 50), keep=st.booleans())
    def deliver(self, place: int, keep: bool) -> None:
        """Do a job out of order, perhaps to be done again later."""
        self.queue.deliver(place, keep=keep)

    @precondition(lambda self: self.queue.jobs)
    @rule(place=st.integers(0, 50))
    def lose(self, place: int) -> None:
        """Lose a job."""
        self.queue.jobs.pop(place % len(self.queue.jobs))

    @rule()
    def flush(self) -> None:
        """Lose everything in Redis while a worker still holds a job."""
        in_hand = self.queue.jobs[-1:]
        self.day += RETENTION_S
        for collection in self.store.collections():
            self.coordination.deltas.drop(collection)
        self.queue.jobs.clear()
        self.queue.jobs += in_hand

    @rule()
    def restart(self) -> None:
        """Kill and restart the watch service; queued jobs stay queued."""
        waiting = self.queue.jobs
        self.begin_again()
        self.queue.jobs += waiting
        self.scan()

    @rule()
    def rebuild(self) -> None:
        """Request a new generation."""
        target = max(self.store.collections(), default="_g0")
        self.queue.begin(
            self.coordinator.status().configuration, int(target.rpartition("_g")[2]) + 1
        )

    def teardown(self) -> None:
        """In the end, index, sections and keywords equal the folder."""
        self.folder.is_unreadable = False
        self.scan()
        for _ in range(3):
            while self.queue.jobs:
                self.queue.deliver(0)
            self.time += LOST_AFTER_S + 1
            self.coordinator.reconcile()
            self.tick()
        while self.queue.jobs or self.coordinator.is_busy:
            while self.queue.jobs:
                self.queue.deliver(0)
            self.tick()
        self.tick()
        self.tick()
        name = self.store.alias(ACTIVE)
        assert name is not None
        with self.store.open(name) as collection:
            found = {state.item: state.metadata_hash for state in collection.states()}
            expected = {item.id: item.metadata_hash() for item in self.folder.items.values()}
            assert found == expected
            assert collection.count() == sum(len(i.views()) for i in self.folder.items.values())
            feed = KeywordFeed(collection, self.coordination)
            feed.open()
            feed.advance()
            assert {entry.id: entry.hash for entry in feed.index.entries} == expected
        assert not self.coordinator.status().pending
        self.cache.close()
        self.home.cleanup()


TestConvergence = Server.TestCase
TestConvergence.settings = hypothesis_settings(
    max_examples=12, stateful_step_count=25, deadline=None
)
