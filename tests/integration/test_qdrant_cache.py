"""The vector cache on a Qdrant server: made by many at once, deleted, taken for nothing else."""

import threading
from collections.abc import Iterator
from uuid import UUID

import numpy as np
import pytest
from qdrant_client import QdrantClient, models

from repertory.embedding.models import MINILM
from repertory.errors import StoreError
from repertory.index.cache import vector_key
from repertory.index.qdrant import QdrantStore
from repertory.index.qdrant_cache import QdrantVectorCache
from repertory.indexing.collections import (
    alias_name,
    configuration_of,
    generation_of,
    generations,
    model_slug,
)
from tests.support.qdrant_server import QdrantStandIn

KEY = vector_key(MINILM, "text")
VECTOR = np.random.default_rng(1).standard_normal(MINILM.dimension, np.float32)
NAME = "repertory_vectors_all-minilm-l6-v2"


@pytest.fixture
def server() -> Iterator[QdrantStandIn]:
    """A server with nothing in it."""
    with QdrantStandIn() as made:
        yield made


def test_workers_may_make_it_at_once(server: QdrantStandIn) -> None:
    """Whoever is first makes it; what each of them puts is kept."""
    start = threading.Barrier(6)
    keys = [vector_key(MINILM, str(number)) for number in range(6)]
    failed = []

    def work(key: bytes) -> None:
        cache = QdrantVectorCache(server.url, None, MINILM)
        start.wait()
        try:
            cache.put({key: VECTOR})
        except StoreError as exc:
            failed.append(exc)
        cache.close()

    threads = [threading.Thread(target=work, args=(key,)) for key in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert set(QdrantVectorCache(server.url, None, MINILM).get(keys)) == set(keys)


def test_vectors_come_back_exactly(server: QdrantStandIn) -> None:
    """Also those that are not of unit length, to the last bit."""
    cache = QdrantVectorCache(server.url, None, MINILM)
    cache.put({KEY: VECTOR})
    assert cache.get([KEY])[KEY].tobytes() == VECTOR.tobytes()


def test_one_that_was_deleted_is_made_anew(server: QdrantStandIn) -> None:
    """The use that meets it says so; the next one finds it empty."""
    cache = QdrantVectorCache(server.url, None, MINILM)
    cache.put({KEY: VECTOR})
    QdrantStore(server.url).drop(NAME)
    with pytest.raises(StoreError, match="was deleted"):
        cache.get([KEY])
    assert cache.get([KEY]) == {}


def test_a_point_of_another_key_is_passed_over(server: QdrantStandIn) -> None:
    """Keys that begin alike, and points that somebody else wrote, are not taken for ours."""
    cache = QdrantVectorCache(server.url, None, MINILM)
    alike = KEY[:16] + bytes(16)
    cache.put({KEY: VECTOR})
    assert cache.get([alike]) == {}
    cache.put({alike: VECTOR})
    assert set(cache.get([alike])) == {alike}
    assert cache.get([KEY]) == {}
    foreign = models.PointStruct(id=str(UUID(bytes=KEY[:16])), vector=VECTOR.tolist(), payload={})
    QdrantClient(url=server.url, check_compatibility=False).upsert(NAME, [foreign])
    assert cache.get([KEY, alike]) == {}


def test_it_is_taken_for_no_index(server: QdrantStandIn) -> None:
    """Its name says nothing of a configuration, a model or a generation."""
    QdrantVectorCache(server.url, None, MINILM).put({KEY: VECTOR})
    store = QdrantStore(server.url)
    assert store.collections() == [NAME]
    for configuration in ("vectors", "0123456789abcdef"):
        assert generations(store, configuration, MINILM.slug) == []
        assert alias_name(configuration) != NAME
    assert (configuration_of(NAME), model_slug(NAME), generation_of(NAME)) == ("", "", 0)


def test_a_server_that_is_not_there_is_an_error_in_words() -> None:
    """Nothing is sent before the first use, which says what is wrong."""
    gone = QdrantVectorCache("http://127.0.0.1:9", None, MINILM)
    with pytest.raises(StoreError, match="cannot be reached"):
        gone.get([KEY])
    with pytest.raises(StoreError, match="must look like"):
        QdrantVectorCache("localhost", None, MINILM)
