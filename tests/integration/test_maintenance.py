"""Keyword snapshots and new collections that fail are reported and retried with pauses."""

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from repertory.coordination.claims import MemoryClaims, RedisClaims
from repertory.coordination.ports import in_process
from repertory.coordination.redis_server import RedisServer
from repertory.coordination.snapshots import FileSnapshots, Segments
from repertory.embedding.words import WordsEngine
from repertory.errors import StoreBusyError, StoreError, StoreRefusedError
from repertory.index.cache import SqliteVectorCache
from repertory.index.edge import EdgeStore
from repertory.indexing import in_process_queue, maintenance
from repertory.indexing.attempts import MAX_ATTEMPTS
from repertory.indexing.collection_names import next_alias
from repertory.indexing.in_process_queue import InProcessQueue
from repertory.indexing.job import Job, QueueName, jobs
from repertory.indexing.keyword_feed import KeywordFeed
from repertory.indexing.maintenance import MAX_PAUSE_S, PAUSE_S
from repertory.system.cancellation import checkpoint
from repertory.values import NAMESPACE
from tests.support.builders import coordination, skill, words_writer
from tests.support.redis_server import RedisProcess
from tests.support.waiting import until

CONFIGURATION = "0123456789abcdef"
INTERVAL_S = 10.0  # seconds between requests of the coordinator
FULL = "The Redis is full: give it more memory."


class Killed(BaseException):
    """The death of a worker."""


class FailingSnapshots(FileSnapshots):
    """Snapshots that cannot be saved while `error` is set."""

    error: BaseException | None = None
    attempts = 0

    def save(self, collection: str, head: bytes, segments: Segments) -> None:
        """Save, or raise the error."""
        self.attempts += 1
        if self.error:
            raise self.error
        super().save(collection, head, segments)


class Requested(InProcessQueue):
    """A queue that records the collections whose snapshot is requested."""

    def __init__(self, place: "Place") -> None:
        super().__init__(place.writer, place.coordination)
        self.collections: list[str] = []

    def keep_keywords(self, collection: str) -> None:
        """Record the request."""
        self.collections.append(collection)


class Place:
    """A collection of one item, whose snapshots fail."""

    def __init__(self, root: Path) -> None:
        self.time = 1_000.0
        self.store = EdgeStore(root)
        self.cache = SqliteVectorCache(root / "vectors.sqlite", 1)
        self.snapshots = FailingSnapshots(root / "keywords")
        self.coordination = coordination(
            root, claims=MemoryClaims(lambda: self.time), snapshots=self.snapshots
        )
        self.failures = self.coordination.failures
        self.writer = words_writer(self.store, self.cache, self.coordination)
        self.writer.begin(CONFIGURATION)
        self.collection = self.store.alias(next_alias(NAMESPACE, CONFIGURATION)) or ""
        job = Job(id="1", collection=self.collection, revision=1, items=(skill("a"),))
        self.writer.write([job])

    def request(self) -> None:
        """Do a request for a snapshot, as a worker does."""
        maintenance.keep_keywords(self.collection, store=self.store, coordination=self.coordination)

    def job(self, name: str) -> Job:
        """A job that saves one item."""
        return Job(id=name, collection=self.collection, revision=2, items=(skill(name),))

    def errors(self) -> list[str]:
        """The reasons in the list of failures."""
        return [failure.error for failure in self.failures.list()]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A place whose Redis is full."""
    made = Place(tmp_path)
    made.snapshots.error = StoreError(FULL)
    # ``KeywordFeed.open`` also saves an index that it had to build; that may fail, too.
    yield made
    made.cache.close()


def test_a_failing_snapshot_is_retried_with_growing_pauses(place: Place) -> None:
    """Frequent requests cause only a few attempts an hour."""
    attempts = []
    for _ in range(1_440):  # four hours
        before = place.snapshots.attempts
        place.request()
        if place.snapshots.attempts > before:
            attempts.append(place.time)
        place.time += INTERVAL_S
    pauses = [later - at for at, later in itertools.pairwise(attempts)]
    assert pauses == [PAUSE_S, 2 * PAUSE_S, 4 * PAUSE_S, 8 * PAUSE_S, MAX_PAUSE_S, MAX_PAUSE_S]
    assert place.errors() == [FULL]


def test_a_snapshot_that_has_failed_for_weeks_is_still_retried(place: Place) -> None:
    """One attempt an hour is a thousand attempts in six weeks."""
    for _ in range(1_100):
        place.failures.attempt(f"snapshot:{place.collection}")
    place.request()
    assert place.errors() == [FULL]


def test_a_failing_snapshot_is_listed_until_one_succeeds(place: Place) -> None:
    """It is listed only after some attempts, since an outage may be short."""
    for _ in range(MAX_ATTEMPTS - 1):
        place.request()
        assert place.errors() == []
        place.time += MAX_PAUSE_S
    place.request()
    assert place.errors() == [FULL]
    place.time += MAX_PAUSE_S
    place.snapshots.error = None
    place.request()
    assert place.errors() == []
    assert place.snapshots.load(place.collection)
    attempts = place.snapshots.attempts
    place.request()  # without a pause, since nothing failed
    assert place.snapshots.attempts == attempts + 1
    assert place.failures.attempt(f"snapshot:{place.collection}") == 1


@pytest.mark.parametrize(
    ("error", "reason"),
    [(StoreRefusedError("It is too large."), "too large"), (MemoryError(), "not enough memory")],
)
def test_a_refused_snapshot_is_listed(place: Place, error: Exception, reason: str) -> None:
    """A refusal of the store is listed at once, a lack of memory after some attempts."""
    place.snapshots.error = error
    attempts = 1 if isinstance(error, StoreRefusedError) else MAX_ATTEMPTS
    for _ in range(attempts):
        place.request()
        place.time += MAX_PAUSE_S
    (found,) = place.errors()
    assert reason in found


def test_a_snapshot_that_kills_its_worker_is_listed(place: Place) -> None:
    """Each death counts as an attempt, and the redelivered request pauses."""
    place.snapshots.error = Killed()
    deaths = 0
    for _ in range(MAX_ATTEMPTS + 1):
        with pytest.raises(Killed):
            place.request()
        deaths = place.snapshots.attempts
        place.request()
        assert place.snapshots.attempts == deaths
        place.time += MAX_PAUSE_S
    (reason,) = place.errors()
    assert "was killed each time" in reason


def test_a_snapshot_whose_worker_is_stopped_has_not_failed(place: Place) -> None:
    """A deployment may stop workers at any time; the next one repeats the request at once."""
    place.snapshots.error = Killed()
    for number in range(MAX_ATTEMPTS + 2):
        with pytest.raises(Killed):
            place.request()
        assert place.snapshots.attempts == number + 1
        maintenance.interrupt(place.collection, place.coordination)
    assert place.errors() == []


def test_a_retry_by_a_user_ends_the_pause_of_a_failed_snapshot(place: Place) -> None:
    """A user who has made room need not wait for the end of the pause."""
    for _ in range(MAX_ATTEMPTS):
        place.request()
        place.time += MAX_PAUSE_S
    place.request()  # starts a pause
    failed = place.failures.list()
    place.snapshots.error = None
    requested = Requested(place)
    maintenance.request_again(failed, requested, place.coordination)
    assert requested.collections == [place.collection]
    place.request()
    assert place.snapshots.load(place.collection)


def test_a_user_ends_the_pause_of_another_process(place: Place, redis_server: RedisProcess) -> None:
    """The query service receives the retry, while the claim belongs to a worker."""
    server = RedisServer(redis_server.url)
    worker, query, next_worker = (
        replace(place.coordination, claims=RedisClaims(server)) for _ in range(3)
    )
    place.snapshots.error = StoreRefusedError("It is too large.")
    maintenance.keep_keywords(place.collection, store=place.store, coordination=worker)
    assert place.errors() == ["It is too large."]
    place.snapshots.error = None
    maintenance.request_again(place.failures.list(), Requested(place), query)
    maintenance.keep_keywords(place.collection, store=place.store, coordination=next_worker)
    assert place.snapshots.load(place.collection)


def test_a_refused_collection_is_listed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebuild that cannot begin is listed with the reason until one can."""

    def refuse(*_: object) -> None:
        raise StoreRefusedError("Strict mode allows no more collections.")

    def begin(generation: int | None = 2) -> None:
        maintenance.begin(CONFIGURATION, generation, writer=place.writer, failures=place.failures)

    with monkeypatch.context() as patch:
        patch.setattr(EdgeStore, "create", refuse)
        begin()
    assert place.errors() == ["Strict mode allows no more collections."]
    begin(None)  # the coordinator's own request, for an existing collection, changes nothing
    assert place.errors() == ["Strict mode allows no more collections."]
    requested = Requested(place)
    maintenance.request_again(place.failures.list(), requested, place.coordination)
    assert requested.work()
    assert place.errors() == []
    assert place.store.alias(next_alias(NAMESPACE, CONFIGURATION)) != place.collection


def test_a_rebuild_that_cannot_begin_now_begins_later(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rebuild of a user is kept and repeated; a request of the coordinator is dropped."""
    monkeypatch.setattr(in_process_queue, "LATER_S", 0.0)
    queue = InProcessQueue(place.writer, place.coordination)

    def fail(*_: object) -> None:
        raise StoreError("The disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(EdgeStore, "create", fail)
        for generation in (2, None):
            queue.begin(f"{generation}".rjust(16, "0"), generation)
            with pytest.raises(StoreError, match="full"):
                queue.work()
        with pytest.raises(StoreError, match="full"):
            queue.work()
    assert queue.work()
    assert not queue.work()
    assert any("0000000000000002" in name for name in place.store.collections())


def test_a_save_waits_only_for_a_small_part_of_a_build(place: Place) -> None:
    """A batch has as many texts as take half a second, even if they belong to few items."""
    queue = InProcessQueue(place.writer, place.coordination)
    body = "".join(f"## Part {n}\n\n{'Tie a knot. ' * 100}\n" for n in range(40))
    built = [skill(f"long{n}", body=body) for n in range(32)]
    for job in jobs(place.collection, 1, built, []):
        queue.submit(job, QueueName.BUILDS)
    waiting = queue.waiting()["builds"]
    assert queue.work()
    assert queue.waiting()["builds"] == waiting - 1
    queue.submit(
        Job(id="s", collection=place.collection, revision=2, items=(skill("saved"),)),
        QueueName.SAVES,
    )
    assert queue.work()
    assert queue.waiting() == {"saves": 0, "builds": waiting - 1}


def test_a_snapshot_is_dropped_before_a_write(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed during the write leaves no snapshot that lacks its items."""
    place.snapshots.error = None
    place.snapshots.save(place.collection, b"older", {})
    found = []
    monkeypatch.setattr(
        place.writer, "write", lambda _: found.append(place.snapshots.load(place.collection))
    )
    queue = InProcessQueue(place.writer, place.coordination)
    queue.submit(place.job("b"), QueueName.SAVES)
    assert queue.work()
    assert found == [None]


def test_a_snapshot_stored_during_a_write_is_dropped(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search opened at that time stores an index that lacks the item being written."""
    queue = InProcessQueue(place.writer, place.coordination)
    place.snapshots.error = None
    write = place.writer.write

    def writing(todo: Sequence[Job]) -> None:
        with place.store.open(place.collection) as collection:
            KeywordFeed(collection, place.coordination).open(is_shared=False)
        assert place.snapshots.load(place.collection)
        write(todo)

    monkeypatch.setattr(place.writer, "write", writing)
    saved = Job(id="s", collection=place.collection, revision=2, items=(skill("saved"),))
    queue.submit(saved, QueueName.SAVES)
    assert queue.work()
    assert place.snapshots.load(place.collection) is None


def test_the_end_of_a_server_interrupts_a_batch(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job does not count as failed, and the next server sends it again."""
    begun = threading.Event()

    def embed(*_: object) -> None:
        begun.set()
        check = checkpoint()
        while True:
            check()
            time.sleep(0.01)

    monkeypatch.setattr(WordsEngine, "embed_texts", embed)
    with InProcessQueue(place.writer, place.coordination) as queue:
        queue.submit(place.job("b"), QueueName.SAVES)
        assert begun.wait(60)
    assert place.errors() == []
    with place.store.open(place.collection) as collection:
        assert [state.item for state in collection.states()] == ["team/a"]


def test_an_idle_server_frees_memory_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is freed after the last job, and again only after another job."""
    monkeypatch.setattr(in_process_queue, "RELEASE_AFTER_S", 0.05)
    done: list[str] = []
    monkeypatch.setattr(WordsEngine, "free_memory", lambda _: done.append("freed"))

    with InProcessQueue(
        place.writer, place.coordination, before_write=lambda _: done.append("job")
    ) as queue:
        queue.submit(place.job("b"), QueueName.SAVES)
        until(lambda: done == ["job", "freed"])
        time.sleep(0.2)
        queue.submit(place.job("c"), QueueName.SAVES)
        until(lambda: len(done) == 4)
        time.sleep(0.2)
    assert done == ["job", "freed", "job", "freed"]


def test_no_snapshot_is_stored_between_the_jobs_of_a_process(place: Place) -> None:
    """Its search has the keyword index already, and reading all items would delay the next save."""
    place.snapshots.error = None
    queue = InProcessQueue(place.writer, place.coordination)
    queue.keep_keywords(place.collection)
    queue.submit(place.job("b"), QueueName.SAVES)
    while queue.work():
        assert place.snapshots.load(place.collection) is None
    assert not place.snapshots.attempts


def test_a_server_reports_why_its_saves_wait(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report of the embedded server is like the report of a team's worker."""
    monkeypatch.setattr(in_process_queue, "RETRY_INTERVAL_S", 0.0)

    def refuse(*_: object) -> None:
        raise StoreError("The disk is full.")

    def errors() -> list[object]:
        return [one["error"] for one in place.coordination.status.reports().values()]

    with InProcessQueue(place.writer, place.coordination) as queue:
        queue.submit(place.job("b"), QueueName.SAVES)
        until(queue.is_idle)
        assert errors() == []
        with monkeypatch.context() as patch:
            patch.setattr(EdgeStore, "open", refuse)
            queue.submit(place.job("c"), QueueName.SAVES)
            until(lambda: errors() == ["The disk is full."])
        queue.submit(place.job("d"), QueueName.SAVES)
        until(lambda: errors() == [""])


def test_a_queue_is_not_idle_between_taking_a_job_and_doing_it(place: Place) -> None:
    """Otherwise a search graph would be built just before the job changes the collection."""
    queue = InProcessQueue(place.writer, place.coordination)
    queue.submit(place.job("b"), QueueName.SAVES)
    work = queue._due()
    assert work is not None
    assert not queue.is_idle()
    work()
    assert queue.is_idle()


def test_no_process_stores_a_snapshot_between_its_drop_and_the_write(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that opens the collection as soon as possible finds the items of the write."""

    def searched() -> set[str]:
        """The ids that another process finds; it stores a snapshot if it has to build the index."""
        with EdgeStore(tmp_path, timeout=0.0).open(place.collection) as collection:
            feed = KeywordFeed(collection, in_process(tmp_path))
            feed.open()
            return {entry.id for entry in feed.index.all()}

    def drop(snapshots: FileSnapshots, collection: str) -> None:
        dropped(snapshots, collection)
        with contextlib.suppress(StoreBusyError):
            searched()

    place.snapshots.error = None
    assert searched() == {"team/a"}
    queue = InProcessQueue(place.writer, place.coordination)
    job = Job(id="2", collection=place.collection, revision=2, items=(skill("b"),))
    queue.submit(job, QueueName.SAVES)
    dropped, write = FileSnapshots.drop, place.writer.write
    monkeypatch.setattr(FileSnapshots, "drop", drop)
    found = []

    def writing(todo: Sequence[Job]) -> None:
        found.append(place.snapshots.load(place.collection))
        write(todo)

    monkeypatch.setattr(place.writer, "write", writing)
    assert queue.work()
    assert found == [None]
    assert searched() == {"team/a", "team/b"}
