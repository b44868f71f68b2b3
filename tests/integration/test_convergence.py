"""The law of the team server: whatever happens to jobs, the index comes to equal the sources."""

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
        """Make all that a process holds in memory anew."""
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
    def something_is_there(self) -> None:
        """A folder is never empty: that is a case of its own."""
        self.folder.write("always", "Here", "")
        self.look()

    @rule(name=st.sampled_from(NAMES), words=st.sampled_from("abc"), body=st.sampled_from(BODIES))
    def save(self, name: str, words: str, body: str) -> None:
        """Create or change an item, maybe back to what it was."""
        self.folder.write(name, words, body)
        self.look()

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        """Delete an item, if it is there."""
        self.folder.delete(name)
        self.look()

    @rule(broken=st.booleans())
    def break_or_mend(self, broken: bool) -> None:
        """The folder goes away and comes back."""
        self.folder.is_unreadable = broken
        self.look()

    @rule()
    def look(self) -> None:
        """Look at the folder."""
        self.coordinator.observe(scan_source(self.folder))
        self.tick()

    @rule()
    def tick(self) -> None:
        """A second passes."""
        self.time += 1.0
        self.coordinator.tick()

    @precondition(lambda self: self.queue.jobs)
    @rule(place=st.integers(0, 50), keep=st.booleans())
    def deliver(self, place: int, keep: bool) -> None:
        """A job is done, out of order, and maybe once more later."""
        self.queue.deliver(place, keep=keep)

    @precondition(lambda self: self.queue.jobs)
    @rule(place=st.integers(0, 50))
    def lose(self, place: int) -> None:
        """A job is lost."""
        self.queue.jobs.pop(place % len(self.queue.jobs))

    @rule()
    def flush(self) -> None:
        """All that Redis holds is lost, and a worker still has one of the jobs in hand."""
        in_hand = self.queue.jobs[-1:]
        self.day += RETENTION_S
        for collection in self.store.collections():
            self.coordination.deltas.drop(collection)
        self.queue.jobs.clear()
        self.queue.jobs += in_hand

    @rule()
    def restart(self) -> None:
        """The watch service is killed and started again; what waits goes on waiting."""
        waiting = self.queue.jobs
        self.begin_again()
        self.queue.jobs += waiting
        self.look()

    @rule()
    def rebuild(self) -> None:
        """Somebody asks for a new generation."""
        target = max(self.store.collections(), default="_g0")
        self.queue.begin(
            self.coordinator.status().configuration, int(target.rpartition("_g")[2]) + 1
        )

    def teardown(self) -> None:
        """When the dust has settled, index, sections and keywords equal the folder."""
        self.folder.is_unreadable = False
        self.look()
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
