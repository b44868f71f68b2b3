"""The team server converges: whatever happens to jobs, the index finally equals the sources.

This is asserted while saves continue, since a server in use is never silent. The entries that a
query process serves are compared, too.
"""

import contextlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from typing_extensions import override

from repertory.catalogue.item import item_key, point_parts
from repertory.coordination.claims import MemoryClaims
from repertory.coordination.deltas import MAX_ANNOUNCEMENTS, MemoryDeltas
from repertory.coordination.failures import MemoryFailures
from repertory.coordination.tombstones import RETENTION_S, MemoryTombstones
from repertory.embedding.engine import Vectors
from repertory.embedding.words import WordsEngine
from repertory.errors import ModelError
from repertory.index.cache import SqliteVectorCache
from repertory.index.edge import EdgeStore
from repertory.index.qdrant import QdrantStore
from repertory.index.vectors import VectorStore
from repertory.indexing import (
    coordinator,
    generations,
    job,
    keyword_feed,
    ledger,
    ledgers,
    write,
)
from repertory.indexing.attempts import attempt
from repertory.indexing.coordinator import Coordinator
from repertory.indexing.scan import scan_source
from repertory.live_search import verification
from repertory.live_search.live import LiveSearch
from repertory.live_search.verification import Verifier
from repertory.sources.configured import Catalogue
from repertory.values import NAMESPACE
from tests.support.builders import Folder, coordination, no_model, words_writer
from tests.support.folders import quick_folder
from tests.support.lossy_queue import LossyQueue
from tests.support.mortal import KilledError, Life

NAMES = [f"skill-{number}" for number in range(6)]
LONG = "".join(f"## Part {n}\n" + f"Plain words of part {n} about nothing. " * 30 for n in range(4))
BODIES = ["", "Short.", LONG, LONG.replace("Part 3", "Last part")]
POISON = "poison"
LISTED = 2  # failures that the list keeps
SMALL: dict[ModuleType, dict[str, float]] = {
    coordinator: {"MAX_PENDING": 3},
    generations: {"MIN_DELTAS": 2, "SNAPSHOT_INTERVAL_S": 1.0},
    job: {"MAX_ITEMS": 1, "MAX_REMOVED": 1},
    keyword_feed: {"MAX_COMPARED": 0, "OVERLAP": 2, "PAGE": 2, "STEP": 2},
    ledger: {"MAX_SAVED": 1},
    ledgers: {"SLICE": 3},
    verification: {"OVERLAP": 2, "SLICE": 2},
    write: {"BATCH_SIZE": 1},
}
ROUNDS = 60  # seconds until everything is indexed, although saves continue


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for announcements, because the tests control the clock."""
    for name in ("POLL_INTERVAL_S", "FIRST_POLL_S"):
        monkeypatch.setattr(f"repertory.live_search.live.{name}", 0.001)


def empty_store(folder: Path) -> VectorStore:
    """Qdrant Edge, or the server at REPERTORY_TEST_QDRANT_URL after dropping its collections."""
    url = os.environ.get("REPERTORY_TEST_QDRANT_URL")
    if not url:
        return EdgeStore(folder)
    store = QdrantStore(url)
    for name in store.collections():
        store.drop(name)
    return store


class Picky(WordsEngine):
    """An engine that refuses to embed poisonous texts."""

    refuses = True
    refused = 0

    @override
    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        if self.refuses and any(POISON in text for text in texts):
            self.refused += 1
            raise ModelError("The text is poison.")
        return super().embed_texts(texts)


class Server(RuleBasedStateMachine):
    """Two watch services, a worker, a query process, and a queue that loses and repeats jobs."""

    announcements = MAX_ANNOUNCEMENTS  # the number that is kept

    def __init__(self) -> None:
        super().__init__()
        self.home = quick_folder()
        root = Path(self.home.name)
        self.time = 1_000.0
        self.day = 0.0
        self.watches = 0
        self.clocks: set[float] = set()  # by how much the clocks of watch services were wrong
        self.saves = 0
        self.store = empty_store(root)
        self.cache = SqliteVectorCache(root / "vectors.sqlite", 1)
        self.team, self.extra = Folder("team"), Folder("extra", "one", "two")
        self.folders: tuple[Folder, ...] = (self.team,)
        self.engine = Picky("a test")
        self.life = Life()
        self.coordination = coordination(
            root,
            tombstones=MemoryTombstones(lambda: self.day),
            failures=MemoryFailures(limit=LISTED),
            deltas=MemoryDeltas(self.announcements),
        )
        self.restart_worker()
        self.queue = LossyQueue(self.writer)
        self.watch = self.new_watch(0.0)
        self.former: Coordinator | None = None
        self.reader = ThreadPoolExecutor(1)
        self.live = self.new_live()

    def new_live(self) -> LiveSearch:
        """The search of a new query process."""
        return LiveSearch(
            store=self.store,
            coordination=self.coordination,
            active=NAMESPACE,
            embedding=no_model,
            reader=self.reader,
            is_shared=True,
            clock=lambda: self.time,
        )

    def restart_worker(self) -> None:
        """Recreate what a worker holds in memory; its claims expire."""
        self.coordination = msgspec.structs.replace(self.coordination, claims=MemoryClaims())
        self.life.calls = None
        self.writer = words_writer(
            self.life.store(self.store),
            self.cache,
            self.life.bound(self.coordination),
            lambda: self.engine,
        )

    def new_watch(self, skew: float) -> Coordinator:
        """A new watch service on a machine whose clock is wrong by `skew` seconds."""
        self.watches += 1
        self.clocks.add(skew)
        started = 10_000_000.0 + self.watches + skew
        watch = Coordinator(
            store=self.store,
            queue=self.queue,
            coordination=self.coordination,
            active=NAMESPACE,
            clock=lambda: self.time,
            now=lambda: started,  # this clock stands still
        )
        watch.adopt(Catalogue(self.folders))
        return watch

    @initialize()
    def one_item_exists(self) -> None:
        """Start with one item, since an empty folder is a special case."""
        self.team.write("always", "Here", "")
        self.scan()

    @rule(name=st.sampled_from(NAMES), words=st.sampled_from("abc"), body=st.sampled_from(BODIES))
    def save(self, name: str, words: str, body: str) -> None:
        """Create or change an item, perhaps back to an earlier text."""
        self.team.write(name, words, body)
        self.scan()

    @rule(name=st.sampled_from(NAMES), version=st.sampled_from("12"))
    def save_what_fails(self, name: str, version: str) -> None:
        """Save a text that the model cannot embed."""
        self.team.write(name, f"{POISON} {version}", "")
        self.scan()

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        """Delete an item, if it exists."""
        self.team.delete(name)
        self.scan()

    @rule(broken=st.booleans())
    def break_or_mend(self, broken: bool) -> None:
        """Make the folder unreadable, or readable again."""
        self.team.is_unreadable = broken
        self.scan()

    @rule(both=st.booleans())
    def configure(self, both: bool) -> None:
        """Change the configuration, perhaps back to an earlier one."""
        self.folders = (self.team, self.extra) if both else (self.team,)
        self.watch.adopt(Catalogue(self.folders))
        self.scan()

    @rule()
    def scan(self) -> None:
        """Scan the folders."""
        for folder in self.folders:
            self.watch.observe(scan_source(folder))
        self.tick()

    @rule()
    def tick(self) -> None:
        """Let a second pass."""
        self.time += 1.0
        self.watch.tick()
        self.live.step()

    @precondition(lambda self: self.queue.jobs)
    @rule(place=st.integers(0, 50), keep=st.booleans())
    def deliver(self, place: int, keep: bool) -> None:
        """Do a job out of order, perhaps leaving it in the queue to be repeated."""
        place %= len(self.queue.jobs)
        job, queue_name = self.queue.jobs[place] if keep else self.queue.jobs.pop(place)
        attempt(
            [job],
            queue_name,
            writer=self.writer,
            failures=self.coordination.failures,
            queue=self.queue,
        )

    @precondition(lambda self: self.queue.jobs)
    @rule(place=st.integers(0, 50), keep=st.booleans(), calls=st.integers(0, 12))
    def die(self, place: int, keep: bool, calls: int) -> None:
        """Kill the worker in the middle of a job, perhaps between a write and its announcement."""
        self.life.calls = calls
        with contextlib.suppress(KilledError):
            self.deliver(place=place, keep=keep)
        self.restart_worker()
        self.queue.writer = self.writer

    @precondition(lambda self: self.queue.jobs)
    @rule(place=st.integers(0, 50))
    def lose(self, place: int) -> None:
        """Lose a job."""
        self.queue.jobs.pop(place % len(self.queue.jobs))

    @rule(what=st.sampled_from(["deltas", "tombstones", "snapshots", "failures", "jobs"]))
    def evict(self, what: str) -> None:
        """Let Redis evict data to make room."""
        match what:
            case "tombstones":
                self.day += RETENTION_S
            case "failures":
                self.coordination.failures.clear()
            case "jobs":
                self.queue.jobs.clear()
            case _:
                for collection in self.store.collections():
                    getattr(self.coordination, what).drop(collection)

    @rule()
    def flush(self) -> None:
        """Lose everything in Redis while a worker still holds a job."""
        in_hand = self.queue.jobs[-1:]
        for what in ("deltas", "tombstones", "snapshots", "failures", "jobs"):
            self.evict(what=what)
        self.queue.jobs += in_hand

    @rule(skew=st.sampled_from([0.0, -4_000.0, 4_000.0]))
    def take_over(self, skew: float) -> None:
        """Another watch service takes over, while the former one is only suspended."""
        self.former, self.watch = self.watch, self.new_watch(skew)
        self.scan()

    @precondition(lambda self: self.former)
    @rule(scans=st.booleans())
    def act_as_former(self, scans: bool) -> None:
        """Resume the former watch service for a moment, with its outdated state."""
        assert self.former
        if scans:
            self.former.observe(scan_source(self.team))
        self.former.tick()

    @rule()
    def restart_query_process(self) -> None:
        """Replace the query process."""
        self.live.close()
        self.live = self.new_live()

    @rule()
    def rebuild(self) -> None:
        """Request a new generation."""
        target = max(self.store.collections(), default="_g0")
        self.queue.begin(self.watch.status().configuration, int(target.rpartition("_g")[2]) + 1)

    def teardown(self) -> None:
        """Finally everything embeddable is indexed, and failing items are not retried for ever."""
        try:
            self.team.is_unreadable = False
            self.former = None
            self.keep_saving(lambda: self.differing() <= self.poisoned())
            if len(self.clocks) > 1:  # what was sent with a low revision is sent again later
                self.keep_saving(lambda: False, rounds=20)
            refused = self.engine.refused
            self.keep_saving(lambda: False, rounds=20)
            assert self.engine.refused == refused, "what fails is tried again and again"
            self.engine.refuses = False
            self.evict(what="failures")
            self.keep_saving(lambda: not self.differing())
            assert not self.differing(but="")
            self.all_come_and_go()
            self.restart_query_process()
            self.live.step()
            assert not self.differing(but=""), "a stored keyword index is wrong"
        finally:
            self.live.close()
            self.reader.shutdown()
            self.cache.close()
            self.home.cleanup()

    def all_come_and_go(self) -> None:
        """Save and then remove all items, and store the keyword index after each step."""
        for change in (lambda name: self.team.write(name, "Here", ""), self.team.delete):
            for name in NAMES:
                change(name)
            self.keep_saving(lambda: not self.differing())
            self.queue.keep_keywords(self.watch.active)

    def keep_saving(self, condition: Callable[[], bool], rounds: int = ROUNDS) -> None:
        """Save one item every second, while jobs are done, until a condition is true."""
        for number in range(rounds):
            self.saves += 1
            self.team.write("busy", f"Version {self.saves}", "")
            if number % 20 == 19:
                self.watch.reconcile()
            self.scan()
            self.do_all()
            if condition() and not self.watch.status().pending:
                return
        assert rounds < ROUNDS, f"{self.differing()} of {self.expected().keys()}"

    def do_all(self) -> None:
        """Do every job, and let the watch and the query process read the results."""
        for _ in range(20):
            while self.queue.jobs:
                self.deliver(place=0, keep=False)
            self.watch.tick()
            if not self.queue.jobs:
                break
        self.live.step()

    def expected(self) -> dict[str, str]:
        """The hashes of the folders' items, by id."""
        items = [item for folder in self.folders for item in folder.items.values()]
        return {item.id: item.metadata_hash() for item in items}

    def poisoned(self) -> set[str]:
        """The ids of the items that cannot be embedded."""
        return {item.id for item in self.team.items.values() if POISON in item.description}

    def differing(self, but: str = "team/busy") -> set[str]:
        """The ids, except one, whose stored or served hash differs from the folders."""
        expected = self.expected()
        name = self.store.alias(NAMESPACE)
        if name is None or self.live.verification is None:
            return set(expected)
        with self.store.open(name) as collection:
            stored = {state.item: state.metadata_hash for state in collection.states()}
            points = {point_parts(one.id): one.metadata_hash for one in collection.points()}
        engine = self.live.engine
        served = {entry.id: entry.hash for entry in engine.keywords.all()}
        differing = {
            item
            for item in expected.keys() | stored.keys() | served.keys()
            if not stored.get(item) == served.get(item) == expected.get(item)
        }
        if not differing:
            right = {
                (item_key(item.id), view.section): item.metadata_hash()
                for folder in self.folders
                for item in folder.items.values()
                for view in item.views()
            }
            assert right.keys() <= points.keys()
            # If clocks differ, a killed worker's sections may have a higher revision than the next
            # version of their item, which does not replace them then. Sections of an item that was
            # deleted before it was completely written may remain, too; no search shows them.
            wrong = {key for (key, _), _ in points.items() - right.items()}
            assert wrong.isdisjoint(key for key, _ in right) or len(self.clocks) > 1
        return differing - {but}


class LargeServer(Server):
    """A server with tiny limits, so that a few items already need several steps of everything."""

    announcements = 3

    def __init__(self) -> None:
        self.patch = pytest.MonkeyPatch()
        for module, names in SMALL.items():
            for name, value in names.items():
                self.patch.setattr(module, name, value)
        super().__init__()

    @override
    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.patch.undo()


@pytest.mark.parametrize("calls", range(12))
@pytest.mark.parametrize("removes", [False, True])
def test_a_worker_that_dies_between_two_calls_loses_nothing(calls: int, removes: bool) -> None:
    """Items that it wrote but did not announce are served nevertheless."""
    server = Server()
    server.one_item_exists()
    server.save(name=NAMES[0], words="a", body="")
    for _ in range(3):
        server.tick()
        server.do_all()
    if removes:
        server.delete(name=NAMES[0])
    else:
        server.save(name=NAMES[1], words="b", body="")
    server.die(place=0, keep=False, calls=calls)
    server.teardown()


@pytest.mark.parametrize("reconciles", [False, True])
@pytest.mark.parametrize("removes", [False, True])
def test_the_watch_announces_writes_that_a_dead_worker_did_not(
    removes: bool, reconciles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are served once their job counts as lost, or is found done, without verification."""
    monkeypatch.setattr(Verifier, "step", lambda *_: False)
    server = Server()
    server.one_item_exists()
    server.save(name=NAMES[0], words="a", body="")
    for _ in range(3):
        server.tick()
        server.do_all()
    if removes:
        server.delete(name=NAMES[0])
    else:
        server.save(name=NAMES[1], words="b", body="")
    server.die(place=0, keep=False, calls=10)
    assert server.differing()
    if reconciles:
        server.watch.reconcile()
    for _ in range(20):
        server.tick()
        server.do_all()
    assert not server.differing()
    server.teardown()


def test_sections_of_a_killed_worker_are_replaced_after_another_configuration() -> None:
    """The revisions of a collection continue when its configuration comes back."""
    server = Server()
    server.one_item_exists()
    server.tick()
    server.do_all()
    server.save(name=NAMES[0], words="a", body=LONG)
    server.die(place=0, keep=False, calls=5)  # after the sections
    server.evict(what="jobs")
    server.team.write(NAMES[0], "a", BODIES[-1])
    server.configure(both=True)
    server.tick()
    server.do_all()
    server.configure(both=False)
    for _ in range(3):
        server.tick()
        server.do_all()
    assert not server.differing(but="")
    server.teardown()


TestConvergence = pytest.mark.timeout(900)(Server.TestCase)  # takes minutes with a Qdrant server
TestConvergenceOfMany = pytest.mark.timeout(900)(LargeServer.TestCase)
TestConvergence.settings = TestConvergenceOfMany.settings = hypothesis_settings(
    max_examples=20, stateful_step_count=25
)
