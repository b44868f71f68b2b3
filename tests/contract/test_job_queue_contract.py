"""The contract of ``JobQueue``: in this process, on Celery, and delivered by the test."""

import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import msgspec
import pytest
from typing_extensions import override

from repertory.catalogue.item import Item, Kind, item_key
from repertory.coordination.deltas import REMOVED
from repertory.coordination.ports import Coordination, in_process, on_redis
from repertory.coordination.redis_server import RedisServer
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.load import load_engine
from repertory.errors import StoreError
from repertory.index.cache import SqliteVectorCache
from repertory.index.edge import EdgeStore
from repertory.index.keywords.snapshot import unpack
from repertory.index.qdrant import QdrantStore
from repertory.index.vectors import VectorStore
from repertory.indexing.celery_queue import CeleryQueue
from repertory.indexing.collection_names import collection_name, generation_of, next_alias
from repertory.indexing.in_process_queue import InProcessQueue
from repertory.indexing.job import Job, JobQueue, QueueName
from repertory.indexing.writer import Writer
from repertory.values import NAMESPACE
from tests.support.lossy_queue import LossyQueue
from tests.support.model_folders import write_model
from tests.support.qdrant import QdrantProcess
from tests.support.redis_server import RedisProcess
from tests.support.waiting import until
from tests.support.worker import WorkerProcess

NEVER = 1_000.0  # seconds of delay that no test waits for

_numbers = itertools.count(1)


class Place(ABC):
    """A queue, its worker, and the stores that the worker writes to.

    Attributes:
        in_order: Whether the worker keeps the order of the queues and delays.
    """

    in_order = True

    def __init__(
        self, queue: JobQueue, store: VectorStore, coordination: Coordination, slug: str
    ) -> None:
        self.queue = queue
        self.store = store
        self.coordination = coordination
        self._slug = slug

    @abstractmethod
    def working(self) -> AbstractContextManager[object]:
        """Run the worker in this context."""

    def configuration(self) -> str:
        """The hash of a configuration that was never used."""
        return f"{next(_numbers):016x}"

    def name(self, configuration: str, generation: int = 1) -> str:
        """The name of a collection of a configuration."""
        return collection_name(NAMESPACE, configuration, self._slug, generation)

    def collection(self) -> str:
        """A new, empty collection."""
        name = self.name(self.configuration())
        self.store.create(name, 384).close()
        return name

    def target(self, configuration: str) -> str | None:
        """The collection that a configuration's items are written to."""
        return self.store.alias(next_alias(NAMESPACE, configuration))

    def items(self, collection: str) -> set[str]:
        """The ids of the items of a collection."""
        with self.store.open(collection) as opened:
            return {state.item for state in opened.states()}

    def wait(self, is_so: Callable[[], object]) -> None:
        """Wait until a condition holds."""
        until(is_so)


class InProcess(Place):
    """The queue of the embedded server."""

    queue: InProcessQueue

    @override
    def working(self) -> AbstractContextManager[object]:
        return self.queue


class OneShot(InProcess):
    """The queue of a one-shot command, which works on the caller's thread."""

    @override
    def working(self) -> AbstractContextManager[object]:
        return nullcontext()

    @override
    def wait(self, is_so: Callable[[], object]) -> None:
        super().wait(lambda: not self.queue.work() and is_so())


class OnCelery(Place):
    """The queue of a team: a real Redis, and a worker in a separate process."""

    def __init__(
        self, worker: Callable[[], WorkerProcess], redis_url: str, qdrant_url: str, slug: str
    ) -> None:
        server = RedisServer(redis_url)
        super().__init__(CeleryQueue(redis_url), QdrantStore(qdrant_url), on_redis(server), slug)
        self._worker = worker

    @override
    def working(self) -> AbstractContextManager[object]:
        return self._worker()


class ByHand(Place):
    """The queue of tests, without order: the test delivers jobs; other requests run at once."""

    in_order = False
    queue: LossyQueue

    @override
    @contextmanager
    def working(self) -> Iterator[None]:
        self._deliver()
        yield
        self._deliver()

    @override
    def wait(self, is_so: Callable[[], object]) -> None:
        self._deliver()
        assert is_so()

    def _deliver(self) -> None:
        while self.queue.jobs:
            self.queue.deliver(-1)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model."""
    return write_model(tmp_path_factory.mktemp("model") / "encoder")


@pytest.fixture(scope="module")
def engine(model: Path) -> EmbeddingEngine:
    """The engine of the tiny model."""
    return load_engine(str(model), "cpu", model.parent)


@pytest.fixture(scope="module")
def qdrant() -> Iterator[QdrantProcess]:
    """A Qdrant server for all tests of this module."""
    with QdrantProcess() as server:
        yield server


@pytest.fixture(params=["in process", "one shot", "celery", "by hand"])
def place(
    request: pytest.FixtureRequest, engine: EmbeddingEngine, model: Path, tmp_path: Path
) -> Iterator[Place]:
    """Each adapter in turn, with nothing in its queues."""
    slug = engine.model.slug
    if request.param == "celery":
        redis_url = request.getfixturevalue("redis_server").url
        qdrant_url = request.getfixturevalue("qdrant").url
        settings = {
            "REPERTORY_DATA_DIR": str(tmp_path / "data"),
            "REPERTORY_REDIS_URL": redis_url,
            "REPERTORY_QDRANT_URL": qdrant_url,
            "REPERTORY_SEARCH_MODEL": str(model),
        }
        yield OnCelery(
            lambda: WorkerProcess(tmp_path / "worker", settings), redis_url, qdrant_url, slug
        )
        return
    store, coordination = EdgeStore(tmp_path), in_process(tmp_path)
    cache = SqliteVectorCache(tmp_path / "vectors.sqlite", engine.model.dimension)
    writer = Writer(
        store=store,
        engine=lambda: engine,
        cache=lambda _model: cache,
        coordination=coordination,
        active=NAMESPACE,
        notify=print,
    )
    if request.param == "by hand":
        yield ByHand(LossyQueue(writer), store, coordination, slug)
    else:
        kind = InProcess if request.param == "in process" else OneShot
        yield kind(InProcessQueue(writer, coordination), store, coordination, slug)
    cache.close()


def item(name: str, **fields: object) -> Item:
    """An item."""
    plain = {"id": f"s/{name}", "kind": Kind.SKILL, "name": name, "source": "s"}
    return Item(**(plain | {"description": f"Of {name}."} | fields))  # type: ignore[arg-type] # by name


def job(collection: str, *names: str, revision: int = 1, removed: tuple[str, ...] = ()) -> Job:
    """A job that writes and removes items of these names."""
    return Job(
        id=f"job-{next(_numbers)}",
        collection=collection,
        revision=revision,
        items=tuple(item(name) for name in names),
        removed=tuple(f"s/{name}" for name in removed),
    )


def test_a_job_is_done_and_announced(place: Place) -> None:
    """A job writes and removes its items and announces their hashes."""
    name = place.collection()
    before = place.coordination.deltas.position(name)
    place.queue.submit(job(name, "a", "b"), QueueName.BUILDS)
    with place.working():
        place.wait(lambda: place.items(name) == {"s/a", "s/b"})
        place.queue.submit(job(name, "c", revision=2, removed=("a",)), QueueName.SAVES)
        place.wait(lambda: place.items(name) == {"s/b", "s/c"})
        place.wait(lambda: "s/c" in place.coordination.deltas.since(name, before).hashes)
    delta = place.coordination.deltas.since(name, before)
    assert delta.hashes == {
        "s/a": REMOVED,
        "s/b": item("b").metadata_hash(),
        "s/c": item("c").metadata_hash(),
    }


def test_an_item_is_written_unchanged(place: Place) -> None:
    """Items are unchanged, also with keys that Celery reserves and unusual characters."""
    name = place.collection()
    schema = {"properties": {"__type__": "uuid", "__value__": 1}, "__type__": "x", "__value__": "y"}
    sent = item("a", kind=Kind.TOOL, input_schema=schema, body="é\0 “text” 😀", tags=("x", "ü"))
    place.queue.submit(Job(id="odd", collection=name, revision=1, items=(sent,)), QueueName.SAVES)
    with place.working():
        place.wait(lambda: place.items(name))
    with place.store.open(name) as collection:
        (record,) = collection.records([item_key(sent.id)]).values()
    assert msgspec.convert(record, Item) == sent


def test_a_job_may_be_repeated(place: Place) -> None:
    """A repeated job and a late job of an older revision change nothing."""
    name = place.collection()
    newer = job(name, "a", revision=2)
    late = Job(id="late", collection=name, revision=1, items=(item("a", body="older"),), removed=())
    for one in (newer, newer, late, job(name, "last")):
        place.queue.submit(one, QueueName.SAVES)
    with place.working():
        place.wait(lambda: place.items(name) == {"s/a", "s/last"})
        place.wait(lambda: not any(place.queue.waiting().values()))
    with place.store.open(name) as collection:
        states = {state.item: state.metadata_hash for state in collection.states()}
    assert states == {one: item(one[2:]).metadata_hash() for one in ("s/a", "s/last")}


def test_jobs_wait_in_their_queue(place: Place) -> None:
    """Waiting and delayed jobs are counted in their queue; other requests are not counted."""
    name = place.collection()
    assert place.queue.waiting() == {"saves": 0, "builds": 0}
    place.queue.submit(job(name, "a"), QueueName.SAVES)
    place.queue.submit(job(name, "b"), QueueName.BUILDS)
    place.queue.submit(job(name, "c"), QueueName.BUILDS, delay=NEVER)
    place.queue.begin(place.configuration())
    place.queue.keep_keywords(name)
    assert place.queue.waiting() == {"saves": 1, "builds": 2}
    with place.working():
        place.wait(lambda: place.queue.waiting()["saves"] == 0)


def test_a_delayed_job_is_not_done_early(place: Place) -> None:
    """A delayed job is done after its delay, and jobs without delay go first."""
    if not place.in_order:
        pytest.skip("this queue has no delays")
    name = place.collection()
    place.queue.submit(job(name, "never"), QueueName.SAVES, delay=NEVER)
    place.queue.submit(job(name, "soon"), QueueName.SAVES, delay=0.5)
    place.queue.submit(job(name, "now"), QueueName.SAVES)
    with place.working():
        place.wait(lambda: place.items(name) == {"s/now", "s/soon"})


def test_a_begun_collection_becomes_the_target(place: Place) -> None:
    """``begin`` uses the newest generation or creates the first, or creates a given one."""
    configuration = place.configuration()
    place.queue.begin(configuration)
    place.queue.begin(configuration)
    with place.working():
        place.wait(lambda: place.target(configuration))
        assert place.target(configuration) == place.name(configuration, 1)
        place.queue.begin(configuration, 3)
        place.wait(lambda: place.target(configuration) == place.name(configuration, 3))
        other = place.configuration()
        place.queue.begin(configuration, 3)
        place.queue.begin(configuration)
        place.queue.begin(other)
        place.wait(lambda: place.target(other))
    assert place.target(configuration) == place.name(configuration, 3)
    own = [name for name in place.store.collections() if f"_{configuration}_" in name]
    assert sorted(map(generation_of, own)) == [1, 3]


def test_a_snapshot_of_the_keywords_is_stored(place: Place) -> None:
    """``keep_keywords`` stores the keyword index of a collection; a missing one is ignored."""
    if isinstance(place, InProcess):
        pytest.skip("the search in the same process stores the snapshot")
    name = place.collection()
    place.queue.submit(job(name, "a", "b"), QueueName.SAVES)
    with place.working():
        place.wait(lambda: place.items(name))
        place.wait(lambda: place.queue.waiting()["saves"] == 0)
        place.queue.keep_keywords(place.name(place.configuration()))
        place.queue.keep_keywords(name)
        place.wait(lambda: place.coordination.snapshots.load(name))
    stored = unpack(*(place.coordination.snapshots.load(name) or ()))
    assert {entry.id for entry in stored.keywords.all()} == {"s/a", "s/b"}


def test_saves_go_first_then_requests_then_builds(place: Place) -> None:
    """A save is done before the request that creates its collection, and a build after it."""
    if not place.in_order:
        pytest.skip("this queue has no order")
    configuration, last = place.configuration(), place.collection()
    name = place.name(configuration)
    place.queue.submit(job(name, "build"), QueueName.BUILDS)
    place.queue.submit(job(last, "last"), QueueName.BUILDS)
    place.queue.begin(configuration)
    place.queue.submit(job(name, "save"), QueueName.SAVES)
    with place.working():
        place.wait(lambda: place.items(last))
    assert place.items(name) == {"s/build"}


def test_threads_submit_together(place: Place) -> None:
    """No job is lost when many threads submit at once."""
    name = place.collection()
    names = [[f"{thread}-{number}" for number in range(5)] for thread in range(4)]

    def submit(own: list[str]) -> None:
        for one in own:
            place.queue.submit(job(name, one), QueueName.SAVES)

    threads = [threading.Thread(target=submit, args=(own,)) for own in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert place.queue.waiting()["saves"] == 20
    with place.working():
        place.wait(lambda: len(place.items(name)) == 20)


CALLS: dict[str, Callable[[JobQueue], object]] = {
    "submit": lambda queue: queue.submit(job("c", "a"), QueueName.SAVES),
    "begin": lambda queue: queue.begin("0123456789abcdef"),
    "keep_keywords": lambda queue: queue.keep_keywords("c"),
    "waiting": lambda queue: queue.waiting(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_unavailable_queue_is_a_store_error(call: Callable[[JobQueue], object]) -> None:
    """Every method raises without showing the password, and works again after a restart.

    Queues in this process are always available.
    """
    with RedisProcess(password="secret") as server:
        queue = CeleryQueue(server.url)
        call(queue)
        server.kill()
        # Without `as`: a stored error would keep the queue, and its sockets open, until the end.
        with pytest.raises(StoreError, match=r"^(?!.*secret).*cannot be reached"):
            call(queue)
        server.restart()
        call(queue)
