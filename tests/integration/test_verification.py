"""A query process verifies its index: it finds, repairs and reports missed changes."""

import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from typing_extensions import override

from repertory.catalogue.item import Item
from repertory.coordination.deltas import REMOVED, Delta, MemoryDeltas, RedisDeltas
from repertory.coordination.ports import Coordination
from repertory.coordination.redis_server import RedisServer
from repertory.index.cache import SqliteVectorCache
from repertory.index.edge import EdgeStore
from repertory.index.edge_collection import EdgeCollection
from repertory.index.vectors import State
from repertory.indexing import keyword_feed
from repertory.indexing.job import Job
from repertory.live_search import live, verification
from repertory.live_search.live import LiveSearch
from repertory.values import NAMESPACE
from tests.support.builders import coordination, no_model, skill, words_writer
from tests.support.redis_server import RedisProcess

STATES = EdgeCollection.states  # the original, which a test may replace


class _Deltas(MemoryDeltas):
    """Announcements that can be lost."""

    is_lost = False

    @override
    def announce(self, collection: str, hashes: Mapping[str, str]) -> None:
        if not self.is_lost:
            super().announce(collection, hashes)


class Served:
    """A writer and a live search on one store, with a simulated clock."""

    def __init__(self, root: Path, parts: Coordination, reader: ThreadPoolExecutor) -> None:
        self.time = 1_000.0
        self.revision = 0
        self.store = EdgeStore(root)
        self.cache = SqliteVectorCache(root / "vectors.sqlite", 1)
        self.writer = words_writer(self.store, self.cache, parts)
        self.writer.begin("c" * 16)
        (self.name,) = self.store.collections()
        self.store.set_alias(NAMESPACE, self.name)
        self.live = LiveSearch(
            store=self.store,
            coordination=parts,
            active=NAMESPACE,
            embedding=no_model,
            reader=reader,
            is_shared=True,
            clock=lambda: self.time,
        )

    def close(self) -> None:
        """Close the live search and the cache."""
        self.live.close()
        self.cache.close()

    def save(self, *items: Item, removed: Sequence[str] = (), later: int = 1) -> None:
        """Write and remove items with a later revision."""
        self.revision += later
        job = Job(
            id=uuid.uuid4().hex,
            collection=self.name,
            revision=self.revision,
            items=items,
            removed=tuple(f"team/{name}" for name in removed),
        )
        self.writer.write([job])

    def follow(self, seconds: int = 0) -> dict[str, str]:
        """Let the live search follow for some seconds, and return the hashes that it serves."""
        self.live.step()
        for _ in range(seconds):
            self.time += 1.0
            self.live.step()
        return self.served()

    def served(self) -> dict[str, str]:
        """The hash of each item that a search can find."""
        keywords = self.live.engine.keywords
        return {entry.id: entry.hash for entry in keywords.all()}

    def stored(self) -> dict[str, str]:
        """The hash of each item in the collection."""
        with self.store.open(self.name) as collection:
            return {state.item: state.metadata_hash for state in STATES(collection)}

    @property
    def repaired(self) -> int:
        """The number of repaired items that the live search reports."""
        assert self.live.verification is not None
        return self.live.verification.repaired


@pytest.fixture
def deltas() -> _Deltas:
    """Announcements that a test can lose."""
    return _Deltas()


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for announcements, because the clock is simulated."""
    monkeypatch.setattr("repertory.live_search.live.POLL_INTERVAL_S", 0.002)


@pytest.fixture
def served(tmp_path: Path, deltas: _Deltas) -> Iterator[Served]:
    """A writer, and a live search that serves its twelve items."""
    with ThreadPoolExecutor(1) as reader:
        served = Served(tmp_path, coordination(tmp_path, deltas=deltas), reader)
        served.save(*(skill(f"s{number}") for number in range(12)))
        assert served.follow() == served.stored()
        yield served
        served.close()


def test_unannounced_changes_are_found(
    served: Served, deltas: _Deltas, caplog: pytest.LogCaptureFixture
) -> None:
    """A worker that dies between a write and its announcement hides no change permanently."""
    deltas.is_lost = True
    served.save(skill("s1", "Changed"), skill("new"), removed=["s2"])
    deltas.is_lost = False
    assert served.follow() != served.stored()
    with caplog.at_level(logging.WARNING):
        assert served.follow(20) == served.stored()
    assert served.repaired == 3
    (entry,) = [one for one in caplog.records if one.message == "items_repaired"]
    assert vars(entry)["items"] == ["team/new", "team/s1", "team/s2"]
    version = served.live.engine.version
    assert served.follow(20) == served.stored()
    assert (served.repaired, served.live.engine.version) == (3, version)


def test_repaired_items_are_announced(served: Served, deltas: _Deltas) -> None:
    """Snapshots follow the announcements, so the next process would lack the items again."""
    deltas.is_lost = True
    served.save(skill("s1", "Changed"), skill("new"), removed=["s2"])
    deltas.is_lost = False
    position = deltas.position(served.name)
    served.follow(20)
    stored = served.stored()
    expected = {item: stored.get(item, REMOVED) for item in ("team/new", "team/s1", "team/s2")}
    assert deltas.since(served.name, position).hashes == expected


def test_a_late_announcement_is_not_a_repair(served: Served, deltas: _Deltas) -> None:
    """A write that is announced within seconds is not reported."""
    for number in range(12):
        deltas.is_lost = True
        served.save(skill("s1", f"Version {number}"))
        hashes = served.stored()
        deltas.is_lost = False
        served.follow(1)
        deltas.announce(served.name, hashes)
        assert served.follow(1) == served.stored()
    assert served.repaired == 0


def test_an_announcement_may_arrive_before_its_write_is_readable(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a cluster, a read may miss an acknowledged write; it is repeated later."""
    with monkeypatch.context() as lagging:
        lagging.setattr(
            EdgeCollection,
            "states",
            lambda self, items=None: (one for one in STATES(self, items) if one.item != "team/new"),
        )
        served.save(skill("new"))
        assert "team/new" not in served.follow()
    assert served.follow(20) == served.stored()


def test_a_missing_record_is_read_again(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state without its record does not count as indexed."""
    with monkeypatch.context() as lagging:
        lagging.setattr(EdgeCollection, "records", lambda *_: {})
        served.save(skill("new"), skill("s1", "Changed"))
        served.follow()
    assert served.follow(20) == served.stored()


def test_a_large_collection_is_verified_in_slices(
    served: Served, deltas: _Deltas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a verification nor a gap reads it whole, and both repair it."""
    _make_small(monkeypatch)
    served.save(*(skill(f"many{number}") for number in range(150)))
    served.save(skill("last"), later=100)
    assert served.follow() == served.stored()
    pages = _pages(monkeypatch)
    deltas.is_lost = True
    served.save(skill("s1", "Changed"), removed=["many1", "many2"])
    served.save(skill("late"), later=1_000)
    deltas.drop(served.name)  # a gap
    deltas.is_lost = False
    assert "team/late" in served.follow()
    assert sum(pages) < 20
    del pages[:]
    assert served.follow(5) != served.stored()
    assert served.follow(60) == served.stored()
    assert max(pages) <= 10
    assert served.live.verification is not None
    assert served.live.verification.at > 0


def test_a_different_number_of_items_speeds_up_the_verification(
    served: Served, deltas: _Deltas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deletion is found in one pass; an unexplained number causes no endless passes."""
    monkeypatch.setattr(verification, "SLICE", 1)
    deltas.is_lost = True
    served.save(removed=["s2"])
    assert served.follow(30) == served.stored()
    monkeypatch.setattr(EdgeCollection, "count_items", lambda _: 1_000)
    pages = _pages(monkeypatch)
    served.follow(600)
    unhurried = 2 * 600 / 4  # a slice and a page of recent items, every four to six seconds
    assert len(pages) < unhurried + 6 * 11


def test_an_urgent_slice_does_not_wait_for_announcements(
    served: Served, deltas: _Deltas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 100,000 items, searches would otherwise find removed items for minutes."""
    monkeypatch.setattr(verification, "SLICE", 1)
    monkeypatch.setattr(live, "URGENT_WAIT_S", 0.0)
    waits: list[float] = []
    since = deltas.since

    def counted(collection: str, position: str, wait: float = 0.0) -> Delta:
        waits.append(wait)
        return since(collection, position, wait)

    monkeypatch.setattr(deltas, "since", counted)
    served.follow(20)
    assert 0.0 not in waits
    deltas.is_lost = True
    served.save(removed=[f"s{number}" for number in range(8)])
    assert served.follow(40) == served.stored()
    assert 0.0 in waits


def test_an_outage_of_redis_causes_no_full_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes are found in slices; a restart or a flush of Redis adds few reads."""
    _make_small(monkeypatch)
    with RedisProcess() as process, ThreadPoolExecutor(1) as reader:
        server = RedisServer(process.url)
        parts = coordination(tmp_path, deltas=RedisDeltas(server))
        served = Served(tmp_path, parts, reader)
        served.save(*(skill(f"s{number}") for number in range(100)))
        served.save(skill("last"), later=100)
        assert served.follow() == served.stored()
        pages = _pages(monkeypatch)
        process.kill()
        unannounced = words_writer(served.store, served.cache, coordination(tmp_path))
        served.writer, announcing = unannounced, served.writer
        served.save(skill("s1", "Changed"), skill("new"), later=1_000)
        assert served.follow(20) == served.stored()
        assert "deltas" in served.live.missing
        assert sum(pages) < 100
        process.restart()
        served.writer = announcing
        served.save(skill("s1", "Changed again"))
        assert served.follow(1) == served.stored()
        assert "deltas" not in served.live.missing
        process.flush()
        served.save(skill("s1", "And again"))
        assert served.follow(1) == served.stored()
        assert sum(pages) < 150
        served.close()
        server.client.close()


def _make_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the limits, so that a hundred items count as many."""
    monkeypatch.setattr(verification, "SLICE", 10)
    monkeypatch.setattr(keyword_feed, "MAX_COMPARED", 10)
    for module in (keyword_feed, verification):
        monkeypatch.setattr(module, "OVERLAP", 10)


def _pages(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the pages that are read from now on; reading all states at once fails."""
    pages: list[int] = []
    page = EdgeCollection.page

    def counted(self: EdgeCollection, start: int, limit: int, since: int = 0) -> list[State]:
        found = page(self, start, limit, since)
        pages.append(len(found))
        return found

    def some(self: EdgeCollection, items: Sequence[str] | None = None) -> Iterator[State]:
        assert items is not None, "the whole collection is read"
        return STATES(self, items)

    monkeypatch.setattr(EdgeCollection, "page", counted)
    monkeypatch.setattr(EdgeCollection, "states", some)
    return pages
