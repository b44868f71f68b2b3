"""The writer turns jobs into points, in any order."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest

from repertory.catalogue.item import Item
from repertory.coordination.claims import MemoryClaims
from repertory.coordination.deltas import REMOVED
from repertory.coordination.tombstones import MemoryTombstones
from repertory.embedding.engine import EmbeddingEngine, Vectors
from repertory.embedding.models import Model
from repertory.embedding.words import WordsEngine
from repertory.errors import (
    JobError,
    ModelError,
    NewerReleaseError,
    StoreError,
    StoreRefusedError,
)
from repertory.index.cache import SqliteVectorCache
from repertory.index.edge import EdgeStore
from repertory.index.edge_collection import EdgeCollection
from repertory.index.qdrant import QdrantStore
from repertory.index.vectors import Point
from repertory.indexing.attempts import MAX_ATTEMPTS, attempt
from repertory.indexing.collection_names import generation_of, next_alias, recipe_of
from repertory.indexing.job import MAX_BYTES, MAX_ITEMS, MAX_REMOVED, Job, QueueName, job_of, jobs
from repertory.indexing.writer import Writer
from repertory.values import NAMESPACE
from tests.support.builders import coordination, skill, words_writer
from tests.support.lossy_queue import LossyQueue
from tests.support.qdrant_server import QdrantStandIn
from tests.support.steered_team import Modelled

CONFIGURATION = "0123456789abcdef"
REFUSAL = "The Qdrant server answered 400: Wrong input: too many points."
SECTIONS = "".join(f"## Part {n}\n" + f"Plain words of part {n} about it. " * 30 for n in range(4))


class Brittle(WordsEngine):
    """An engine that fails on texts with a certain word, and counts the embedded texts."""

    def __init__(self) -> None:
        super().__init__("a test")
        self.texts: list[str] = []
        self.meanwhile: Callable[[], None] | None = None

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """Embed the texts, or raise ModelError."""
        if any("poison" in text for text in texts):
            raise ModelError("The engine broke on a text.")
        self.texts += texts
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            meanwhile()
        return super().embed_texts(texts)


class Overflowing(WordsEngine):
    """An engine whose vector of a certain word is not a number, as half precision allows."""

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """Embed the texts, some of them wrongly."""
        vectors = super().embed_texts(texts)
        vectors[["huge" in text for text in texts]] = np.nan
        return vectors


class Killed(BaseException):
    """The end of a worker: an exception that none of its code catches."""


class Deadly(WordsEngine):
    """An engine that kills its worker on a certain word."""

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """Embed the texts, or kill the worker."""
        if any("deadly" in text for text in texts):
            raise Killed
        return super().embed_texts(texts)


class Fragile(MemoryTombstones):
    """Tombstones that can be unavailable."""

    is_away = False

    def record_deletions(self, collection: str, deleted: Mapping[str, int]) -> None:
        """Record the deletions, if the tombstones are available."""
        if self.is_away:
            raise StoreError("Away.")
        super().record_deletions(collection, deleted)


class Noting(MemoryClaims):
    """Claims that record their names and the most that were taken at once."""

    def __init__(self) -> None:
        super().__init__()
        self.most = 0
        self.names: set[str] = set()

    def take(self, names: Sequence[str], seconds: float) -> set[str]:
        """Take the claims, and record their number."""
        self.most = max(self.most, len(names))
        self.names |= set(names)
        return super().take(names, seconds)


class House:
    """A writer with all its stores and ports."""

    def __init__(self, root: Path, engine: EmbeddingEngine) -> None:
        self.store = EdgeStore(root)
        self.cache = SqliteVectorCache(root / "vectors.sqlite", 1)
        self.tombstones = Fragile()
        self.claims = Noting()
        self.coordination = coordination(root, tombstones=self.tombstones, claims=self.claims)
        self.deltas = self.coordination.deltas
        self.failures = self.coordination.failures
        self.engine = engine
        self.writer = self.another_writer()
        self.writer.begin(CONFIGURATION)
        self.collection = self.store.alias(next_alias(NAMESPACE, CONFIGURATION)) or ""
        self.queue = LossyQueue(self.writer)

    def another_writer(self, engine: Callable[[], EmbeddingEngine] | None = None) -> Writer:
        """A writer as in another process."""
        return words_writer(
            self.store, self.cache, self.coordination, engine or (lambda: self.engine)
        )

    def job(self, revision: int, *items: Item, removed: tuple[str, ...] = ()) -> Job:
        """A job for this collection."""
        return Job(
            id=f"job-{revision}-{len(items)}",
            collection=self.collection,
            revision=revision,
            items=items,
            removed=removed,
        )

    def hashes(self) -> dict[str, str]:
        """The hash of each item in the collection."""
        with self.store.open(self.collection) as collection:
            return {state.item: state.metadata_hash for state in collection.states()}

    def points(self) -> int:
        """The number of points in the collection."""
        with self.store.open(self.collection) as collection:
            return collection.count()

    def texts(self) -> list[str]:
        """The texts that were embedded."""
        assert isinstance(self.engine, Brittle)
        return self.engine.texts

    def attempt(self, *todo: Job) -> None:
        """Run jobs like a worker."""
        attempt(
            todo, QueueName.BUILDS, writer=self.writer, failures=self.failures, queue=self.queue
        )


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """A house with a brittle engine."""
    made = House(tmp_path, Brittle())
    yield made
    made.cache.close()


def test_a_late_write_does_not_restore_a_deleted_item(house: House) -> None:
    """The deletion has a higher revision than the write."""
    late = house.job(1, skill("a"))
    house.writer.write([house.job(2, removed=("team/a",))])
    house.writer.write([late])
    assert house.hashes() == {}
    house.writer.write([house.job(3, skill("a"))])
    assert set(house.hashes()) == {"team/a"}


def test_a_late_deletion_spares_a_newer_item(house: House) -> None:
    """An item that was created again survives an older deletion, even if it is unchanged."""
    house.writer.write([house.job(1, skill("a"))])
    house.writer.write([house.job(3, skill("a"))])
    house.writer.write([house.job(2, removed=("team/a",))])
    assert set(house.hashes()) == {"team/a"}


def test_an_older_write_leaves_no_sections_behind(house: House) -> None:
    """Another worker writes a newer text while the older one is embedded."""
    newer = skill("a", "Does it again", "Short.")
    assert isinstance(house.engine, Brittle)
    house.engine.meanwhile = lambda: house.another_writer().write([house.job(2, newer)])
    house.writer.write([house.job(1, skill("a", body=SECTIONS))])
    assert house.hashes() == {"team/a": newer.metadata_hash()}
    assert house.points() == 1


def test_an_older_write_that_was_interrupted_leaves_no_sections_behind(house: House) -> None:
    """The retry cleans up, although it has nothing left to write."""
    newer, older = skill("a", "Does it again", "Short."), house.job(1, skill("a", body=SECTIONS))

    def meanwhile() -> None:
        house.another_writer().write([house.job(2, newer)])
        house.tombstones.is_away = True

    assert isinstance(house.engine, Brittle)
    house.engine.meanwhile = meanwhile
    with pytest.raises(StoreError):
        house.writer.write([older])
    house.tombstones.is_away = False
    house.writer.write([older])
    assert house.hashes() == {"team/a": newer.metadata_hash()}
    assert house.points() == 1


def test_an_item_deleted_during_its_embedding_stays_deleted(house: House) -> None:
    """A deletion with a higher revision wins over a write that is still running."""
    assert isinstance(house.engine, Brittle)
    deletion = house.job(2, removed=("team/a",))
    house.engine.meanwhile = lambda: house.another_writer().write([deletion])
    house.writer.write([house.job(1, skill("a", body=SECTIONS))])
    assert house.points() == 0


def test_in_a_batch_of_jobs_the_newest_counts(house: House) -> None:
    """Each item is written once, in its latest version, also after a removal."""
    newest, removal = skill("a", "Does it best"), house.job(2, removed=("team/a",))
    house.writer.write([house.job(3, newest), removal, house.job(1, skill("a"))])
    assert house.hashes() == {"team/a": newest.metadata_hash()}


def test_in_a_batch_of_jobs_the_newest_deletion_counts(house: House) -> None:
    """A late write between two deletions does not restore the item."""
    deletions = [house.job(revision, removed=("team/a",)) for revision in (3, 1)]
    house.writer.write(deletions)
    house.writer.write([house.job(2, skill("a"))])
    assert house.hashes() == {}


def test_each_deletion_of_a_batch_spares_newer_items(house: House) -> None:
    """An item that was created again after its deletion survives a later deletion of another."""
    house.writer.write([house.job(1, skill("a"), skill("b"))])
    house.writer.write([house.job(3, skill("a"))])
    removals = [house.job(2, removed=("team/a",)), house.job(4, removed=("team/b",))]
    house.writer.write(removals)
    assert set(house.hashes()) == {"team/a"}


def test_in_a_batch_of_jobs_older_versions_are_not_embedded(house: House) -> None:
    """The order of the jobs does not matter."""
    newest = skill("a", "Does it best")
    house.writer.write(
        [house.job(2, skill("a", "Does it well")), house.job(3, newest), house.job(1, skill("a"))]
    )
    assert house.hashes() == {"team/a": newest.metadata_hash()}
    assert house.texts() == ["a: Does it best"]


def test_nothing_obsolete_is_embedded_or_written(house: House) -> None:
    """Obsolete items were removed by a newer job, or are stored or deleted at a later revision."""
    house.writer.write([house.job(1, skill("gone")), house.job(2, removed=("team/gone",))])
    assert house.texts() == []
    newer = skill("a", "Does it again")
    house.writer.write([house.job(5, newer)])
    house.writer.write([house.job(5, newer)])
    house.writer.write([house.job(4, skill("a"))])
    house.writer.write([house.job(1, skill("gone"))])
    assert house.texts() == ["a: Does it again"]
    assert house.coordination.status.counters()["written"] == 1


def test_closing_a_writer_closes_its_cache(house: House, tmp_path: Path) -> None:
    """An unused or closed writer can be closed; the next job opens another cache."""
    opened: list[SqliteVectorCache] = []

    def open_cache(_: Model) -> SqliteVectorCache:
        opened.append(SqliteVectorCache(tmp_path / "own.sqlite", 1))
        return opened[-1]

    writer = Writer(
        store=house.store,
        engine=lambda: house.engine,
        cache=open_cache,
        coordination=house.coordination,
        active=NAMESPACE,
        notify=lambda _: None,
    )
    writer.close()
    writer.write([house.job(1, skill("a"))])
    writer.close()
    writer.close()
    with pytest.raises(StoreError, match="has been closed"):
        opened[0].count()
    writer.write([house.job(2, skill("b"))])
    assert len(opened) == 2
    writer.close()


def test_claims_are_released(house: House) -> None:
    """Another worker that needs the same text can claim it after the write."""
    house.writer.write([house.job(1, skill("a"))])
    assert house.claims.names
    assert house.claims.take(list(house.claims.names), 1.0) == house.claims.names


def test_jobs_without_changes_are_announced_too(house: House) -> None:
    """The announcement of an earlier attempt may have been lost."""
    job = house.job(1, skill("a"), removed=("team/b",))
    start = house.deltas.position(house.collection)
    for _ in range(2):
        house.writer.write([job])
        delta = house.deltas.since(house.collection, start)
        assert delta.hashes == {"team/a": skill("a").metadata_hash(), "team/b": REMOVED}
        start = delta.position


def test_the_actual_state_is_announced(house: House) -> None:
    """A late job announces the newer stored state instead of its own."""
    newer = skill("a", "Does it again")
    house.writer.write([house.job(2, newer, removed=("team/b",))])
    start = house.deltas.position(house.collection)
    house.writer.write([house.job(1, skill("a"), skill("b"), removed=("team/a",))])
    delta = house.deltas.since(house.collection, start)
    assert delta.hashes == {"team/a": newer.metadata_hash(), "team/b": REMOVED}


def test_claims_cover_one_batch(house: House) -> None:
    """A worker claims the texts of one batch, and not of the whole job."""
    assert isinstance(house.engine, Brittle)
    house.engine.batch = 8
    house.writer.write([house.job(1, *(skill(f"s{n}", f"Does {n}") for n in range(50)))])
    assert len(house.engine.texts) == 50
    assert house.claims.most == 8


def test_workers_never_embed_the_same_text_twice(house: House) -> None:
    """Four of them do the same job at once."""
    todo = [house.job(1, *(skill(f"s{n}", f"Does {n}") for n in range(50)))]
    writers = [house.another_writer() for _ in range(4)]
    threads = [threading.Thread(target=writer.write, args=(todo,)) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert isinstance(house.engine, Brittle)
    assert len(house.engine.texts) == len(set(house.engine.texts)) == 50
    assert len(house.hashes()) == 50


def test_a_text_that_another_worker_embedded_meanwhile_is_not_embedded(house: House) -> None:
    """This works in jobs of several batches, which embed the longest texts first."""
    assert isinstance(house.engine, Brittle)
    house.engine.batch = 8
    items = [skill(f"s{n}", "Does it" + n * " again") for n in range(50)]
    other = house.another_writer()
    house.engine.meanwhile = lambda: other.write([house.job(1, *items[:42])])
    house.writer.write([house.job(1, *items)])
    assert len(house.engine.texts) == len(set(house.engine.texts)) == 50
    assert len(house.hashes()) == 50


def test_a_poison_item_fails_alone(house: House) -> None:
    """A failing batch is split until the failing item is alone."""
    good = [skill(f"s{n}") for n in range(3)]
    house.attempt(house.job(1, *good, skill("bad", "poison")), house.job(2, skill("other")))
    assert set(house.hashes()) == {"team/s0", "team/s1", "team/s2", "team/other"}
    assert house.failures.list() == []
    for _ in range(MAX_ATTEMPTS - 1):
        (again,) = [job for job, _ in house.queue.jobs]
        house.queue.jobs.clear()
        house.attempt(again)
    (failure,) = house.failures.list()
    assert list(failure.items) == ["team/bad"]
    assert failure.error == "The engine broke on a text."


def test_an_item_with_an_invalid_vector_fails_alone(house: House) -> None:
    """The vector is never stored, and the failure is not treated as an outage of the store."""
    house.engine = Overflowing("a test")
    house.writer = house.another_writer()
    for _ in range(MAX_ATTEMPTS):
        house.attempt(house.job(1, skill("good"), skill("bad", "huge")))
    assert set(house.hashes()) == {"team/good"}
    (failure,) = house.failures.list()
    assert list(failure.items) == ["team/bad"]


@pytest.fixture
def _refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store refuses items with a certain name."""
    upsert = EdgeCollection.upsert

    def refuse(collection: EdgeCollection, points: Sequence[Point]) -> None:
        if any("refused" in point.item for point in points):
            raise StoreRefusedError(REFUSAL)
        upsert(collection, points)

    monkeypatch.setattr(EdgeCollection, "upsert", refuse)


@pytest.mark.usefixtures("_refusing")
def test_an_item_that_the_store_refuses_fails_alone(house: House) -> None:
    """Other items are written; the failure has the store's reason, and is counted."""
    removal = house.job(2, removed=("team/old",))
    house.attempt(house.job(1, skill("good"), skill("refused"), skill("fine")), removal)
    assert set(house.hashes()) == {"team/good", "team/fine"}
    assert house.failures.list() == []
    while house.queue.jobs:
        house.attempt(house.queue.jobs.pop()[0])
    (failure,) = house.failures.list()
    assert (list(failure.items), failure.error) == (["team/refused"], REFUSAL)
    assert failure.attempts == MAX_ATTEMPTS
    counters = house.coordination.status.counters()
    assert (counters["retried"], counters["failed"]) == (MAX_ATTEMPTS - 1, 1)
    assert counters["refused"] >= MAX_ATTEMPTS


def test_a_limit_of_the_server_fails_only_items_above_it(tmp_path: Path) -> None:
    """A job that exceeds the limit is done item by item."""
    with QdrantStandIn(strict_mode={"enabled": True, "upsert_max_batchsize": 3}) as server:
        parts, cache = coordination(tmp_path), SqliteVectorCache(tmp_path / "vectors.sqlite", 1)
        store = QdrantStore(server.url)
        writer = words_writer(store, cache, parts)
        queue = LossyQueue(writer)
        writer.begin(CONFIGURATION)
        name = store.alias(next_alias(NAMESPACE, CONFIGURATION)) or ""
        body = "\n".join(f"## Part {n}\n" + "Plain words. " * 40 for n in range(6))
        items = (*(skill(f"s{n}") for n in range(5)), skill("large", body=body))
        queue.submit(Job(id="1", collection=name, revision=1, items=items), QueueName.SAVES)
        while queue.jobs:
            (job, queue_name) = queue.jobs.pop()
            attempt([job], queue_name, writer=writer, failures=parts.failures, queue=queue)
        with store.open(name) as collection:
            assert {state.item for state in collection.states()} == {f"team/s{n}" for n in range(5)}
        (failure,) = parts.failures.list()
        assert list(failure.items) == ["team/large"]
        assert "answered 4" in failure.error
        cache.close()


@pytest.mark.usefixtures("_refusing")
def test_an_outage_is_no_refusal(house: House) -> None:
    """While a store is unavailable, jobs wait, and no attempt counts."""
    house.tombstones.is_away = True
    for _ in range(2 * MAX_ATTEMPTS):
        with pytest.raises(StoreError, match="Away"):
            house.attempt(house.job(1, skill("a"), removed=("team/b",)))
    assert not house.queue.jobs
    assert house.failures.list() == []
    house.tombstones.is_away = False
    house.attempt(house.job(1, skill("a"), removed=("team/b",)))
    assert set(house.hashes()) == {"team/a"}


def test_a_job_that_kills_its_worker_fails(house: House) -> None:
    """A job that was started too often, whole and item by item, is not started again."""
    job = house.job(1, skill("a"))
    for _ in range(MAX_ATTEMPTS):
        for tried in (job, *job.split()):
            house.failures.attempt(tried.id)
    house.attempt(job)
    assert house.hashes() == {}
    (failure,) = house.failures.list()
    assert "worker was killed" in failure.error


def test_an_item_that_kills_its_worker_fails_alone(house: House) -> None:
    """Its job is tried whole a few times and then item by item; the others are written."""
    house.writer = house.another_writer(lambda: Deadly("a test"))
    job = house.job(1, *(skill(f"s{n}") for n in range(5)), skill("bad", "deadly"), skill("z"))
    deaths = 0
    while deaths <= 100:
        try:
            house.attempt(job)
            break
        except Killed:
            deaths += 1
            house.claims._until.clear()  # claims expire
    assert deaths == 2 * MAX_ATTEMPTS
    assert set(house.hashes()) == {*(f"team/s{n}" for n in range(5)), "team/z"}
    (failure,) = house.failures.list()
    assert list(failure.items) == ["team/bad"]


def test_jobs_in_a_batch_with_one_that_kills_its_worker_are_done(house: House) -> None:
    """Of several saves taken together, only the one that is to blame fails."""
    house.writer = house.another_writer(lambda: Deadly("a test"))
    saves = [
        house.job(1, skill("a")),
        house.job(2, skill("bad", "deadly")),
        house.job(3, skill("z")),
    ]
    deaths = 0
    while deaths <= 100:
        try:
            house.attempt(*saves)
            break
        except Killed:
            deaths += 1
            house.claims._until.clear()  # claims expire
    assert deaths == 2 * MAX_ATTEMPTS
    assert set(house.hashes()) == {"team/a", "team/z"}
    (failure,) = house.failures.list()
    assert list(failure.items) == ["team/bad"]


def test_an_unavailable_model_fails_no_job(house: House) -> None:
    """Jobs wait while the model cannot be loaded."""

    def away() -> EmbeddingEngine:
        raise ModelError("No model.")

    house.writer = house.another_writer(away)
    with pytest.raises(StoreError, match="No model"):
        house.attempt(house.job(1, skill("a")))
    assert house.failures.list() == []


def test_a_writer_notices_a_model_that_became_available(house: House) -> None:
    """Each process checks this, because only one of them starts the collection."""
    there = [WordsEngine("no model"), Modelled("a test")]
    late = house.another_writer(lambda: there.pop(0))
    house.engine = Modelled("a test")
    house.another_writer().begin(CONFIGURATION)
    house.collection = house.store.alias(next_alias(NAMESPACE, CONFIGURATION)) or ""
    job = house.job(1, skill("a"))
    with pytest.raises(StoreError, match="no model"):
        late.write([job])
    late.write([job])
    assert set(house.hashes()) == {"team/a"}


def test_an_index_with_vectors_survives_a_missing_model(house: House) -> None:
    """A worker without its model does not begin an index of keywords only."""
    house.another_writer(lambda: Modelled("a test")).begin(CONFIGURATION)
    target = house.store.alias(next_alias(NAMESPACE, CONFIGURATION))
    assert "_test-" in (target or "")
    house.another_writer().begin(CONFIGURATION)
    assert house.store.alias(next_alias(NAMESPACE, CONFIGURATION)) == target


def test_a_new_generation_is_not_reverted(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebuild is requested while another worker checks the current generation."""
    opened = house.store.open

    def slowly(name: str) -> EdgeCollection:
        monkeypatch.setattr(house.store, "open", opened)
        house.another_writer().begin(CONFIGURATION, 2)
        return opened(name)

    monkeypatch.setattr(house.store, "open", slowly)
    house.writer.begin(CONFIGURATION)
    target = house.store.alias(next_alias(NAMESPACE, CONFIGURATION))
    assert target is not None
    assert generation_of(target) == 2


def test_workers_that_begin_at_once_share_a_collection(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one finds that the collection exists, and does not fail."""
    created = house.store.create

    def slowly(name: str, dimension: int) -> EdgeCollection:
        monkeypatch.setattr(house.store, "create", created)
        house.another_writer().begin(CONFIGURATION, 2)
        return created(name, dimension)

    monkeypatch.setattr(house.store, "create", slowly)
    house.writer.begin(CONFIGURATION, 2)
    target = house.store.alias(next_alias(NAMESPACE, CONFIGURATION))
    assert target is not None
    assert generation_of(target) == 2


def test_recipes_never_mix(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release with another embedding recipe begins its own collection."""
    before = house.collection
    house.writer.write([house.job(1, skill("a"))])
    older, newer = house.job(2, skill("b")), recipe_of(before) + 1
    monkeypatch.setattr("repertory.indexing.collection_names.RECIPE", newer)
    house.writer.write([older])
    assert set(house.hashes()) == {"team/a"}
    house.writer.begin(CONFIGURATION)
    house.collection = house.store.alias(next_alias(NAMESPACE, CONFIGURATION)) or ""
    assert recipe_of(house.collection) == newer
    house.writer.write([house.job(2, skill("b"))])
    assert set(house.hashes()) == {"team/b"}

    monkeypatch.undo()  # a worker of the older release
    late = house.job(3, skill("c"))
    with pytest.raises(NewerReleaseError, match="newer embedding recipe"):
        job_of(late.plain())
    house.writer.write([late])
    assert set(house.hashes()) == {"team/b"}
    house.writer.begin(CONFIGURATION)  # the older release is back
    assert house.store.alias(next_alias(NAMESPACE, CONFIGURATION)) == before


def test_a_refused_collection_is_reported(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the reason of the store."""

    def refuse(*_: object) -> None:
        raise StoreRefusedError(REFUSAL)

    monkeypatch.setattr(EdgeStore, "create", refuse)
    with pytest.raises(StoreRefusedError, match="too many points"):
        house.writer.begin(CONFIGURATION, 9)


def test_a_job_of_a_dropped_collection_is_ignored(house: House) -> None:
    """Late jobs of an old generation do no harm."""
    job = house.job(1, skill("a"))
    house.store.drop(house.collection)
    house.writer.write([job])
    assert house.store.collections() == []


def test_a_corrupt_collection_is_replaced(house: House, tmp_path: Path) -> None:
    """A new generation becomes the target."""
    for file in (tmp_path / "collections" / house.collection).rglob("*.json"):
        file.write_text("rubbish")
    house.writer.begin(CONFIGURATION)
    name = house.store.alias(next_alias(NAMESPACE, CONFIGURATION))
    assert name
    assert name != house.collection


def test_a_job_of_another_version_is_refused() -> None:
    """A worker does not guess the meaning of a job of another release."""
    data = Job(id="1", collection="c", revision=1).plain()
    assert job_of(data).id == "1"
    with pytest.raises(NewerReleaseError, match="version 99"):
        job_of({**data, "version": 99})
    with pytest.raises(JobError, match="version 0") as older:
        job_of({**data, "version": 0})
    assert not isinstance(older.value, NewerReleaseError)
    with pytest.raises(JobError, match="cannot be read"):
        job_of({**data, "items": "all"})
    with pytest.raises(JobError):
        job_of("rubbish")


@pytest.mark.parametrize("name", ["", "half a \ud800 character", f"c-r{'9' * 5_000}_g1"])
def test_a_job_with_an_invalid_name_is_refused(name: str) -> None:
    """Redis or Python would reject the name later, and other jobs in the batch would fail too."""
    data = Job(id="1", collection="c", revision=1).plain()
    for field in ("id", "collection"):
        with pytest.raises(JobError, match="cannot be read"):
            job_of({**data, field: name})


@pytest.mark.parametrize("field", ["body", "description", "input_schema", "extra", "path"])
def test_jobs_stay_small(field: str) -> None:
    """Many or large items are split into several jobs, whichever field is large."""
    texts = ["x" * (n % 3) * (MAX_BYTES * 2 // 5) for n in range(12)] + [""] * 60
    values = [{"": text} if field in ("input_schema", "extra") else text for text in texts]
    items = [
        msgspec.structs.replace(skill(f"s{n}"), **{field: value}) for n, value in enumerate(values)
    ]
    made = list(jobs("c", 1, items, []))
    assert [item for job in made for item in job.items] == items
    assert all(len(msgspec.json.encode(job.items)) <= MAX_BYTES + 100 for job in made)
    assert max(len(job.items) for job in made) == MAX_ITEMS


def test_jobs_of_removals_stay_small() -> None:
    """Removals are split by their number and by the length of their ids."""
    short, long = [f"r{n}" for n in range(1_500)], [f"{n}{'x' * 4_000}" for n in range(500)]
    made = list(jobs("c", 1, [], short + long))
    assert [item for job in made for item in job.removed] == short + long
    assert max(len(job.removed) for job in made) == MAX_REMOVED
    assert all(len(msgspec.json.encode(job.removed)) <= MAX_BYTES + 10_000 for job in made)
