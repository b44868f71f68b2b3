"""Jobs become points, whatever order they come in."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from repertory.catalogue.item import Item
from repertory.coordination.claims import MemoryClaims
from repertory.coordination.deltas import REMOVED
from repertory.coordination.tombstones import MemoryTombstones
from repertory.embedding.engine import EmbeddingEngine, Vectors
from repertory.embedding.models import Model
from repertory.embedding.words import WordsEngine
from repertory.errors import JobError, ModelError, StoreError
from repertory.index.cache import SqliteVectorCache
from repertory.index.edge import EdgeStore
from repertory.indexing.attempts import MAX_ATTEMPTS, attempt, retry
from repertory.indexing.collections import ACTIVE, next_alias
from repertory.indexing.job import Job, QueueName, job_of, jobs
from repertory.indexing.writer import Writer
from tests.support.builders import coordination, skill, words_writer
from tests.support.lossy_queue import LossyQueue

CONFIGURATION = "0123456789abcdef"
SECTIONS = "".join(f"## Part {n}\n" + f"Plain words of part {n} about it. " * 30 for n in range(4))


class Brittle(WordsEngine):
    """An engine that cannot embed texts with a certain word, and counts what it embeds."""

    def __init__(self) -> None:
        super().__init__("a test")
        self.texts: list[str] = []
        self.meanwhile: Callable[[], None] | None = None

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """Embed, or break."""
        if any("poison" in text for text in texts):
            raise ModelError("The engine broke on a text.")
        self.texts += texts
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            meanwhile()
        return super().embed_texts(texts)


class Overflowing(WordsEngine):
    """An engine that gives what is no number for a certain word, as half precision may."""

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """Embed, some texts badly."""
        vectors = super().embed_texts(texts)
        vectors[["huge" in text for text in texts]] = np.nan
        return vectors


class Killed(BaseException):
    """What nothing that runs in a worker catches."""


class Deadly(WordsEngine):
    """An engine that ends its worker on a certain word."""

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """Embed, or die."""
        if any("deadly" in text for text in texts):
            raise Killed
        return super().embed_texts(texts)


class Fragile(MemoryTombstones):
    """Tombstones that may be away."""

    is_away = False

    def record_deletions(self, collection: str, deleted: Mapping[str, int]) -> None:
        """Bury, if they are there."""
        if self.is_away:
            raise StoreError("Away.")
        super().record_deletions(collection, deleted)


class Noting(MemoryClaims):
    """Claims that note how many were taken at once."""

    most = 0

    def take(self, names: Sequence[str], seconds: float) -> set[str]:
        """Take, and note."""
        self.most = max(self.most, len(names))
        return super().take(names, seconds)


class House:
    """A writer and all that it writes to."""

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
        self.collection = self.store.alias(next_alias(ACTIVE, CONFIGURATION)) or ""
        self.queue = LossyQueue(self.writer)

    def another_writer(self, engine: Callable[[], EmbeddingEngine] | None = None) -> Writer:
        """A writer as another process has it."""
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
        """What the collection holds."""
        with self.store.open(self.collection) as collection:
            return {state.item: state.metadata_hash for state in collection.states()}

    def points(self) -> int:
        """How many points the collection holds."""
        with self.store.open(self.collection) as collection:
            return collection.count()

    def attempt(self, *todo: Job) -> None:
        """Do jobs as a worker does."""
        attempt(
            todo, QueueName.BUILDS, writer=self.writer, failures=self.failures, queue=self.queue
        )


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """A house with a brittle engine."""
    made = House(tmp_path, Brittle())
    yield made
    made.cache.close()


def test_a_late_write_does_not_raise_the_dead(house: House) -> None:
    """What was deleted at a newer observation stays deleted."""
    late = house.job(1, skill("a"))
    house.writer.write([house.job(2, removed=("team/a",))])
    house.writer.write([late])
    assert house.hashes() == {}
    house.writer.write([house.job(3, skill("a"))])
    assert set(house.hashes()) == {"team/a"}


def test_a_late_deletion_spares_what_came_after_it(house: House) -> None:
    """An item that was made again is not deleted by the older deletion, even if it is the same."""
    house.writer.write([house.job(1, skill("a"))])
    house.writer.write([house.job(3, skill("a"))])
    house.writer.write([house.job(2, removed=("team/a",))])
    assert set(house.hashes()) == {"team/a"}


def test_an_older_write_leaves_no_sections_behind(house: House) -> None:
    """While one worker embeds, another writes what is newer: nothing of the older one stays."""
    newer = skill("a", "Does it anew", "Short.")
    assert isinstance(house.engine, Brittle)
    house.engine.meanwhile = lambda: house.another_writer().write([house.job(2, newer)])
    house.writer.write([house.job(1, skill("a", body=SECTIONS))])
    assert house.hashes() == {"team/a": newer.metadata_hash()}
    assert house.points() == 1


def test_an_older_write_that_was_interrupted_leaves_no_sections_behind(house: House) -> None:
    """Whoever is given its job again tidies up, though there is nothing left to write."""
    newer, older = skill("a", "Does it anew", "Short."), house.job(1, skill("a", body=SECTIONS))

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


def test_what_is_deleted_while_it_is_embedded_stays_deleted(house: House) -> None:
    """A deletion that overtakes a write under way wins."""
    assert isinstance(house.engine, Brittle)
    deletion = house.job(2, removed=("team/a",))
    house.engine.meanwhile = lambda: house.another_writer().write([deletion])
    house.writer.write([house.job(1, skill("a", body=SECTIONS))])
    assert house.points() == 0


def test_of_jobs_done_together_the_newest_counts(house: House) -> None:
    """One batch writes each item once, as it was last seen."""
    newest = skill("a", "Does it best")
    house.writer.write(
        [house.job(3, newest), house.job(1, skill("a")), house.job(2, removed=("team/a",))]
    )
    assert house.hashes() == {"team/a": newest.metadata_hash()}


def test_jobs_are_announced_also_when_there_was_nothing_to_do(house: House) -> None:
    """Whoever sent a job twice is answered twice: the first answer may have been lost."""
    job = house.job(1, skill("a"), removed=("team/b",))
    start = house.deltas.position(house.collection)
    for _ in range(2):
        house.writer.write([job])
        delta = house.deltas.since(house.collection, start)
        assert delta.hashes == {"team/a": skill("a").metadata_hash(), "team/b": REMOVED}
        start = delta.position


def test_what_holds_is_announced_and_not_what_was_asked_for(house: House) -> None:
    """A job that came too late confirms nothing that is not so."""
    newer = skill("a", "Does it anew")
    house.writer.write([house.job(2, newer, removed=("team/b",))])
    start = house.deltas.position(house.collection)
    house.writer.write([house.job(1, skill("a"), skill("b"), removed=("team/a",))])
    delta = house.deltas.since(house.collection, start)
    assert delta.hashes == {"team/a": newer.metadata_hash(), "team/b": REMOVED}


def test_no_more_texts_are_claimed_at_once_than_are_embedded_at_once(house: House) -> None:
    """A claim lasts for one batch, and not for all that a job may hold."""
    assert isinstance(house.engine, Brittle)
    house.engine.batch = 8
    house.writer.write([house.job(1, *(skill(f"s{n}", f"Does {n}") for n in range(50)))])
    assert len(house.engine.texts) == 50
    assert house.claims.most == 8


def test_two_workers_never_embed_the_same_text(house: House) -> None:
    """The text of a job that is done twice at once is embedded once."""
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


def test_one_poison_item_is_put_aside_and_its_neighbours_are_written(house: House) -> None:
    """A batch that fails is taken apart until the item that fails is alone."""
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


def test_a_text_without_a_vector_is_put_aside_and_its_neighbours_are_written(house: House) -> None:
    """What the engine gives for it is never stored, and is no fault of the store."""
    house.engine = Overflowing("a test")
    house.writer = house.another_writer()
    for _ in range(MAX_ATTEMPTS):
        house.attempt(house.job(1, skill("good"), skill("bad", "huge")))
    assert set(house.hashes()) == {"team/good"}
    (failure,) = house.failures.list()
    assert list(failure.items) == ["team/bad"]


def test_a_failure_can_be_retried(house: House) -> None:
    """What was put aside goes back on the queue, and off the list."""
    for _ in range(MAX_ATTEMPTS):
        house.attempt(house.job(1, skill("bad", "poison")))
    house.queue.jobs.clear()
    assert retry(house.failures, house.queue) == 1
    assert house.failures.list() == []
    assert [job.items[0].id for job, _ in house.queue.jobs] == ["team/bad"]


def test_a_job_that_ends_its_worker_fails(house: House) -> None:
    """A job that was begun again and again and never ended is not begun for ever."""
    job = house.job(1, skill("a"))
    for _ in range(MAX_ATTEMPTS):
        house.failures.attempt(job.id)
    house.attempt(job)
    assert house.hashes() == {}
    (failure,) = house.failures.list()
    assert "worker ended" in failure.error


def test_one_item_that_ends_its_worker_is_found_among_its_neighbours(house: House) -> None:
    """Its job is tried some times whole and then item by item; the others are written."""
    house.writer = house.another_writer(lambda: Deadly("a test"))
    job = house.job(1, *(skill(f"s{n}") for n in range(5)), skill("bad", "deadly"), skill("z"))
    deaths = 0
    while deaths <= 100:
        try:
            house.attempt(job)
            break
        except Killed:
            deaths += 1
            house.claims._until.clear()  # they expire
    assert deaths == 2 * MAX_ATTEMPTS
    assert set(house.hashes()) == {*(f"team/s{n}" for n in range(5)), "team/z"}
    (failure,) = house.failures.list()
    assert list(failure.items) == ["team/bad"]


def test_a_store_that_is_away_is_no_jobs_fault(house: House) -> None:
    """While the model cannot be loaded, jobs wait; none is put aside."""

    def away() -> EmbeddingEngine:
        raise ModelError("No model.")

    house.writer = house.another_writer(away)
    with pytest.raises(StoreError, match="No model"):
        house.attempt(house.job(1, skill("a")))
    assert house.failures.list() == []


def test_a_writer_without_a_model_finds_one_that_is_there_by_now(house: House) -> None:
    """Each process sees it by itself: only one of them is asked for the collection."""

    class Modelled(WordsEngine):
        model = Model(id="test", slug="test", dimension=1, max_tokens=8)

    there = [WordsEngine("no model"), Modelled("a test")]
    late = house.another_writer(lambda: there.pop(0))
    house.engine = Modelled("a test")
    house.another_writer().begin(CONFIGURATION)
    house.collection = house.store.alias(next_alias(ACTIVE, CONFIGURATION)) or ""
    job = house.job(1, skill("a"))
    with pytest.raises(StoreError, match="no model"):
        late.write([job])
    late.write([job])
    assert set(house.hashes()) == {"team/a"}


def test_a_job_of_a_dropped_collection_is_passed_over(house: House) -> None:
    """What is late for a generation that is gone does no harm."""
    job = house.job(1, skill("a"))
    house.store.drop(house.collection)
    house.writer.write([job])
    assert house.store.collections() == []


def test_a_corrupt_collection_is_begun_again(house: House, tmp_path: Path) -> None:
    """A store that cannot be read is replaced by the next generation, to be filled anew."""
    for file in (tmp_path / "collections" / house.collection).rglob("*.json"):
        file.write_text("rubbish")
    house.writer.begin(CONFIGURATION)
    name = house.store.alias(next_alias(ACTIVE, CONFIGURATION))
    assert name
    assert name != house.collection


def test_a_job_of_another_version_is_refused() -> None:
    """A worker does not guess what another release meant."""
    data = Job(id="1", collection="c", revision=1).plain()
    assert job_of(data).id == "1"
    with pytest.raises(JobError, match="version 99"):
        job_of({**data, "version": 99})
    with pytest.raises(JobError, match="cannot be read"):
        job_of({**data, "items": "all"})
    with pytest.raises(JobError):
        job_of("rubbish")


def test_jobs_stay_small() -> None:
    """Many items, or large ones, are more than one job; none is left out."""
    items = [skill(f"s{n}", body="x" * (n % 3) * 400_000) for n in range(60)]
    made = list(jobs("c", 1, items, [f"r{n}" for n in range(1_500)]))
    assert [item for job in made for item in job.items] == items
    assert sum(len(job.removed) for job in made) == 1_500
    assert all(sum(len(item.body) for item in job.items) <= 1_000_000 for job in made)
