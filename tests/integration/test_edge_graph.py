"""The search graph of the embedded store is built during searches and writes."""

import errno
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import qdrant_edge as engine

from repertory.errors import StoreBusyError, StoreError
from repertory.index import edge_collection, edge_files, edge_graph, edge_shard, layout
from repertory.index.edge import EdgeStore
from repertory.index.edge_collection import EdgeCollection
from repertory.index.vectors import NO_FILTER, Filter
from repertory.system import python_process
from repertory_embedded import graphs
from repertory_embedded.graphs import building_graphs
from tests.support.points import DIMENSION, direction, item_of, point
from tests.support.waiting import TIMEOUT_S, until

NAME = "repertory_x"
POINTS = 600
reads_ahead = pytest.mark.skipif(  # macOS and Windows have no read-ahead request
    sys.platform != "linux", reason="Only Linux says which file a request is for."
)
FEWEST_KB = 4  # vectors of this size get a graph in these tests: 256 points

BUILDER = """
import sys, threading
from pathlib import Path
from repertory.index import layout
from repertory.index.edge import EdgeStore
from tests.support.points import point
layout.GRAPH_FROM = 0
with EdgeStore(Path(sys.argv[1])).open(sys.argv[2]) as collection:
    for number in range(1_000):
        collection.upsert([point(str(number))])
        print(number, flush=True)
        collection.build_graph(threading.Event())
"""

DELETER = """
import os, signal, sys
from pathlib import Path
from repertory.index.edge import EdgeStore
collection = EdgeStore(Path(sys.argv[1])).open(sys.argv[2])
collection.delete_items([f"item {number}" for number in range(int(sys.argv[3]))], before=2)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EdgeStore:
    """An empty store that builds graphs for few points."""
    monkeypatch.setattr(layout, "GRAPH_FROM", FEWEST_KB)
    return EdgeStore(tmp_path)


@pytest.fixture
def collection(store: EdgeStore) -> EdgeCollection:
    """A collection with many points and no graph."""
    made = store.create(NAME, DIMENSION)
    made.upsert([point(f"item {number}", direction(1, number)) for number in range(POINTS)])
    return made


def ready(collection: EdgeCollection) -> int:
    """The number of points that graphs contain."""
    with collection._shard.using() as shard:
        return shard.info().indexed_vectors_count


def items(collection: EdgeCollection) -> set[str]:
    """The ids of the items of a collection."""
    return {state.item for state in collection.states()}


def folders(tmp_path: Path) -> set[str]:
    """The names of the store's folders."""
    return {path.name for path in (tmp_path / "collections").iterdir() if path.is_dir()}


def meanwhile(
    monkeypatch: pytest.MonkeyPatch, happens: Callable[[Path], None], *, builds: bool = True
) -> None:
    """Run a function after the files were copied and before the graph is built on the copy."""
    build = edge_graph.build

    def with_more(copy: Path, stopping: threading.Event) -> bool:
        happens(copy)
        return build(copy, stopping) if builds else True

    monkeypatch.setattr(edge_graph, "build", with_more)


def test_writes_during_a_build_are_kept(
    store: EdgeStore, collection: EdgeCollection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writes and deletions come from two openings, and survive closing and opening."""
    second = store.open(NAME)

    def write(_: Path) -> None:
        assert collection.search(direction(1, 7), 1)
        collection.upsert([point("more", direction(1))])
        second.delete_items(["item 0", "item 1"], before=2)

    meanwhile(monkeypatch, write)
    assert collection.build_graph(threading.Event())
    wanted = {"more", *(f"item {number}" for number in range(2, POINTS))}
    assert items(collection) == items(second) == wanted
    assert ready(collection) >= POINTS - 2
    assert folders(tmp_path) == {NAME}
    assert not collection.build_graph(threading.Event())  # too few points are left
    collection.upsert([point("later", direction(1))])
    for one in (collection, second):
        one.close()
    with store.open(NAME) as again:
        assert items(again) == {*wanted, "later"}
        assert ready(again) >= POINTS - 2


def test_deleted_points_free_their_space(
    collection: EdgeCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This includes an index too small for a graph, whose points are replaced repeatedly."""
    monkeypatch.setattr(layout, "GRAPH_FROM", 8_000)
    monkeypatch.setattr(edge_collection, "WRITTEN_FROM", 4 * POINTS)

    def size() -> int:
        return sum(one.stat().st_blocks for one in collection._path.glob("segments/**/*"))

    for revision in range(2, 5):
        names = [f"{revision} {number}" for number in range(POINTS)]
        assert not collection.build_graph(threading.Event())
        points = (point(one, direction(1), record={"a": os.urandom(1_000).hex()}) for one in names)
        collection.upsert([*points])
        collection.delete_items([*items(collection).difference(names)], 2)
    collection._shard.flush()
    before = size()
    assert collection.build_graph(threading.Event())
    assert collection.count() == POINTS
    assert size() < before
    assert not collection.build_graph(threading.Event())


def test_points_found_by_a_graph_are_scored_by_the_original_vectors(
    collection: EdgeCollection,
) -> None:
    """The quantized vectors only select candidates, among them most of the nearest points."""
    wanted = direction(1, 7)
    every = {one.key: one.score for one in collection.search(wanted, POINTS)}
    assert collection.build_graph(threading.Event())
    assert [*collection._path.glob("segments/*/vector_storage/quantized.*")]
    found = {one.key: one.score for one in collection.search(wanted, 20)}
    assert found == pytest.approx({key: every[key] for key in found}, abs=1e-6)
    assert [*found.values()] == sorted(found.values(), reverse=True)
    assert len({*found}.intersection([*every][:20])) >= 15


def test_a_graph_without_quantized_vectors_is_searched(
    store: EdgeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions did not quantize."""
    wanted = engine.EdgeVectorParams

    def of_before(
        *,
        size: int,
        distance: engine.Distance,
        memory: engine.Memory,
        quantization_config: engine.ScalarQuantizationConfig,
    ) -> engine.EdgeVectorParams:
        assert quantization_config
        return wanted(size=size, distance=distance, memory=memory)

    monkeypatch.setattr(engine, "EdgeVectorParams", of_before)
    collection = store.create(NAME, DIMENSION)
    collection.upsert([point(f"item {number}", direction(1, number)) for number in range(POINTS)])
    before = collection.search(direction(1, 7), 5)
    assert collection.build_graph(threading.Event())
    assert not [*collection._path.glob("segments/*/vector_storage/quantized.*")]
    assert collection.search(direction(1, 7), 5) == before


def test_rewritten_points_get_a_graph_again(collection: EdgeCollection) -> None:
    """The engine still counts points that were deleted from a graph."""
    assert collection.build_graph(threading.Event())
    numbers = range(POINTS)
    again = [point(f"item {one}", direction(1, one), revision=2) for one in numbers]
    collection.upsert(again[: POINTS // 3])  # too few for another build
    assert not collection.build_graph(threading.Event())
    collection.upsert(again)
    assert collection.build_graph(threading.Event())
    assert not collection.build_graph(threading.Event())
    collection.delete_items([f"item {one}" for one in numbers], before=3)
    assert not collection.build_graph(threading.Event())  # there are no points
    collection.upsert([point(f"new {one}", direction(1, one)) for one in numbers])
    assert collection.build_graph(threading.Event())
    assert not collection.build_graph(threading.Event())


def test_all_points_are_found_after_most_of_a_graph_was_deleted(
    store: EdgeStore, collection: EdgeCollection
) -> None:
    """No path in the graph may lead to them, so all vectors are compared."""
    assert collection.build_graph(threading.Event())
    left = {f"item {one}" for one in range(POINTS - 30, POINTS)}
    with store.open(NAME) as writer:
        writer.delete_items([f"item {one}" for one in range(POINTS - 30)], before=2)

    def found(where: Filter = NO_FILTER) -> set[str]:
        return {item_of(one) for one in collection.search(direction(1, POINTS - 9), 50, where)}

    assert found() == found(Filter(kinds=("tool",))) == left
    collection.close()
    collection = store.open(NAME)
    assert found() == left


def test_all_points_are_found_after_a_killed_process_deleted_most_of_a_graph(
    store: EdgeStore, collection: EdgeCollection, tmp_path: Path
) -> None:
    """The files of the graph do not record the deletions yet."""
    assert collection.build_graph(threading.Event())
    collection.close()
    command = [sys.executable, "-c", DELETER, str(tmp_path), NAME, str(POINTS - 30)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    with store.open(NAME) as opened:
        found = {item_of(one) for one in opened.search(direction(1, POINTS - 9), 50)}
    assert found == {f"item {one}" for one in range(POINTS - 30, POINTS)}


def test_a_graph_is_rebuilt_without_many_deleted_points(store: EdgeStore) -> None:
    """It is rebuilt once, and only if enough points were deleted."""
    numbers = range(2 * POINTS)
    with store.create(NAME, DIMENSION) as collection:
        collection.upsert([point(f"item {one}", direction(1, one)) for one in numbers])
        assert collection.build_graph(threading.Event())
        collection.delete_items([f"item {one}" for one in numbers[: POINTS // 2]], before=2)
        assert not collection.build_graph(threading.Event())
        collection.delete_items([f"item {one}" for one in numbers[:POINTS]], before=2)
        assert collection.build_graph(threading.Event())
        assert ready(collection) == collection.count() == POINTS
        assert not collection.build_graph(threading.Event())


def test_the_files_are_measured_under_the_lock(
    collection: EdgeCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write may add and remove files, so it comes before or after the measurement."""
    measure = edge_collection._size
    locked: list[bool] = []

    def size(directory: Path) -> int:
        locked.append(collection._shard._using.locked())
        return measure(directory)

    monkeypatch.setattr(edge_collection, "_size", size)
    assert collection.build_graph(threading.Event())
    assert locked
    assert all(locked)


def test_nothing_is_flushed_again_without_a_write(
    store: EdgeStore, collection: EdgeCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flush blocks all threads, and the server checks for new points every ten seconds."""
    flushed: list[Path] = []
    monkeypatch.setattr(edge_shard, "narrow", flushed.append)
    monkeypatch.setattr(layout, "GRAPH_FROM", 1_000)
    for number in (1, 2):
        collection.upsert([point("another", revision=number)])
        for _ in range(3):
            with store.open(NAME) as again:
                assert not again.build_graph(threading.Event())
        assert len(flushed) == number


@reads_ahead
def test_the_vectors_of_a_graph_are_read_ahead(
    store: EdgeStore, collection: EdgeCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a build and after opening, each file is read from its start, up to the limit."""
    asked: list[tuple[str, int]] = []

    def advise(handle: int, start: int, length: int, _: int) -> None:
        assert length == 1_000
        asked.append((Path(f"/proc/self/fd/{handle}").readlink().name, start))

    def steps(name: str, size: int) -> list[tuple[str, int]]:
        """All requests for a file, whose header takes a few more bytes."""
        return [(name, 1_000 * step) for step in range(size // 1_000 + 1)]

    monkeypatch.setattr(os, "posix_fadvise", advise)
    monkeypatch.setattr(edge_files, "_STEP", 1_000)
    assert collection.build_graph(threading.Event())
    vectors = steps("matrix.dat", POINTS * DIMENSION * 4)
    numbers = [one for one in asked if one[0] == "quantized.data"]
    assert asked == numbers + vectors
    assert numbers[:3] == steps("quantized.data", 2_000)
    collection.close()
    asked.clear()
    store.open(NAME).close()
    assert asked == numbers + vectors
    asked.clear()
    monkeypatch.setattr(edge_files, "READ_AHEAD", 3_000)
    store.open(NAME).close()
    assert asked == numbers[:3] + vectors[:3]


@reads_ahead
def test_a_collection_opens_without_read_ahead(
    store: EdgeStore, collection: EdgeCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operating system may forbid the request."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSYS, "not here")

    assert collection.build_graph(threading.Event())
    collection.close()
    monkeypatch.setattr(os, "posix_fadvise", refuse)
    with store.open(NAME) as again:
        assert again.search(direction(1, 7), 5)


def test_searches_and_writes_succeed_during_a_build(
    collection: EdgeCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every search finds its points, although the files are replaced twice."""
    monkeypatch.setattr(edge_shard, "MAX_SINCE", 100_000)  # allow many writes on a slow machine
    stopping = threading.Event()

    def search() -> int:
        count = 0
        while not stopping.is_set():
            assert len(collection.search(direction(1, 7), 5)) == 5
            count += 1
            time.sleep(0.01)  # leave processor time for the build, which has the lowest priority
        return count

    def write() -> int:
        count = 0
        while not stopping.is_set():
            collection.upsert([point(f"more {count}", direction(1))])
            count += 1
            time.sleep(0.05)
        return count

    with ThreadPoolExecutor(3) as threads:
        searches = [threads.submit(search) for _ in range(2)]
        writes = threads.submit(write)
        try:
            with collection._shard.using() as shard:
                first = shard
            assert collection.build_graph(threading.Event())
            assert collection._shard.rebuild(lambda _: True)
        finally:
            stopping.set()
        with collection._shard.using() as shard:
            assert shard is not first
        assert all(one.result() for one in searches)
        assert collection.count() == POINTS + writes.result()


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.3])
def test_a_process_killed_during_a_build_loses_nothing(
    store: EdgeStore, tmp_path: Path, seconds: float
) -> None:
    """It may be copying, building or replacing files."""
    store.create(NAME, DIMENSION).close()
    command = [sys.executable, "-c", BUILDER, str(tmp_path), NAME]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as builder:
        assert builder.stdout
        [builder.stdout.readline() for _ in range(2)]
        time.sleep(seconds)
        builder.send_signal(signal.SIGKILL)
        done = max([1, *map(int, builder.stdout)])
    with store.open(NAME) as collection:
        assert items(collection) >= {str(number) for number in range(done + 1)}
        assert len(collection.search(direction(1), 2)) == 2
        collection.upsert([point("later")])
    store.create("other", DIMENSION).close()
    assert folders(tmp_path) == {NAME, "other"}


@pytest.mark.parametrize("is_there", [False, True])
def test_an_unfinished_replacement_is_repaired(
    store: EdgeStore, collection: EdgeCollection, tmp_path: Path, *, is_there: bool
) -> None:
    """The replaced files are used if there are no new ones, and otherwise removed."""
    collection.close()
    store.set_alias("searched", NAME)
    path = tmp_path / "collections" / NAME
    replaced = path.with_name(f".replaced-{NAME}")
    path.rename(replaced)
    if is_there:
        other = EdgeStore(tmp_path / "other")
        other.create(NAME, DIMENSION).close()
        (tmp_path / "other" / "collections" / NAME).rename(path)
    assert store.collections() == [NAME]
    assert store.alias("searched") == NAME
    with store.open(NAME) as again:
        assert again.count() == (0 if is_there else POINTS)
    assert folders(tmp_path) == {NAME}
    store.drop(NAME)
    assert store.collections() == []


def test_a_collection_is_dropped_during_an_unfinished_replacement(
    store: EdgeStore, collection: EdgeCollection, tmp_path: Path
) -> None:
    """The replaced files are removed, too."""
    collection.close()
    path = tmp_path / "collections" / NAME
    path.rename(path.with_name(f".replaced-{NAME}"))
    store.drop(NAME)
    assert folders(tmp_path) == set()
    with store.create(NAME, DIMENSION) as other:
        assert other.count() == 0


def test_too_many_writes_end_a_build(
    collection: EdgeCollection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writes are kept, and the next build succeeds."""
    monkeypatch.setattr(edge_shard, "MAX_SINCE", 1)
    writes = iter([["a", "b"]])

    def write(_: Path) -> None:
        for one in next(writes, []):
            collection.upsert([point(one)])

    meanwhile(monkeypatch, write)
    assert not collection.build_graph(threading.Event())
    assert {"a", "b"} <= items(collection)
    assert ready(collection) == 0
    assert folders(tmp_path) == {NAME}
    assert collection.build_graph(threading.Event())
    assert {"a", "b"} <= items(collection)


def test_the_files_stay_locked_until_a_build_ends(
    collection: EdgeCollection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the collection is closed meanwhile, its files are not replaced under their next user."""
    another = EdgeStore(tmp_path, timeout=0)

    def close(_: Path) -> None:
        collection.close()
        with pytest.raises(StoreBusyError):
            another.open(NAME)

    meanwhile(monkeypatch, close, builds=False)
    assert not collection.build_graph(threading.Event())
    assert folders(tmp_path) == {NAME}
    with another.open(NAME) as again:
        assert again.count() == POINTS


def test_a_failed_build_changes_nothing(
    collection: EdgeCollection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the collection, and searches and writes use the old files."""

    def damage(copy: Path) -> None:
        (copy / "edge_config.json").write_text("?")

    with monkeypatch.context() as damaged:
        meanwhile(damaged, damage)
        with pytest.raises(StoreError, match=f"graph of .*{NAME}"):
            collection.build_graph(threading.Event())
    with monkeypatch.context() as damaged:
        meanwhile(damaged, damage, builds=False)
        with pytest.raises(StoreError, match=NAME):
            collection.build_graph(threading.Event())
    assert folders(tmp_path) == {NAME}
    collection.upsert([point("later")])
    assert len(items(collection)) == POINTS + 1


def test_a_process_that_says_much_ends(
    collection: EdgeCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last line is the reason; the process never waits until its output is read."""
    program = "raise SystemExit('word ' * 200_000 + '\\nNo room')"
    command = [sys.executable, "-c", program]
    monkeypatch.setattr(python_process, "command", lambda *_: command)
    stopping = threading.Event()
    hanging = threading.Timer(TIMEOUT_S, stopping.set)
    hanging.start()
    with pytest.raises(StoreError, match="ended with 1 and said 'No room'"):
        collection.build_graph(stopping)
    hanging.cancel()


def test_a_collection_that_fails_to_reopen_after_a_build_reopens_later(
    store: EdgeStore, collection: EdgeCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next search or write opens the new files in all openings of the collection."""
    load = edge_shard._engine_of

    def fail(_: Path) -> engine.EdgeShard:
        monkeypatch.setattr(edge_shard, "_engine_of", load)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(edge_shard, "_engine_of", fail)
    with store.open(NAME) as second:
        with pytest.raises(StoreError, match="Too many open files"):
            collection.build_graph(threading.Event())
        assert collection.count() == second.count() == POINTS
        second.upsert([point("later")])
        assert ready(collection) == POINTS


def test_a_file_that_cannot_be_copied_is_named(collection: EdgeCollection) -> None:
    """The error of copying the folder has its reason only in the errors of its files."""
    (collection._path / "link").symlink_to("nowhere")
    with pytest.raises(StoreError, match=r"cannot be used: .*link"):
        collection._shard.rebuild(lambda _: True)


def test_the_end_of_the_server_ends_a_build(collection: EdgeCollection, tmp_path: Path) -> None:
    """The building process is killed, and its files are removed."""
    stopping = threading.Event()
    stopping.set()
    assert not collection.build_graph(stopping)
    assert folders(tmp_path) == {NAME}
    assert ready(collection) == 0


def test_the_building_process_has_the_lowest_priority(
    store: EdgeStore,
    collection: EdgeCollection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Searches and saves come first. When it ends, the whole graph is on disk."""
    collection.close()
    asked: list[int] = []
    monkeypatch.setattr(os, "nice", asked.append)
    edge_graph.main(str(tmp_path / "collections" / NAME))
    assert asked == [19]
    with store.open(NAME) as again:
        assert ready(again) == again.count() == POINTS


def test_a_server_builds_only_while_no_jobs_wait(
    store: EdgeStore, collection: EdgeCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs during a build would have to be repeated on the copy."""
    monkeypatch.setattr(graphs, "INTERVAL_S", 0.01)
    answers = iter([False, False])
    with building_graphs(store, "searched", lambda: next(answers, True)):
        time.sleep(0.1)  # without an alias there is nothing to build
        store.set_alias("searched", NAME)
        until(lambda: ready(collection) >= POINTS)
    assert next(answers, None) is None


def test_a_failed_build_is_retried(
    store: EdgeStore, collection: EdgeCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The building thread survives expected and unexpected errors."""
    store.set_alias("searched", NAME)
    monkeypatch.setattr(graphs, "INTERVAL_S", 0.01)
    failures = iter([StoreError("no room"), ValueError("a bug")])

    def fail(_: Path) -> None:
        if error := next(failures, None):
            raise error

    meanwhile(monkeypatch, fail)
    with building_graphs(store, "searched", lambda: True):
        until(lambda: ready(collection) >= POINTS)
    assert next(failures, None) is None


@pytest.mark.usefixtures("collection")
def test_failing_builds_become_rare(store: EdgeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt copies the whole index, so the pauses double."""
    store.set_alias("searched", NAME)
    monkeypatch.setattr(graphs, "INTERVAL_S", 0.02)
    attempts: list[float] = []

    def fail(_: Path) -> None:
        attempts.append(time.monotonic())
        raise StoreError("no memory")

    meanwhile(monkeypatch, fail)
    with building_graphs(store, "searched", lambda: True):
        until(lambda: len(attempts) == 5)
    pauses = [later - before for before, later in itertools.pairwise(attempts)]
    assert all(pause >= 0.02 * 2 ** (number + 1) for number, pause in enumerate(pauses))


@pytest.mark.skipif(sys.platform != "linux", reason="The system has no such request.")
def test_the_building_process_ends_with_a_killed_server() -> None:
    """Its result would not be used."""
    child = (
        "import time; from repertory.index.edge_graph import end_with_parent; end_with_parent(); "
        "print(flush=True); time.sleep(600)"
    )
    parent = (
        "import subprocess, sys, time; from subprocess import PIPE; "
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], stdout=PIPE); "
        "child.stdout.readline(); print(child.pid, flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", parent]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        process = Path("/proc", server.stdout.readline().strip())
        assert process.exists()
        server.send_signal(signal.SIGKILL)
    until(lambda: not process.exists() or ") Z " in (process / "stat").read_text())
