"""The vector cache in SQLite: kills, damage, concurrency, full disks and read-only folders."""

import logging
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from repertory.embedding.models import MINILM
from repertory.errors import StoreError
from repertory.index.cache import SqliteVectorCache, vector_key

DIMENSION = 384


def vectors(start: int, count: int) -> dict[bytes, np.ndarray[tuple[int], np.dtype[np.float32]]]:
    """Some vectors by key."""
    return {
        vector_key(MINILM, str(number)): np.full(DIMENSION, number, np.float32)
        for number in range(start, start + count)
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of the cache file."""
    return tmp_path / "vectors.sqlite"


def test_the_oldest_vectors_are_evicted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server may offer other tools each time; a vector that is stored again counts as new."""
    monkeypatch.setattr("repertory.index.cache.MAX_VECTORS", 100)
    with closing(SqliteVectorCache(path, DIMENSION)) as cache:
        for start in range(0, 400, 40):
            cache.put(vectors(start, 40) | vectors(0, 1))
        assert 90 <= cache.count() <= 100
        assert len(cache.get([*vectors(360, 40), *vectors(0, 1)])) == 41
        assert not cache.get([*vectors(1, 200)])


WRITER = """
import sys
from pathlib import Path
from tests.integration.test_sqlite_cache import DIMENSION, vectors
from repertory.index.cache import SqliteVectorCache
cache = SqliteVectorCache(Path(sys.argv[1]), DIMENSION)
for start in range(int(sys.argv[2]), int(sys.argv[3]), 50):
    cache.put(vectors(start, 50))
    print(start + 50, flush=True)
"""


def test_writes_survive_kill_9(path: Path) -> None:
    """Every completed put is stored whole."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, path, "0", "1000000"], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout
        done = [int(writer.stdout.readline()) for _ in range(20)][-1]
        writer.send_signal(signal.SIGKILL)
    cache = SqliteVectorCache(path, DIMENSION)
    expected = vectors(0, done)
    got = cache.get(list(expected))
    assert all(np.array_equal(got[key], vector) for key, vector in expected.items())
    assert cache.count() % 50 == 0
    cache.close()


def test_processes_write_concurrently(path: Path) -> None:
    """Several processes create and fill one cache, and no vector is lost."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, path, str(n * 1_000), str((n + 1) * 1_000)],
            stdout=subprocess.DEVNULL,
        )
        for n in range(4)
    ]
    assert [writer.wait() for writer in writers] == [0] * 4
    cache = SqliteVectorCache(path, DIMENSION)
    assert cache.count() == 4_000
    cache.close()


def damaged(path: Path, how: str) -> None:
    """Create a cache of 2,000 vectors and damage its file."""
    cache = SqliteVectorCache(path, DIMENSION)
    cache.put(vectors(0, 2_000))
    cache.close()
    content = path.read_bytes()
    if how == "garbage":
        path.write_bytes(os.urandom(5_000))
    elif how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif how == "holes":
        path.write_bytes(content[:16_384] + os.urandom(len(content) - 16_384))
    else:
        path.unlink()
        with sqlite3.connect(path) as other:
            other.execute("CREATE TABLE vectors (something_else)")
        other.close()


@pytest.mark.parametrize("how", ["garbage", "cut", "holes", "other"])
def test_a_corrupt_file_is_set_aside(
    path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is renamed and replaced, with a warning that has the new path."""
    damaged(path, how)
    with caplog.at_level(logging.WARNING):
        cache = SqliteVectorCache(path, DIMENSION)
        keys = list(vectors(0, 2_000))
        got = cache.get(keys)
        assert all(np.array_equal(got.get(key, v), v) for key, v in vectors(0, 2_000).items())
        cache.put(vectors(0, 2_000))
        assert len(cache.get(keys)) == 2_000
        assert cache.count() == 2_000
        cache.close()
    assert [name.name for name in path.parent.glob("*.corrupt-1")] == ["vectors.sqlite.corrupt-1"]
    (record,) = (one for one in caplog.records if one.message == "vector_cache_replaced")
    assert str(vars(record)["set_aside"]).endswith("vectors.sqlite.corrupt-1")
    assert "is corrupt" in str(vars(record)["error"])
    damaged(path, "garbage")
    SqliteVectorCache(path, DIMENSION).close()
    assert (path.parent / "vectors.sqlite.corrupt-2").exists()


def test_a_corrupt_file_is_set_aside_once(path: Path) -> None:
    """If two processes detect the damage, the second one uses the replacement of the first."""
    cache = SqliteVectorCache(path, DIMENSION)
    cache.put(vectors(0, 2_000))
    other = SqliteVectorCache(path, DIMENSION)
    assert other.count() == 2_000
    with sqlite3.connect(path) as checkpoint:
        checkpoint.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    checkpoint.close()
    with path.open("r+b") as file:
        file.seek(8_192)
        file.write(os.urandom(path.stat().st_size - 8_192))
    cache.put(vectors(0, 10))
    other.put(vectors(10, 10))
    assert cache.count() == other.count() == 20
    assert (
        len(list(path.parent.glob("*.corrupt-*"))) <= 3
    )  # the database and its -wal and -shm files
    cache.close()
    other.close()


def test_a_deleted_file_is_created_again(path: Path) -> None:
    """Processes that had it open lose its vectors, but no later ones."""
    caches = [SqliteVectorCache(path, DIMENSION) for _ in range(2)]
    for number, cache in enumerate(caches):
        cache.put(vectors(number, 1))
    path.unlink()
    caches.append(SqliteVectorCache(path, DIMENSION))
    for number, cache in enumerate(caches, 10):
        cache.put(vectors(number, 1))
    for cache in caches:
        assert {*cache.get([*vectors(0, 20)])} == {*vectors(10, 3)}
        cache.close()
    again = SqliteVectorCache(path, DIMENSION)
    assert {*again.get([*vectors(0, 20)])} == {*vectors(10, 3)}
    again.close()


def test_a_vector_of_another_length_is_ignored(path: Path) -> None:
    """It may be truncated or belong to another model; it can be replaced."""
    (key,) = vectors(0, 1)
    cache = SqliteVectorCache(path, DIMENSION)
    with sqlite3.connect(path) as other:
        other.execute("INSERT INTO vectors VALUES (?, ?)", (key, b"short"))
    other.close()
    assert cache.get([key]) == {}
    cache.put(vectors(0, 1))
    assert set(cache.get([key])) == {key}
    cache.close()


def test_an_unwritable_path_is_an_error(tmp_path: Path) -> None:
    """A file may be in place of the folder, or a folder in place of the file."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be used"):
        SqliteVectorCache(tmp_path / "file" / "vectors.sqlite", DIMENSION)
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match="cannot be used"):
        SqliteVectorCache(tmp_path / "folder", DIMENSION)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_an_error(tmp_path: Path) -> None:
    """The error says to make the folder writable."""
    tmp_path.chmod(0o555)
    with pytest.raises(StoreError, match="make its directory writable"):
        SqliteVectorCache(tmp_path / "vectors.sqlite", DIMENSION)


FULL = """
import resource, signal, sys
from pathlib import Path
from tests.integration.test_sqlite_cache import DIMENSION, vectors
from repertory.errors import StoreError
from repertory.index.cache import SqliteVectorCache
cache = SqliteVectorCache(Path(sys.argv[1]), DIMENSION)
cache.put(vectors(0, 10))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    cache.put(vectors(10, 1_000))
except StoreError as exc:
    print(exc)
print(cache.count(), len(cache.get(list(vectors(0, 10)))))
"""


def test_a_full_disk_is_an_error(path: Path) -> None:
    """The failed write stores nothing and damages nothing."""
    done = subprocess.run(
        [sys.executable, "-c", FULL, path], capture_output=True, text=True, check=True
    )
    message, contents = done.stdout.splitlines()
    assert str(path) in message
    assert contents == "10 10"
