"""The contract of ``VectorCache``, tested on SQLite and on a Qdrant server."""

import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from repertory.embedding.models import BGE_SMALL, MINILM, Model, Pooling
from repertory.errors import StoreError
from repertory.index.cache import SqliteVectorCache, VectorCache, vector_key
from repertory.index.qdrant import QdrantStore
from repertory.index.qdrant_cache import QdrantVectorCache

DIMENSION = 4


@pytest.fixture(params=["qdrant", "sqlite"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], VectorCache]]:
    """Open the same cache at each call; collections left on a server are deleted afterwards."""
    if request.param == "sqlite":
        yield lambda: SqliteVectorCache(tmp_path / "data" / "vectors.sqlite", DIMENSION)
        return
    url = request.getfixturevalue("qdrant_url")
    slug = f"test-{uuid.uuid4().hex}"
    model = msgspec.structs.replace(MINILM, slug=slug, dimension=DIMENSION)
    yield lambda: QdrantVectorCache(url, None, model)
    store = QdrantStore(url)
    for name in store.collections():
        if slug in name:
            store.drop(name)


@pytest.fixture
def cache(opened: Callable[[], VectorCache]) -> Iterator[VectorCache]:
    """An empty cache."""
    made = opened()
    yield made
    made.close()


def key(number: int) -> bytes:
    """The key of a numbered text."""
    return vector_key(MINILM, f"text {number}")


def vector(number: float) -> NDArray[np.float32]:
    """A vector with the given first number."""
    return np.array([number, 0.1, -0.2, 1e-8], np.float32)


def test_vectors_come_back_bit_by_bit(cache: VectorCache) -> None:
    """Vectors are returned as exact float32 arrays; missing keys are left out."""
    cache.put({key(1): vector(1 / 3), key(2): vector(2)})
    got = cache.get([key(1), key(3), key(2), key(1)])
    assert set(got) == {key(1), key(2)}
    assert got[key(1)].dtype == np.float32
    assert got[key(1)].tobytes() == vector(1 / 3).tobytes()
    assert cache.count() == 2


def test_nothing_in_nothing_out(cache: VectorCache) -> None:
    """Empty reads and writes are allowed."""
    cache.put({})
    assert cache.get([]) == {}
    assert cache.get([key(1)]) == {}
    assert cache.count() == 0


def test_putting_again_replaces(cache: VectorCache) -> None:
    """A second write of a key replaces its vector."""
    cache.put({key(1): vector(1)})
    cache.put({key(1): vector(2)})
    assert cache.get([key(1)])[key(1)][0] == 2
    assert cache.count() == 1


def test_many_keys_in_one_call(cache: VectorCache) -> None:
    """One call may write or read thousands of keys."""
    cache.put({key(number): vector(number) for number in range(2_500)})
    got = cache.get([key(number) for number in range(-10, 2_510)])
    assert [got[key(number)][0] for number in range(2_500)] == list(range(2_500))
    assert len(got) == 2_500


def test_a_cache_is_bounded(
    opened: Callable[[], VectorCache], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of vectors is limited, as MCP servers may send ever new texts."""
    for module in ("cache", "qdrant_cache"):
        monkeypatch.setattr(f"repertory.index.{module}.MAX_VECTORS", 100)
    cache = opened()
    cache.put({key(number): vector(number) for number in range(400)})
    assert cache.count() == 100
    cache.close()


def test_caches_opened_twice_share_their_vectors(opened: Callable[[], VectorCache]) -> None:
    """Caches opened together or later read the same vectors; closing twice is allowed."""
    first, second = opened(), opened()
    first.put({key(1): vector(1)})
    assert set(second.get([key(1)])) == {key(1)}
    for one in (first, second, first):
        one.close()
        with pytest.raises(StoreError, match="closed"):
            one.count()
    third = opened()
    assert third.count() == 1
    third.close()


def test_threads_share_a_cache(cache: VectorCache) -> None:
    """Concurrent reads and writes lose nothing."""

    def write(start: int) -> None:
        for number in range(start, start + 40):
            cache.put({key(number): vector(number)})
            assert set(cache.get([key(number)])) == {key(number)}

    threads = [threading.Thread(target=write, args=(40 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.count() == 160


CHANGED = [
    msgspec.structs.replace(MINILM, **change)
    for change in (
        {"id": "other/all-MiniLM-L6-v2"},
        {"slug": "other"},
        {"dimension": 385},
        {"max_tokens": 255},
        {"pooling": Pooling.CLS},
    )
]


@given(text=st.text(alphabet=st.characters(), max_size=20), other=st.text(max_size=20))
def test_a_key_depends_on_model_and_text(text: str, other: str) -> None:
    """Equal models and texts have equal keys; any other model or text has another key."""
    address = vector_key(MINILM, text)
    assert len(address) == 32
    assert address == vector_key(msgspec.structs.replace(MINILM), text)
    assert (address == vector_key(MINILM, other)) == (text == other)
    models: list[Model] = [BGE_SMALL, *CHANGED]
    assert len({address, *(vector_key(model, text) for model in models)}) == len(models) + 1


def test_any_text_has_a_key() -> None:
    """Texts that are empty, invalid Unicode or NUL have distinct keys."""
    assert len({vector_key(MINILM, text) for text in ("", "\0", "\ud800", "\ufffd")}) == 4
