"""The vector cache on a Qdrant server."""

import threading
from collections.abc import Iterator
from uuid import UUID

import msgspec
import numpy as np
import pytest

from repertory.embedding.models import MINILM
from repertory.errors import StoreError
from repertory.index import layout
from repertory.index.cache import vector_key
from repertory.index.qdrant import QdrantStore
from repertory.index.qdrant_cache import QdrantVectorCache
from repertory.indexing.collection_names import (
    alias_name,
    configuration_of,
    generation_of,
    generations,
    model_slug,
)
from repertory.values import NAMESPACE
from tests.support.qdrant_http import ask
from tests.support.qdrant_server import QdrantStandIn

KEY = vector_key(MINILM, "text")
VECTOR = np.random.default_rng(1).standard_normal(MINILM.dimension, np.float32)
NAME = "repertory_vectors_all-minilm-l6-v2"


@pytest.fixture
def server() -> Iterator[QdrantStandIn]:
    """An empty Qdrant server."""
    with QdrantStandIn() as made:
        yield made


def test_workers_may_create_the_cache_concurrently(server: QdrantStandIn) -> None:
    """Only one of them creates the collection, and all vectors are stored."""
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


def test_a_vector_is_returned_unchanged(server: QdrantStandIn) -> None:
    """It is neither rounded nor normalised."""
    cache = QdrantVectorCache(server.url, None, MINILM)
    cache.put({KEY: VECTOR})
    assert cache.get([KEY])[KEY].tobytes() == VECTOR.tobytes()


def test_all_vectors_are_listed_with_their_keys(server: QdrantStandIn) -> None:
    """A backup reads all pages of them."""
    model = msgspec.structs.replace(MINILM, dimension=4)
    vectors = {vector_key(model, str(n)): VECTOR[:4] * n for n in range(layout.CHUNK + 1)}
    cache = QdrantVectorCache(server.url, None, model)
    cache.put(vectors)
    found = dict(cache.stored())
    assert {key: vector.tobytes() for key, vector in found.items()} == {
        key: vector.tobytes() for key, vector in vectors.items()
    }


def test_many_vectors_take_few_requests(server: QdrantStandIn) -> None:
    """Vectors are sent and requested in chunks, each vector once."""
    model = msgspec.structs.replace(MINILM, dimension=4)
    keys = [vector_key(model, str(number)) for number in range(2 * layout.CHUNK + 1)]
    cache = QdrantVectorCache(server.url, None, model)
    cache.put(dict.fromkeys(keys, VECTOR[:4]))
    assert len(cache.get(keys)) == len(keys)
    sent = [one for one in server.requests if one.path.endswith("/points")]
    written = [len(one.body["points"]) for one in sent if one.method == "PUT"]
    asked = [len(one.body["ids"]) for one in sent if one.method == "POST"]
    assert written == asked == [layout.CHUNK, layout.CHUNK, 1]


def test_the_cache_is_optimised_for_reads_by_key(server: QdrantStandIn) -> None:
    """Vectors are on disk, and no graph is built, because nothing searches them."""
    assert QdrantVectorCache(server.url, None, MINILM).count() == 0
    config = ask(server.url, "GET", f"/collections/{NAME}")["result"]["config"]
    assert config["params"]["vectors"] == {
        "size": MINILM.dimension,
        "distance": "Dot",
        "on_disk": True,
    }
    assert config["hnsw_config"]["m"] == 0


def test_a_closed_cache_cannot_be_used(server: QdrantStandIn) -> None:
    """The error names the cache; closing twice is allowed."""
    cache = QdrantVectorCache(server.url, None, MINILM)
    cache.put({KEY: VECTOR})
    cache.close()
    cache.close()
    for use in (lambda: cache.get([KEY]), lambda: cache.put({KEY: VECTOR}), cache.count):
        with pytest.raises(StoreError, match=f"{NAME} has been closed"):
            use()


@pytest.mark.filterwarnings("ignore:The API key of Qdrant is sent over an insecure connection")
def test_the_cache_uses_the_key_of_the_server() -> None:
    """Another key is refused."""
    with QdrantStandIn(api_key="right") as server:
        cache = QdrantVectorCache(server.url, "right", MINILM)
        cache.put({KEY: VECTOR})
        assert cache.count() == 1
        with pytest.raises(StoreError, match="API key"):
            QdrantVectorCache(server.url, "wrong", MINILM).get([KEY])


def test_a_deleted_cache_is_created_again(server: QdrantStandIn) -> None:
    """The first use reports the deletion; the next one finds an empty cache."""
    cache = QdrantVectorCache(server.url, None, MINILM)
    cache.put({KEY: VECTOR})
    QdrantStore(server.url).drop(NAME)
    with pytest.raises(StoreError, match="was deleted"):
        cache.get([KEY])
    assert cache.get([KEY]) == {}


def test_a_point_of_another_key_is_ignored(server: QdrantStandIn) -> None:
    """A key with the same prefix or a point of another program is not used as our vector."""
    cache = QdrantVectorCache(server.url, None, MINILM)
    alike = KEY[:16] + bytes(16)
    cache.put({KEY: VECTOR})
    assert cache.get([alike]) == {}
    cache.put({alike: VECTOR})
    assert set(cache.get([alike])) == {alike}
    assert cache.get([KEY]) == {}
    foreign = {"id": str(UUID(bytes=KEY[:16])), "vector": VECTOR.tolist(), "payload": {}}
    ask(server.url, "PUT", f"/collections/{NAME}/points?wait=true", {"points": [foreign]})
    assert cache.get([KEY, alike]) == {}


def test_the_cache_is_not_mistaken_for_an_index(server: QdrantStandIn) -> None:
    """Its name has no configuration, model or generation."""
    QdrantVectorCache(server.url, None, MINILM).put({KEY: VECTOR})
    store = QdrantStore(server.url)
    assert store.collections() == [NAME]
    for configuration in ("vectors", "0123456789abcdef"):
        assert generations(store, NAMESPACE, configuration, MINILM.slug) == []
        assert alias_name(NAMESPACE, configuration) != NAME
    assert (configuration_of(NAME), model_slug(NAME), generation_of(NAME)) == ("", "", 0)


def test_an_unavailable_server_is_an_error() -> None:
    """The first use reports it; an invalid address is refused at once."""
    gone = QdrantVectorCache("http://127.0.0.1:9", None, MINILM)
    with pytest.raises(StoreError, match="cannot be reached"):
        gone.get([KEY])
    with pytest.raises(StoreError, match="must look like"):
        QdrantVectorCache("localhost", None, MINILM)
