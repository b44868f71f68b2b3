"""Qdrant clusters with several addresses, rate limits, and refused requests."""

import base64
import socket
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from repertory.catalogue.item import item_key
from repertory.compose import Parts
from repertory.embedding.models import Model
from repertory.errors import StoreError, StoreRefusedError
from repertory.index import qdrant_cluster, qdrant_connection
from repertory.index.qdrant import QdrantStore
from repertory.index.qdrant_cluster import MAX_RETRY_AFTER_S, Cluster
from repertory.index.qdrant_collection import QdrantCollection
from repertory.index.qdrant_connection import QdrantServer, Replication
from repertory.index.qdrant_requests import Answer, NoAnswerError, Node
from repertory.index.vectors import Filter, VectorQuery
from repertory.settings import load
from tests.support.points import DIMENSION, direction, point
from tests.support.ports import free_port
from tests.support.qdrant import QdrantProcess
from tests.support.qdrant_http import RefusedError, ask
from tests.support.qdrant_server import QdrantStandIn

QUERY_OF_ITEMS = VectorQuery(vector=direction(1), limit=1, keys=[item_key("a")])


@pytest.fixture
def server() -> Iterator[QdrantStandIn]:
    """A stand-in for a Qdrant server."""
    with QdrantStandIn() as made:
        yield made


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of each wait; the test itself does not wait."""
    seconds: list[float] = []
    monkeypatch.setattr(qdrant_cluster, "sleep", seconds.append)
    return seconds


@pytest.mark.parametrize("number", [2, 3, 8])
def test_concurrent_failures_switch_nodes_once(number: int) -> None:
    """All requests reach the other node, although each of them noticed the failure."""
    cluster = Cluster("http://away:1,http://there:2")
    all_asked = threading.Barrier(number)
    first = threading.local()

    def send(node: Node) -> Answer:
        if node.host == "there":
            return Answer(200, b"", "")
        if not hasattr(first, "is_past"):
            first.is_past = all_asked.wait(10)
        raise NoAnswerError("refused", is_late=False)

    with ThreadPoolExecutor(number) as pool:
        found = [pool.submit(cluster.answer, send) for _ in range(number)]
        assert [one.result().status for one in found] == [200] * number


@pytest.mark.parametrize("status", [400, 413, 422])
def test_an_invalid_request_is_refused(server: QdrantStandIn, status: int) -> None:
    """A retry would not help; the error has the message of the server."""
    collection = QdrantStore(server.url).create("c", DIMENSION)
    server.refusals = [RefusedError(status, "Limit exceeded 256 > 10")]
    with pytest.raises(StoreRefusedError, match=rf"{status}.*Limit exceeded 256 > 10"):
        collection.upsert([point("a")])
    collection.upsert([point("a")])


@pytest.mark.parametrize("status", [401, 403, 404, 408, 429, 500, 502, 503])
def test_an_error_that_may_pass_is_no_refusal(server: QdrantStandIn, status: int) -> None:
    """Keys, missing collections, timeouts, rate limits and starting nodes can be fixed."""
    collection = QdrantStore(server.url).create("c", DIMENSION)
    server.refusals = [RefusedError(status, "Not now")]
    with pytest.raises(StoreError) as caught:
        collection.upsert([point("a")])
    assert not isinstance(caught.value, StoreRefusedError)


@pytest.mark.parametrize("status", [429, 503])
def test_a_write_waits_as_long_as_the_server_asks_for(
    server: QdrantStandIn, waited: list[float], status: int
) -> None:
    """It is sent again after the time in Retry-After."""
    collection = QdrantStore(server.url).create("c", DIMENSION)
    server.refusals = [RefusedError(status, "Slowly", after) for after in (2, 7)]
    collection.upsert([point("a")])
    assert waited == [2, 7]
    assert collection.count() == 1


@pytest.mark.parametrize("after", ["Wed, 21 Oct 2026 07:28:00 GMT", "-1", "\xb2"])
def test_an_unusable_waiting_time_is_ignored(
    server: QdrantStandIn, waited: list[float], after: str
) -> None:
    """A date, a negative number or a sign that only looks like a digit."""
    collection = QdrantStore(server.url).create("c", DIMENSION)
    server.refusals = [RefusedError(429, "Slowly", after)]
    with pytest.raises(StoreError, match="Slowly"):
        collection.upsert([point("a")])
    assert waited == []


def test_the_waiting_time_of_a_write_is_limited(server: QdrantStandIn, waited: list[float]) -> None:
    """A single wait, the total and the number of waits are bounded."""
    collection = QdrantStore(server.url).create("c", DIMENSION)
    server.refusals = [RefusedError(429, "Slowly", int(MAX_RETRY_AFTER_S) + 1)]
    with pytest.raises(StoreError, match="Slowly"):
        collection.upsert([point("a")])
    assert waited == []
    server.refusals = [RefusedError(429, "Slowly", 25)] * 3
    with pytest.raises(StoreError, match="Slowly"):
        collection.upsert([point("a")])
    assert waited == [25, 25]
    waited.clear()
    server.refusals = [RefusedError(429, "Slowly", int(MAX_RETRY_AFTER_S))]
    collection.upsert([point("a")])
    assert waited == [MAX_RETRY_AFTER_S]
    waited.clear()
    server.refusals = [RefusedError(429, "Slowly", 0)] * 1_000
    with pytest.raises(StoreError, match="Slowly"):
        collection.upsert([point("a")])
    assert len(waited) <= MAX_RETRY_AFTER_S


@pytest.mark.parametrize(
    "read",
    [
        lambda c: c.search(direction(1), 1),
        lambda c: c.records([item_key("a")]),
        lambda c: list(c.states()),
        lambda c: c.count(),
    ],
)
def test_a_read_fails_at_once_at_a_rate_limit(
    server: QdrantStandIn, waited: list[float], read: Callable[[QdrantCollection], object]
) -> None:
    """A user or a busy service is waiting for the result."""
    collection = QdrantStore(server.url).create("c", DIMENSION)
    server.refusals = [RefusedError(429, "Slowly", 1)]
    with pytest.raises(StoreError, match="Slowly"):
        read(collection)
    assert waited == []


def test_a_reused_connection_that_the_server_closed_is_replaced() -> None:
    """After a restart of the server, the read is sent again on a new connection."""
    with QdrantProcess() as process:
        collection = QdrantStore(process.url).create("c", DIMENSION)
        collection.upsert([point("a")])
        assert len(collection.search(direction(1), 3)) == 1
        process.restart()
        assert len(collection.search(direction(1), 3)) == 1
        process.kill()
        with pytest.raises(StoreError, match="cannot be reached"):
            collection.search(direction(1), 3)


def test_a_read_uses_the_proxy_in_the_environment(
    server: QdrantStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server on this machine is asked directly."""
    collection = QdrantStore(server.url).create("c", DIMENSION)
    collection.upsert([point("a")])
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.delenv("no_proxy", raising=False)
    behind = QdrantServer("http://qdrant.example", None)
    assert len(QdrantCollection(behind, "c").search(direction(1), 3)) == 1
    assert server.requests[-1].headers["host"] == "qdrant.example:6333"
    behind.close()
    monkeypatch.setenv("http_proxy", dead_address())
    here = QdrantServer(server.url, None)  # on this machine
    assert len(QdrantCollection(here, "c").search(direction(1), 3)) == 1
    here.close()


def dead_address() -> str:
    """An address at which nothing answers."""
    return f"http://127.0.0.1:{free_port()}"


def test_the_addresses_are_tried_in_turn(server: QdrantStandIn) -> None:
    """Requests move on from unreachable nodes, and stay with one that answers."""
    store = QdrantStore(f"{dead_address()}, {dead_address()},{server.url}")
    collection = store.create("c", DIMENSION)
    collection.upsert([point("a")])
    store.set_alias("alias", "c")
    assert store.alias("alias") == "c"
    assert collection.count() == 1
    asked = len(server.requests)
    assert len(collection.search(direction(1), 3)) == 1
    assert len(server.requests) == asked + 1
    assert {request.headers["host"] for request in server.requests} == {server.url[7:]}


def test_the_addresses_are_tried_in_the_given_order(server: QdrantStandIn) -> None:
    """An administrator can put near nodes first."""
    with QdrantStandIn() as last:
        store = QdrantStore(f"{dead_address()},{server.url},{last.url}")
        assert store.collections() == []
        assert server.requests
        assert not last.requests


def test_a_killed_node_is_replaced_by_the_next(server: QdrantStandIn) -> None:
    """A request on an open connection to it succeeds."""
    first = QdrantStandIn()
    with first:
        store = QdrantStore(f"{first.url},{server.url}")
        assert store.collections() == []
        assert not server.requests
    assert store.collections() == []
    assert server.requests


def test_a_node_that_is_not_ready_is_skipped(server: QdrantStandIn) -> None:
    """A starting node answers 503; if all nodes do, that is the error."""
    with QdrantStandIn() as starting:
        collection = QdrantStore(f"{server.url},{starting.url}").create("c", DIMENSION)
        server.refusals = [RefusedError(503, "Starting")]
        with pytest.raises(StoreError, match="no collection c any more"):
            collection.upsert([point("a")])
        server.refusals = [RefusedError(503, "Starting")]
        starting.refusals = [RefusedError(503, "Starting")]
        with pytest.raises(StoreError, match="Starting"):
            collection.upsert([point("a")])


def test_without_nodes_the_error_names_all_addresses() -> None:
    """The error says that the cluster cannot be reached."""
    one, other = dead_address(), dead_address()
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        QdrantStore(f"{one},{other}").collections()
    assert f"{one}, {other}" in str(caught.value)


def test_a_silent_node_delays_one_request(
    server: QdrantStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That request fails at its timeout; the next one goes to another node."""
    monkeypatch.setattr(qdrant_connection, "QUERY_TIMEOUT_S", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        store = QdrantStore(f"{url},{server.url}")
        with pytest.raises(StoreError, match="cannot be reached"):
            store.collections()
        assert not server.requests
        assert store.collections() == []


def test_the_addresses_must_have_the_same_path() -> None:
    """Behind a proxy, one path leads to all nodes."""
    with pytest.raises(StoreError, match="same path"):
        Cluster("http://a/one,http://b/two")
    assert Cluster("http://a/one,http://b/one/").shown == "http://a:6333/one, http://b:6333/one"


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://qdrant.example.com", "https://qdrant.example.com/c"),
        ("https://qdrant.example.com:6333", "https://qdrant.example.com:6333/c"),
        ("https://qdrant.example.com:443", "https://qdrant.example.com/c"),
        ("http://qdrant", "http://qdrant:6333/c"),
        ("http://qdrant:80", "http://qdrant/c"),
        ("http://[::1]:7", "http://[::1]:7/c"),
        ("http://user:secret@qdrant:7", "http://qdrant:7/c"),
    ],
)
def test_an_address_without_a_port_uses_the_default_port(url: str, address: str) -> None:
    """The default is 443 for https, and Qdrant's own port otherwise."""
    asked: list[str] = []

    def send(node: Node) -> Answer:
        asked.append(f"{node}/c")
        return Answer(200, b"", "")

    cluster = Cluster(url)
    cluster.answer(send)
    assert asked == [address]
    assert address.removesuffix("/c") == cluster.shown


@pytest.mark.parametrize("urls", ["https://a", "https://a,http://b"])
@pytest.mark.parametrize("secret", ["API key", "password"])
def test_a_secret_that_is_sent_unencrypted_is_a_warning(urls: str, secret: str) -> None:
    """One unencrypted address is enough for the warning."""
    key = "key" if secret == "API key" else None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        QdrantServer(urls if key else urls.replace("//a", "//me:secret@a"), key).close()
    messages = [str(one.message) for one in caught]
    is_said = any(f"The {secret} of Qdrant is sent over an insecure" in one for one in messages)
    assert is_said == ("http:" in urls)
    assert "secret@" not in str(messages)


@pytest.mark.filterwarnings("ignore:The password of Qdrant is sent over an insecure connection")
@pytest.mark.parametrize("is_proxied", [False, True])
def test_a_proxy_before_a_node_gets_the_password_of_its_url(
    server: QdrantStandIn, monkeypatch: pytest.MonkeyPatch, *, is_proxied: bool
) -> None:
    """The password is sent by basic authentication, and to no other node."""
    other = server.another_node()
    urls = [server.url, other.url]
    if is_proxied:  # with a proxy in the environment
        monkeypatch.setenv("http_proxy", server.url)
        monkeypatch.delenv("no_proxy", raising=False)
        urls = ["http://a.example", "http://b.example"]
    urls[0] = urls[0].replace("//", "//me%40work:p%C3%A4ss%2Cword@")
    for asked, user in ((urls, "me@work:päss,word"), (urls[::-1], "")):
        found = QdrantServer(",".join(asked), None)
        found.check_version()
        found.close()
        kind, _, sent = server.requests[-1].headers.get("authorization", "").partition(" ")
        assert (kind, base64.b64decode(sent).decode()) == ("Basic" if user else "", user)
    other.stop()


def test_a_missing_key_is_an_error_that_mentions_the_password() -> None:
    """The server may be behind a proxy that expects a password."""
    with QdrantStandIn(api_key="right") as server, pytest.raises(StoreError, match="password"):
        QdrantServer(server.url, None).check_version()


def test_a_server_behind_a_path_is_found(server: QdrantStandIn) -> None:
    """Each request path begins with the path of the address."""
    with pytest.raises(StoreError, match="501"):
        QdrantStore(f"{server.url}/behind").collections()
    assert server.requests[-1].path == "/behind/collections"
    with pytest.raises(StoreError, match="501"):
        QdrantStore(f"{server.url}/two words/köln").collections()
    assert server.requests[-1].path == "/two%20words/k%C3%B6ln/collections"


def test_new_collections_use_the_configured_replication(server: QdrantStandIn) -> None:
    """Without settings, the cluster uses its own defaults."""
    spread = Replication(replication_factor=3, shard_number=6, write_consistency_factor=2)
    QdrantStore(server.url, replication=spread).create("c", DIMENSION)
    params = ask(server.url, "GET", "/collections/c")["result"]["config"]["params"]
    names = ("replication_factor", "shard_number", "write_consistency_factor")
    assert [params[name] for name in names] == [3, 6, 2]
    QdrantStore(server.url).create("d", DIMENSION)
    (made,) = (
        request for request in server.requests if request.path == "/collections/d" and request.body
    )
    assert not {*names} & {*made.body}


def test_the_settings_of_a_cluster_reach_index_and_cache(
    server: QdrantStandIn, tmp_path: Path
) -> None:
    """Both use all addresses and the configured replication."""
    environment = {
        "REPERTORY_QDRANT_URL": f"{dead_address()},{server.url}",
        "REPERTORY_REDIS_URL": "redis://127.0.0.1:1/0",
        "REPERTORY_QDRANT_REPLICATION_FACTOR": "2",
        "REPERTORY_QDRANT_SHARD_NUMBER": "4",
        "REPERTORY_QDRANT_WRITE_CONSISTENCY": "1",
    }
    parts = Parts(load({"data_dir": str(tmp_path)}, tmp_path, environment), tmp_path)
    parts.store.create("c", DIMENSION)
    parts.cache(Model(id="m", slug="m", dimension=DIMENSION, max_tokens=8)).count()
    made = [
        request.body
        for request in server.requests
        if request.method == "PUT" and "vectors" in request.body
    ]
    assert len(made) == 2
    for body in made:
        assert body["replication_factor"] == 2
        assert body["shard_number"] == 4
        assert body["write_consistency_factor"] == 1


def test_readiness_follows_the_servers_optimizer(server: QdrantStandIn) -> None:
    """A collection is not ready while it is optimized; an error of the optimizer is raised."""
    collection = QdrantStore(server.url).create("c", DIMENSION)
    collection.upsert([point("a")])
    assert collection.is_ready()
    server.optimizer("c", "works")
    assert not collection.is_ready()
    server.optimizer("c", "No space left on device")
    with pytest.raises(StoreError, match=r"cannot optimize c.*No space left.*restart"):
        collection.is_ready()
    server.optimizer("c", "runs")
    assert collection.is_ready()
    collection.close()
    with pytest.raises(StoreError, match="has been closed"):
        collection.is_ready()


def test_a_server_that_was_restarted_is_told_to_optimize(server: QdrantStandIn) -> None:
    """After a restart, a server waits for a write before it optimizes; we trigger it."""
    collection = QdrantStore(server.url).create("c", DIMENSION)
    server.optimizer("c", "works")
    assert ask(server.url, "GET", "/collections/c")["result"]["status"] == "grey"
    assert not collection.is_ready()
    assert ask(server.url, "GET", "/collections/c")["result"]["status"] == "yellow"
    server.optimizer("c", "runs")
    assert collection.is_ready()


def test_optimizing_waits_for_the_server(
    server: QdrantStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It polls until the server is done or the timeout is over."""
    collection = QdrantStore(server.url).create("c", DIMENSION)
    server.optimizer("c", "works")
    polls: list[float] = []

    def pause(seconds: float) -> None:
        polls.append(seconds)
        if len(polls) == 3:
            server.optimizer("c", "runs")

    monkeypatch.setattr("repertory.index.qdrant_collection.sleep", pause)
    collection.optimize()
    assert len(polls) == 3
    server.optimizer("c", "works")
    monkeypatch.setattr("repertory.index.qdrant_collection.OPTIMIZE_TIMEOUT_S", 0.0)
    collection.optimize()
    assert len(polls) == 3


@pytest.mark.parametrize(
    ("limits", "use"),
    [
        ({"upsert_max_batchsize": 1}, lambda c: c.upsert([point("a"), point("b")])),
        ({"search_allow_exact": False}, lambda c: c.query([QUERY_OF_ITEMS])),
        ({"search_max_hnsw_ef": 64}, lambda c: c.search(direction(1), 1)),
        ({"search_max_oversampling": 1.5}, lambda c: c.search(direction(1), 1)),
        ({"max_query_limit": 10}, lambda c: c.search(direction(1), 11)),
        ({"max_query_limit": 10}, lambda c: list(c.scan())),
        ({"max_timeout": 1}, lambda c: c.search(direction(1), 1)),
        ({"condition_max_size": 1}, lambda c: c.delete_items(["a", "b"], before=2)),
        ({"filter_max_conditions": 1}, lambda c: c.delete_items(["a"], before=2)),
    ],
)
def test_limits_of_strict_mode_are_refusals(
    limits: dict[str, object], use: Callable[[QdrantCollection], object]
) -> None:
    """An administrator has set these limits, so a retry would not help."""
    with QdrantStandIn(strict_mode=limits | {"enabled": True}) as server:
        collection = QdrantStore(server.url).create("c", DIMENSION)
        with pytest.raises(StoreRefusedError, match="Bad request"):
            use(collection)
    with QdrantStandIn(strict_mode=limits | {"enabled": False}) as server:
        use(QdrantStore(server.url).create("c", DIMENSION))


def test_every_filter_has_its_index() -> None:
    """A server may refuse filters on fields without an index."""
    limits = {"unindexed_filtering_retrieve": False, "unindexed_filtering_update": False}
    with QdrantStandIn(strict_mode=limits | {"enabled": True}) as server:
        collection = QdrantStore(server.url).create("c", DIMENSION)
        collection.upsert([point("a")])
        every = Filter(kinds=("tool",), sources=("files",), servers=("",), tags=("x",))
        collection.search(direction(1), 1, every)
        assert len([*collection.states()]) == 1
        collection.delete_sections(["a"], before=9)
        collection.delete_items(["a"], before=9)
        assert collection.count() == 0


def test_an_answer_in_an_unknown_format_is_an_error(
    server: QdrantStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the supported versions."""
    QdrantStore(server.url).create("c", DIMENSION)
    monkeypatch.setattr(server, "_result", lambda *_: {"status": "purple"})
    with pytest.raises(StoreError, match=r"in an unknown format .* from 1\.16 to"):
        QdrantServer(server.url, None).exists("c")


def test_answers_are_not_compressed(server: QdrantStandIn) -> None:
    """TCP would delay the last packets of a compressed answer by 40 ms."""
    store = QdrantStore(server.url)
    collection = store.create("c", DIMENSION)
    collection.upsert([point("a")])
    collection.query([QUERY_OF_ITEMS])
    assert collection.records([item_key("a")])
    assert {request.headers["accept-encoding"] for request in server.requests} == {"identity"}
