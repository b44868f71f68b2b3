"""Requests to a Qdrant server, its errors, and the strictness of the stand-in."""

import contextlib
import json
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from repertory.catalogue.item import item_key
from repertory.errors import StoreError
from repertory.index import layout, qdrant_connection, qdrant_requests
from repertory.index.qdrant import QdrantStore
from repertory.index.qdrant_collection import QdrantCollection
from repertory.index.qdrant_connection import NEWEST_SERVER, QdrantServer
from repertory.index.qdrant_requests import Answer, Direct, Node, Request
from repertory.index.vectors import Filter
from tests.support.certificates import self_signed
from tests.support.points import DIMENSION, direction, item_of, point
from tests.support.qdrant import QdrantProcess
from tests.support.qdrant_http import RefusedError, ask
from tests.support.qdrant_server import QdrantStandIn


def test_only_sections_that_exist_are_deleted() -> None:
    """Items without obsolete sections, such as those of a first index, cost no deletion."""

    def deletions() -> int:
        return sum(request.path.endswith("/points/delete") for request in server.requests)

    with QdrantStandIn() as server, QdrantStore(server.url).create("c", DIMENSION) as collection:
        collection.upsert([point("a"), point("b"), point("b", section=0)])
        collection.delete_sections(["a", "unknown"], before=2)
        collection.delete_sections(["a", "b"], before=1)
        assert deletions() == 0
        collection.delete_sections(["a", "b"], before=2)
        assert deletions() == 1
        assert collection.count() == 2


def test_sections_are_deleted_in_every_chunk() -> None:
    """A chunk without obsolete sections does not end the deletion."""
    items = [f"item {number}" for number in range(layout.CHUNK + 1)]
    with QdrantStandIn() as server, QdrantStore(server.url).create("c", DIMENSION) as collection:
        collection.upsert([point(items[-1]), point(items[-1], section=0)])
        collection.delete_sections(items, before=2)
        assert collection.count() == 1


def test_items_are_deleted_in_chunks() -> None:
    """A server limits the values of a condition, and each deletion costs as much as a write."""
    items = [f"item {number}" for number in range(2 * layout.CHUNK + 1)]
    with QdrantStandIn() as server, QdrantStore(server.url).create("c", DIMENSION) as collection:
        collection.delete_items(items, before=2)
        deletions = [
            request.body["filter"]["must"][0]["match"]["any"]
            for request in server.requests
            if request.path.endswith("/points/delete")
        ]
    assert [len(chunk) for chunk in deletions] == [layout.CHUNK, layout.CHUNK, 1]
    assert [item for chunk in deletions for item in chunk] == items


def test_states_are_read_without_records() -> None:
    """Records are most of the stored data, and comparing a source does not need them."""
    with QdrantStandIn() as server, QdrantStore(server.url).create("c", DIMENSION) as collection:
        collection.upsert([point("a")])
        assert [state.item for state in collection.states()] == ["a"]
        assert [state.item for state in collection.page(0, 10)] == ["a"]
        scrolls = [one.body for one in server.requests if one.path.endswith("/points/scroll")]
    assert [body["with_payload"] for body in scrolls] == [[*layout.STATE]] * 2
    assert not any(body.get("with_vector") for body in scrolls)


@pytest.mark.parametrize(
    "refused",
    [
        RefusedError(409, "Wrong input: Collection `c` already exists!"),
        RefusedError(409, "Conflict"),
        RefusedError(400, "Wrong input: Collection `c` already exists!"),
    ],
)
def test_a_collection_name_that_is_taken_is_an_error(refused: RefusedError) -> None:
    """Another process may create the collection at the same time."""
    with QdrantStandIn() as server:
        server.refusals = [refused]
        with pytest.raises(StoreError, match="The collection c already exists"):
            QdrantStore(server.url).create("c", DIMENSION)


@pytest.mark.parametrize(
    ("status", "message"),
    [(400, "Wrong input: vectors"), (500, "Alias already exists"), (410, "Gone")],
)
def test_another_refusal_of_a_new_collection_is_shown(status: int, message: str) -> None:
    """It is not mistaken for a name that is taken."""
    with QdrantStandIn() as server:
        server.refusals = [RefusedError(status, message)]
        with pytest.raises(StoreError, match=f"answered {status}.*{message}"):
            QdrantStore(server.url).create("c", DIMENSION)


@pytest.mark.filterwarnings("ignore:The password of Qdrant is sent over an insecure connection")
def test_an_unavailable_server_is_an_error() -> None:
    """The error names the server, without the user and the password in its URL."""
    with QdrantStandIn() as server:
        url = server.url.replace("//", "//user:secret@")
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        QdrantStore(url).collections()
    assert server.url in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["", "localhost:6333", "ftp://host", "http://", "http://[x", "http://h:x"]
)
def test_an_invalid_url_is_refused(url: str) -> None:
    """The error shows the form of a valid URL."""
    with pytest.raises(StoreError, match="must look like"):
        QdrantStore(url)


def test_a_missing_collection_and_a_stopped_server_are_different_errors() -> None:
    """The error for a missing collection names it."""
    with QdrantStandIn() as server:
        store = QdrantStore(server.url)
        collection = store.create("c", DIMENSION)
        store.drop("c")
        with pytest.raises(StoreError, match="no collection c any more"):
            collection.upsert([point("a")])
    with pytest.raises(StoreError, match="cannot be reached"):
        collection.count()


QUERIES: list[Callable[[QdrantStore, QdrantCollection], object]] = [
    lambda store, _: store.alias("x"),
    lambda store, _: store.collections(),
    lambda store, _: store.open("c"),
    lambda _, collection: collection.search(direction(1), 3),
    lambda _, collection: collection.records([item_key("a")]),
    lambda _, collection: list(collection.states(["a"])),
]


def test_a_silent_server_fails_a_query_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timeout of a query is far below that of a write."""
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor() as threads:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setattr(qdrant_connection, "TIMEOUT_S", 1_000)
        monkeypatch.setattr(qdrant_connection, "QUERY_TIMEOUT_S", 1)
        store = QdrantStore(url)
        server = QdrantServer(url, None)
        collection = QdrantCollection(server, "c")  # opening it would itself be a query
        asked = [threads.submit(query, store, collection) for query in QUERIES]
        for query in asked:
            with pytest.raises(StoreError, match="cannot be reached"):
                query.result()


def test_a_server_that_is_killed_is_used_again_after_its_restart() -> None:
    """All writes survive, and the same objects continue to work from many threads."""
    with QdrantProcess() as server:
        store = QdrantStore(server.url)
        collection = store.create("c", DIMENSION)
        store.create("d", DIMENSION)
        store.drop("d")
        store.set_alias("alias", "c")
        collection.upsert([point("a", source="one"), point("b", source="two")])
        server.kill()
        with pytest.raises(StoreError, match="cannot be reached"):
            collection.search(direction(1), 3)
        server.start()
        assert store.collections() == ["c"]
        assert store.alias("alias") == "c"
        with ThreadPoolExecutor(16) as threads:
            searches = [
                threads.submit(collection.search, direction(1), 3, Filter(sources=("one",)))
                for _ in range(64)
            ]
            assert {item_of(match) for search in searches for match in search.result()} == {"a"}
        indexed = ask(server.url, "GET", "/collections/c")["result"]["payload_schema"]
        assert {"kind", "source", "server", "tags", "item", "revision"} <= set(indexed)


@pytest.mark.filterwarnings("ignore:The API key of Qdrant is sent over an insecure connection")
def test_a_wrong_key_is_an_error() -> None:
    """The error asks the user to check the key, but does not show it."""
    with QdrantStandIn(api_key="right") as server:
        assert QdrantStore(server.url, "right").collections() == []
        with pytest.raises(StoreError, match="API key") as caught:
            QdrantStore(server.url, "wrong").collections()
        assert "wrong" not in str(caught.value)


def test_white_space_around_a_key_is_removed() -> None:
    """A mounted secret may end with a line break; invalid characters are refused."""
    with QdrantStandIn(api_key="right") as server, pytest.warns(match="insecure connection"):
        assert QdrantStore(server.url, " right\n").collections() == []
    for key in ("sec\nret", "sécret"):
        with pytest.raises(StoreError, match="contains invalid characters") as caught:
            QdrantStore("https://qdrant", key)
        assert key not in str(caught.value)


@pytest.mark.parametrize("proxy", ["", "http://127.0.0.1:9"])
def test_an_invalid_host_name_is_an_error(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    """It is reported like a host that does not exist, with and without a proxy."""
    monkeypatch.setenv("HTTP_PROXY", proxy)
    for host in ("a..b", "a" * 64 + ".example", "xn--a.example"):
        with pytest.raises(StoreError, match="cannot be reached"):
            QdrantStore(f"http://{host}:6333").collections()


def test_the_timeout_of_a_large_write_applies_to_each_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow network may need longer for the whole write, so sendall is not used."""
    with QdrantProcess() as server:
        monkeypatch.setattr(socket.socket, "sendall", lambda *_: pytest.fail("has one timeout"))
        collection = QdrantStore(server.url).create("c", DIMENSION)
        large = point("a")
        large.record["text"] = "x" * (1 << 23)
        collection.upsert([large])
        assert collection.records([item_key("a")])["a"] == large.record


def test_a_large_write_is_sent_again_if_a_tls_connection_was_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy closes idle connections when it reloads its configuration."""
    monkeypatch.setattr(qdrant_requests, "trusted", ssl._create_unverified_context)
    context, size = self_signed(tmp_path), 3 << 20
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor() as threads:

        def serve() -> None:
            listening.settimeout(10)
            for length in (1, size):
                accepted, _ = listening.accept()
                with (
                    context.wrap_socket(accepted, server_side=True) as connection,
                    connection.makefile("rwb") as file,
                ):
                    while file.readline().strip():
                        pass
                    assert len(file.read(length)) == length
                    file.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

        served = threads.submit(serve)
        node = Node("https", "127.0.0.1", listening.getsockname()[1])
        with contextlib.closing(Direct({})) as requests:
            requests.send(node, Request("PUT", "/", b"1", 10))
            time.sleep(0.2)  # until the server has closed the connection
            answer = requests.send(node, Request("PUT", "/", bytes(size), 10))
        assert answer == Answer(200, b"{}", "")
        served.result()


def test_a_server_too_old_for_conditional_writes_is_refused() -> None:
    """It would ignore the condition, so collections are neither created nor opened on it."""
    with QdrantStandIn(version="1.15.4") as server:
        store = QdrantStore(server.url)
        with pytest.raises(StoreError, match=r"1\.16 or newer"):
            store.create("c", DIMENSION)
        with pytest.raises(StoreError, match=r"1\.16 or newer"):
            store.open("c")


def test_an_unknown_newer_server_is_used_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its answers may differ."""
    major, minor = NEWEST_SERVER
    for distance, warnings in ((0, []), (1, ["qdrant_version_differs"])):
        caplog.clear()
        with QdrantStandIn(version=f"{major}.{minor + distance}.0") as server:
            QdrantStore(server.url).create("c", DIMENSION)
        assert [record.message for record in caplog.records] == warnings


def test_a_collection_is_made_for_little_memory_and_has_a_graph() -> None:
    """Vectors and payloads are on disk, and int8 copies of the vectors are in memory."""
    with QdrantStandIn() as server:
        QdrantStore(server.url).create("c", DIMENSION)
        config = ask(server.url, "GET", "/collections/c")["result"]["config"]
    assert config["params"]["vectors"] == {"size": DIMENSION, "distance": "Cosine", "on_disk": True}
    assert config["params"]["on_disk_payload"]
    graph = {"m": layout.GRAPH_M, "ef_construct": layout.GRAPH_EF_CONSTRUCT}
    assert config["hnsw_config"] == graph | {"full_scan_threshold": layout.GRAPH_FROM}
    assert config["optimizer_config"]["indexing_threshold"] == layout.GRAPH_FROM
    scalar = {"type": "int8", "quantile": 0.99, "always_ram": True}
    assert config["quantization_config"] == {"scalar": scalar}


def test_missing_payload_indexes_are_created() -> None:
    """Opening a collection after an interrupted creation adds them."""
    with QdrantStandIn() as server:
        QdrantStore(server.url).create("c", DIMENSION)
        indexed = ask(server.url, "GET", "/collections/c")["result"]["payload_schema"]
        QdrantStore(server.url).drop("c")
        ask(server.url, "PUT", "/collections/c", json.loads(PLAIN))
        QdrantStore(server.url).open("c")
        again = ask(server.url, "GET", "/collections/c")["result"]["payload_schema"]
    assert again == indexed
    assert {"kind", "source", "server", "tags", "item", "revision"} <= set(indexed)


PLAIN = """{"vectors": {"size": 4, "distance": "Cosine"}, "hnsw_config": {},
 "optimizers_config": {}, "quantization_config": {"scalar": {"type": "int8"}}}"""


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/telemetry", None),
        ("GET", "/collections?anonymize=true", None),
        ("PATCH", "/collections/c", {"params": {}}),
        ("POST", "/collections/c/points/query/groups", {"group_by": "kind"}),
        ("PUT", "/collections/e", {"vectors": {"size": 4, "distance": "Manhattan"}}),
        ("POST", "/collections/c/points/count", {"exact": True, "shard_key": "a"}),
        ("POST", "/collections/c/points/delete", {"filter": {"should": []}}),
        ("POST", "/collections/c/points/delete", {"filter": {"must": [{"key": "a"}]}}),
        ("PUT", "/collections/c/points?wait=false", {"points": []}),
        ("PUT", "/collections/c/points", {"points": []}),
        ("POST", "/collections/c/points/delete", {"filter": {"must": []}}),
        ("POST", "/collections/c/points/count", {"exact": False}),
    ],
)
def test_the_stand_in_refuses_unknown_requests(method: str, path: str, body: object) -> None:
    """An unknown path, parameter, field or condition is answered with 501."""
    with QdrantStandIn() as server:
        QdrantStore(server.url).create("c", DIMENSION)
        with pytest.raises(urllib.error.HTTPError, match="501") as caught:
            ask(server.url, method, path, body)
        caught.value.close()
