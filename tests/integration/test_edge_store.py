"""The embedded store when processes are killed, and files are shared, damaged or read-only."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import qdrant_edge as engine
from filelock import FileLock

from repertory.catalogue.item import item_key
from repertory.errors import StoreBusyError, StoreCorruptError, StoreError
from repertory.index import layout
from repertory.index.edge import EdgeStore
from repertory.index.edge_collection import EdgeCollection
from repertory.index.edge_errors import translated
from repertory.index.edge_files import ROOM
from repertory.index.edge_shard import OpenShard, make_shard
from repertory.index.lock import OWN_S, StoreLock
from repertory.remote.running import claimed
from tests.support.points import DIMENSION, direction, item_of, point
from tests.support.waiting import until

NAME = "repertory_0123456789abcdef_minilm_g1"


@pytest.fixture
def store(tmp_path: Path) -> EdgeStore:
    """An empty store with a short timeout."""
    return EdgeStore(tmp_path, timeout=0.1)


def shard(tmp_path: Path) -> Path:
    """The engine's folder of the collection."""
    return tmp_path / "collections" / NAME


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[OpenShard]:
    """An open shard that belongs to no store."""
    shard(tmp_path).mkdir(parents=True)
    make_shard(shard(tmp_path), DIMENSION)
    made = OpenShard(shard(tmp_path), StoreLock(shard(tmp_path), 0))
    yield made
    made.close()


def nothing(_: EdgeCollection) -> None:
    """Do nothing on closing a collection."""


WRITER = """
import sys
from pathlib import Path
from repertory.index.edge import EdgeStore
from tests.support.points import DIMENSION, point
with EdgeStore(Path(sys.argv[1])).open(sys.argv[2]) as collection:
    for start in range(0, 1_000_000, 100):
        collection.upsert([point(str(number)) for number in range(start, start + 100)])
        print(start + 100, flush=True)
"""

HOLDER = """
import sys
from pathlib import Path
from repertory.index.edge import EdgeStore
from tests.support.points import point
with EdgeStore(Path(sys.argv[1])).open(sys.argv[2]) as collection:
    collection.upsert([point("before")])
    print("open", flush=True)
    sys.stdin.readline()
    collection.upsert([point("after")])
"""


def child(program: str, *args: object) -> "subprocess.Popen[str]":
    """A separate process that runs a program."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("writes", [1, 7, 40])
def test_writes_survive_kill_9(store: EdgeStore, tmp_path: Path, writes: int) -> None:
    """All points for which upsert returned are complete and searchable."""
    store.create(NAME, DIMENSION).close()
    with child(WRITER, tmp_path, NAME) as writer:
        assert writer.stdout
        done = [int(writer.stdout.readline()) for _ in range(writes)][-1]
        writer.send_signal(signal.SIGKILL)
    with store.open(NAME) as collection:
        items = {state.item for state in collection.states()}
        assert items >= {str(number) for number in range(done)}
        assert collection.count() == len(items)
        assert len(collection.search(direction(1), 10)) == 10
        collection.upsert([point("later")])
        assert collection.records([item_key("later")])


def test_a_second_process_is_refused_and_harms_nothing(store: EdgeStore, tmp_path: Path) -> None:
    """The error names the process that holds the collection, and its later writes are kept."""
    store.create(NAME, DIMENSION).close()
    with child(HOLDER, tmp_path, NAME) as holder:
        assert holder.stdout
        assert holder.stdin
        assert holder.stdout.readline() == "open\n"
        for attempt in (store.open, store.drop):
            with pytest.raises(StoreBusyError, match=f"process {holder.pid} "):
                attempt(NAME)
        holder.stdin.write("\n")
    assert holder.returncode == 0
    with store.open(NAME) as collection:
        assert {state.item for state in collection.states()} == {"before", "after"}


def test_two_stores_of_a_process_do_not_share_a_collection(
    store: EdgeStore, tmp_path: Path
) -> None:
    """The second can open it after the last opening of the first is closed."""
    other = EdgeStore(tmp_path, timeout=0.1)
    with store.create(NAME, DIMENSION) as collection:
        store.open(NAME).close()
        with pytest.raises(StoreBusyError, match="already open in this program"):
            other.open(NAME)
        collection.upsert([point("a")])
    with other.open(NAME) as again:
        assert again.count() == 1


def test_a_lock_held_by_this_process_has_a_short_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The waiting thread itself may hold it, so a long wait could be in vain."""
    acquire, waits = FileLock.acquire, []

    def noted(lock: FileLock, timeout: float) -> object:
        waits.append(timeout)
        return acquire(lock, timeout=0)

    monkeypatch.setattr(FileLock, "acquire", noted)
    held = StoreLock(tmp_path / NAME, 30.0)
    with pytest.raises(StoreBusyError, match="already open in this program"):
        StoreLock(tmp_path / NAME, 30.0)
    held.release()
    assert waits == [30.0, OWN_S]


def test_a_process_with_the_same_id_is_not_this_one(store: EdgeStore, tmp_path: Path) -> None:
    """Two containers that share a directory may have equal process ids."""
    store.create(NAME, DIMENSION).close()
    own = StoreLock(tmp_path / "own", 0)
    with child(HOLDER, tmp_path, NAME) as holder:
        assert holder.stdout
        assert holder.stdin
        assert holder.stdout.readline() == "open\n"
        note = tmp_path / "collections" / f"{NAME}.holder"
        note.write_text((tmp_path / "own.holder").read_text())
        with pytest.raises(StoreBusyError, match="in use by process"):
            store.open(NAME)
        holder.stdin.write("\n")
    own.release()


def test_a_lock_whose_note_cannot_be_removed_is_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk may be read-only for a moment; the note only tells people who holds the lock."""
    held = StoreLock(tmp_path / NAME, 0)
    with claimed(tmp_path / "note.json") as is_ours, monkeypatch.context() as patch:
        assert is_ours
        patch.setattr(Path, "unlink", read_only)
        held.release()
        StoreLock(tmp_path / NAME, 0).release()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", read_only)
        for _ in range(2):
            with claimed(tmp_path / "note.json") as is_ours:
                assert is_ours


def read_only(*_: object, **__: object) -> None:
    """Fail as on a read-only disk."""
    raise OSError(errno.EROFS, "Read-only file system")


def test_an_open_collection_cannot_be_dropped(store: EdgeStore) -> None:
    """It can be dropped after its last opening is closed; closing twice does no harm."""
    first = store.create(NAME, DIMENSION)
    second = store.open(NAME)
    for one in (first, second):
        with pytest.raises(StoreBusyError, match="in use by this process"):
            store.drop(NAME)
        one.close()
    store.drop(NAME)
    with store.create(NAME, DIMENSION) as anew:
        first.close()
        anew.upsert([point("a")])
        assert anew.count() == 1


def test_a_collection_that_is_held_delays_no_other(tmp_path: Path) -> None:
    """While a thread waits for another process, others open and close other collections."""
    store = EdgeStore(tmp_path, timeout=60)
    store.create(NAME, DIMENSION).close()
    with child(HOLDER, tmp_path, NAME) as holder, ThreadPoolExecutor() as pool:
        assert holder.stdout
        assert holder.stdin
        holder.stdout.readline()
        waiting = pool.submit(store.open, NAME)
        with store.create("other", DIMENSION) as first, store.open("other"):
            first.upsert([point("a")])
        with pytest.raises(StoreError, match="no collection missing"):
            store.open("missing")
        assert not waiting.done()
        holder.stdin.write("\n")
        holder.stdin.flush()
        with waiting.result() as collection:
            assert collection.count() == 2


def test_opening_waits_for_the_holder(store: EdgeStore, tmp_path: Path) -> None:
    """Within the timeout, opening waits until the holder closes the collection."""
    store.create(NAME, DIMENSION).close()
    with child(HOLDER, tmp_path, NAME) as holder:
        assert holder.stdout
        assert holder.stdin
        holder.stdout.readline()
        holder.stdin.write("\n")
        holder.stdin.flush()
        with EdgeStore(tmp_path, timeout=60).open(NAME) as collection:
            assert collection.count() == 2


@pytest.mark.skipif(sys.platform == "win32", reason="processes are not forked there")
def test_opening_waits_for_a_child_process_that_is_starting(
    store: EdgeStore, tmp_path: Path
) -> None:
    """Until its program runs, a forked child holds the engine's lock on the log."""
    is_forked = tmp_path / "forked"

    def slow() -> None:
        is_forked.touch()
        time.sleep(1)

    store.create(NAME, DIMENSION).close()
    collection = store.open(NAME)
    with ThreadPoolExecutor(1) as pool:
        command = [sys.executable, "-c", ""]
        started = pool.submit(subprocess.run, command, preexec_fn=slow, check=True)
        until(is_forked.exists)
        collection.close()
        assert not started.done()
        store.open(NAME).close()
        started.result()


def test_an_incomplete_collection_is_removed(store: EdgeStore, tmp_path: Path) -> None:
    """Remains of a crash while creating or dropping are no collection and block nothing."""
    for remains in (f".new-{NAME}", f".old-{NAME}"):
        (tmp_path / "collections" / remains / "segments").mkdir(parents=True)
    assert store.collections() == []
    with store.create(NAME, DIMENSION) as collection:
        collection.upsert([point("a")])
    assert store.collections() == [NAME]
    store.drop(NAME)
    assert [path for path in (tmp_path / "collections").iterdir() if path.is_dir()] == []


def test_creating_a_collection_removes_remains_of_killed_processes(
    store: EdgeStore, tmp_path: Path
) -> None:
    """The unfinished collection of a running process stays."""
    folder = tmp_path / "collections"
    for remains in (".new-gone", ".old-gone", ".new-busy"):
        (folder / remains / "segments").mkdir(parents=True)
    running = StoreLock(folder / "busy", 0)
    store.create(NAME, DIMENSION).close()
    assert {path.name for path in folder.iterdir() if path.is_dir()} == {NAME, ".new-busy"}
    running.release()


def empty(path: Path) -> None:
    """Truncate a file to nothing."""
    path.write_bytes(b"")


def garble(path: Path) -> None:
    """Overwrite the start of a file."""
    with path.open("r+b") as file:
        file.write(b"\xff\x00garbage" * 100)


def age(path: Path) -> None:
    """Write an engine version that never existed."""
    path.write_text("99.99.99-not-a-version-\u00e4")


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [
        ("edge_config.json", garble),
        ("edge_config.json", empty),
        ("segments/*/segment.json", garble),
        ("segments/*/segment.json", Path.unlink),
        ("segments/*/version.info", empty),
        ("segments/*/version.info", age),
        ("segments/*/payload_storage/config.json", garble),
        ("segments/*/payload_storage/page_0.dat", empty),
        ("segments/*/vector_storage/vectors/chunk_0.mmap", empty),
        ("segments/*/vector_storage/deleted/status.dat", empty),
        ("wal/first-index", garble),
        ("wal/open-1", garble),
    ],
)
def test_a_corrupt_collection_is_an_error(
    store: EdgeStore, tmp_path: Path, pattern: str, damage: Callable[[Path], None]
) -> None:
    """It raises StoreCorruptError at once or at the first search, and can be dropped."""
    with store.create(NAME, DIMENSION) as collection:
        collection.upsert([point(str(number)) for number in range(300)])
    damage(next(shard(tmp_path).glob(pattern)))
    with pytest.raises(StoreCorruptError, match=NAME), store.open(NAME) as collection:  # noqa: PT012  # either may fail
        collection.search(direction(1), 10)
        list(collection.scan())
    store.drop(NAME)
    with store.create(NAME, DIMENSION) as collection:
        assert collection.count() == 0


def test_an_empty_folder_is_a_corrupt_collection(store: EdgeStore, tmp_path: Path) -> None:
    """A collection without files cannot be opened, but it can be dropped."""
    shard(tmp_path).mkdir(parents=True)
    with pytest.raises(StoreCorruptError, match=NAME):
        store.open(NAME)
    store.drop(NAME)
    assert store.collections() == []


def test_a_full_disk_is_an_error(store: EdgeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """With too little space, writes fail, reads continue, and nothing is lost."""
    with store.create(NAME, DIMENSION) as collection:
        collection.upsert([point("a")])
        with monkeypatch.context() as full:
            full.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**6))
            for write in (
                lambda: collection.upsert([point("b")]),
                lambda: collection.delete_items(["a"], 9),
                collection.optimize,
                lambda: store.create("other", DIMENSION),
            ):
                with pytest.raises(StoreError, match="free"):
                    write()
            assert [item_of(match) for match in collection.search(direction(1), 10)] == ["a"]
        collection.upsert([point("b")])
    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**6))
        with pytest.raises(StoreError, match="free"):
            store.open(NAME)
    with store.open(NAME) as collection:
        assert collection.count() == 2
    assert store.collections() == [NAME]


def test_optimizing_needs_room_for_a_copy(
    store: EdgeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New segments are written beside the old ones; a disk with less room accepts writes."""
    with store.create(NAME, DIMENSION) as collection:
        collection.upsert([point("a")])
        size = sum(path.stat().st_size for path in shard(tmp_path).rglob("*") if path.is_file())
        free = ROOM + size - 1
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
        with pytest.raises(StoreError, match="free"):
            collection.optimize()
        collection.upsert([point("b")])
        free += size
        collection.optimize()
        assert collection.count() == 2


USES: list[Callable[[OpenShard, EdgeCollection], object]] = [
    lambda _, collection: collection.upsert([point("a")]),
    lambda _, collection: collection.delete_items(["a"], 9),
    lambda _, collection: collection.search(direction(1), 1),
    lambda _, collection: collection.count(),
    lambda _, collection: collection.count_items(),
    lambda _, collection: collection.page(0, 1),
    lambda _, collection: collection.records([item_key("a")]),
    lambda _, collection: list(collection.states()),
    lambda _, collection: list(collection.points()),
    lambda _, collection: collection.optimize(),
    lambda shard, _: shard.flush(),
]


@pytest.mark.parametrize("use", USES)
def test_a_shard_that_another_thread_closed_is_an_error(
    opened: OpenShard, use: Callable[[OpenShard, EdgeCollection], object]
) -> None:
    """It may be closed after a call starts and before the engine is called."""
    collection = EdgeCollection(opened, nothing)
    opened.close()
    with pytest.raises(StoreError, match=f"{NAME} has been closed"):
        use(opened, collection)


def test_a_vector_of_another_length_is_an_error(store: EdgeStore) -> None:
    """The model may have changed; the message has both lengths and says what to do."""
    wrong = np.ones(DIMENSION - 1, np.float32)
    with store.create(NAME, DIMENSION) as collection:
        collection.upsert([point("a")])
        for use in (
            lambda: collection.upsert([point("b", wrong)]),
            lambda: collection.search(wrong, 1),
        ):
            with pytest.raises(StoreError, match=rf"{NAME} holds.*another length.*4.*3.*rebuild"):
                use()


class PanicException(BaseException):
    """An exception named like the engine's exception for panics, which cannot be imported."""


def error_for(exc: BaseException, path: Path) -> StoreError:
    """The error that a caller gets for an exception of the engine."""
    with pytest.raises(StoreError) as caught, translated(path):
        raise exc
    return caught.value


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EMFILE])
def test_an_operating_system_error_is_not_a_corrupt_store(tmp_path: Path, number: int) -> None:
    """The last error in the engine's message is the cause."""
    others = f"(os error {errno.ENOENT}), (os error {errno.EIO})"
    log = f'Can\'t init WAL: Os {{ code: {number}, kind: Other, message: "no" }}'
    for text in (f"no (os error {number})", f"{others}, no (os error {number})", log):
        error = error_for(Exception(text), tmp_path)
        assert str(error) == f"{tmp_path} cannot be used: {os.strerror(number)}."
        assert not isinstance(error, StoreCorruptError)


@pytest.mark.parametrize(
    "exc",
    [
        Exception("bad file"),
        PanicException("bad file"),
        Exception(f"bad file (os error {errno.ENOENT})"),
        Exception(f"bad file (os error {errno.ENOSPC}), (os error {errno.EIO})"),
    ],
)
def test_any_other_error_of_the_engine_is_a_corrupt_store(
    tmp_path: Path, exc: BaseException
) -> None:
    """This includes a panic; the message quotes the engine and says what to do."""
    error = error_for(exc, tmp_path)
    assert isinstance(error, StoreCorruptError)
    assert str(error) == f"{tmp_path} cannot be read ({exc}): rebuild the index."


def test_a_long_message_of_the_engine_is_cut(tmp_path: Path) -> None:
    """A panic may print a whole file."""
    assert f"({'x' * 300})" in str(error_for(Exception("x" * 10_000), tmp_path))


def test_an_interruption_is_not_translated(tmp_path: Path) -> None:
    """Errors of Repertory's own code are not translated either."""
    for exc in (KeyboardInterrupt(), TypeError("ours")):
        with pytest.raises(type(exc)), translated(tmp_path):
            raise exc


class Reader:
    """A shard that records what is read from it."""

    def __init__(self, shard: engine.EdgeShard) -> None:
        self._shard = shard
        self.found: list[engine.Record] = []

    def scroll(
        self, request: engine.ScrollRequest
    ) -> "tuple[list[engine.Record], engine.PointId | None]":
        """Read a page."""
        page, offset = self._shard.scroll(request)
        self.found += page
        return page, offset


def test_states_are_read_without_records_and_vectors(
    opened: OpenShard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Comparing a whole source needs neither, and they are most of the stored data."""
    collection = EdgeCollection(opened, nothing)
    collection.upsert([point("a")])
    with opened.using() as whole:
        reader = Reader(whole)
    with monkeypatch.context() as reading:
        reading.setattr(opened, "_engine", reader)
        assert [state.item for state in collection.page(0, 10)] == ["a"]
        assert [state.item for state in collection.states()] == ["a"]
    assert len(reader.found) == 2
    for record in reader.found:
        assert {*(record.payload or ())} == {*layout.STATE}
        assert record.vector is None


def test_a_data_directory_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    """The error of reads and writes names the directory."""
    (tmp_path / "data").write_text("")
    store = EdgeStore(tmp_path / "data")
    with pytest.raises(StoreError, match="data"):
        store.create(NAME, DIMENSION)
    with pytest.raises(StoreError, match="data"):
        store.collections()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_data_directory_is_an_error(store: EdgeStore, tmp_path: Path) -> None:
    """Writing raises StoreError with the reason."""
    store.create(NAME, DIMENSION).close()
    (tmp_path / "collections").chmod(0o555)
    with pytest.raises(StoreError, match="cannot be written"):
        store.create("other", DIMENSION)
    with pytest.raises(StoreError, match="cannot be written"):
        store.open(NAME)
    (tmp_path / "collections").chmod(0o755)


def test_reading_creates_nothing(tmp_path: Path) -> None:
    """Reading a missing store finds nothing and creates no directory."""
    store = EdgeStore(tmp_path / "data")
    assert store.collections() == []
    assert store.alias("repertory_x") is None
    store.drop("repertory_x")
    assert not (tmp_path / "data").exists()


def test_reading_an_alias_from_a_data_directory_that_is_a_file(tmp_path: Path) -> None:
    """The error says that it is a file, not that the alias is corrupt."""
    file = tmp_path / "data"
    file.write_text("x", "utf-8")
    with pytest.raises(StoreError, match=f"{file} is a file; choose another"):
        EdgeStore(file).alias(NAME)


def test_an_invalid_alias_points_nowhere(store: EdgeStore, tmp_path: Path) -> None:
    """An alias that is not text is replaced by the next index, like an empty one."""
    store.create(NAME, DIMENSION).close()
    store.set_alias("active", NAME)
    (tmp_path / "aliases" / "active").write_bytes(b"\xff\xfe")
    assert store.alias("active") is None
    store.set_alias("active", NAME)
    assert store.alias("active") == NAME
