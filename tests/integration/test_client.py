"""The client, against a real server, and against answers that no good server gives."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from repertory import client as module
from repertory.catalogue.item import Kind
from repertory.client import Client
from repertory.coordination.failures import Failure
from repertory.errors import (
    ArgumentsError,
    CallError,
    CallsOffError,
    CallTimeoutError,
    ConfigurationError,
    RepertoryError,
    StoreError,
    UnknownItemError,
    UsageError,
)
from repertory.index.vectors import Filter
from repertory.search.query import Query, Weights
from tests.support.listening import served
from tests.support.ports import free_port
from tests.support.query_service import RunningService, looked_at, skill

FILTERED = Filter(kinds=("skill",), sources=("project",))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """The parts of a server of three skills and a document."""
    project = tmp_path_factory.mktemp("served") / "project"
    skill(project, "key-rotation", "Rotate API keys without downtime")
    skill(project, "release-notes", "Write release notes from merged pull requests")
    skill(project, "post-mortem?", "Write up an incident: timeline, causes, actions")
    (project / "README.md").write_text("# Shop\n\nThe web shop and its checkout.\n")
    with looked_at(project, tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture(scope="module")
def client(running: RunningService) -> Iterator[Client]:
    """A client of that server."""
    with served(running) as url:
        yield Client(f"{url}/")


@pytest.mark.parametrize(
    "query",
    [
        Query(text="rotate API keys"),
        Query(text="write", limit=9, threshold=0.0, weights=Weights(alpha=0.2)),
        Query(
            text="rotate keyz", threshold=0.0, weights=Weights(name_weight=0.1, section_weight=0.5)
        ),
        Query(text="write", limit=9, threshold=0.0, where=FILTERED),
        Query(text="zzqx", threshold=1.0),
        Query(text="100 % & more? #é+漢字"),
    ],
)
def test_an_answer_is_the_engines(client: Client, running: RunningService, query: Query) -> None:
    """Hits, evidence and all: what crossed the wire is what was found."""
    answer = client.search(query)

    assert answer == running.service.engine.search(query)
    assert answer.items == 4


@pytest.mark.parametrize("item", ["project/key-rotation", "documents/README.md", "release-notes"])
@pytest.mark.parametrize(
    "query", [Query(text="rotate API keys", limit=1), Query(text="wriet", where=FILTERED)]
)
def test_an_explanation_is_the_engines(
    client: Client, running: RunningService, query: Query, item: str
) -> None:
    """Of what is shown, as the search shows it, left out or filtered out; by id and by name."""
    found = client.explain(query, item)

    assert found == running.service.explain(query, item)
    assert found.shown == (found.hit in client.search(query).hits)


def test_what_cannot_be_explained_is_an_error(client: Client) -> None:
    """The same one as in the server."""
    with pytest.raises(UnknownItemError, match="did you mean project/key-rotation"):
        client.explain(Query(text="keys"), "key-rotaton")


def test_what_cannot_be_sent_is_replaced(client: Client) -> None:
    """A shell may hand over bytes that are no text."""
    assert client.search(Query(text="rotate keys \udcff")).query == "rotate keys ?"


def test_entries_come_in_pages(
    client: Client, running: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them, in order, once each."""
    monkeypatch.setattr(module, "PAGE_SIZE", 3)
    entries = client.entries()
    there = running.service.entries(Filter())

    assert [entry.id for entry in entries] == [entry.id for entry in there]
    assert [(one.compact, one.tags, one.kind) for one in entries] == [
        (one.compact, one.tags, one.kind) for one in there
    ]
    assert {entry.kind for entry in client.entries(FILTERED)} == {Kind.SKILL}


def test_an_item_is_whole(client: Client, running: RunningService) -> None:
    """Whatever its id; one that is not there is told with what was meant."""
    for entry in client.entries():
        assert client.item(entry.id) == running.service.item(entry.id)
    with pytest.raises(UnknownItemError, match="did you mean project/key-rotation"):
        client.item("project/key-rotaton")


def test_stats_and_jobs_are_read(client: Client, running: RunningService) -> None:
    """What is indexed and what failed; failed jobs go back on the queue."""
    failure = Failure(
        id="f1", collection="c", items={"a": ""}, error="It is odd.", at=1.0, attempts=3, job={}
    )
    running.parts.coordination.failures.add(failure)
    stats, jobs = client.stats(), client.jobs()
    running.parts.coordination.failures.remove(["f1"])

    assert (stats.items, stats.building, stats.queue.failed) == (4, None, 1)
    assert {source.name for source in stats.sources} == {"project", "documents"}
    assert [(job.id, job.items, job.error) for job in jobs.failed] == [("f1", ["a"], "It is odd.")]
    assert client.retry(["nothing"]) == 0


def test_a_rebuild_is_begun(client: Client) -> None:
    """It says which generation of what."""
    begun = client.rebuild()

    assert begun.configuration == client.stats().configuration
    assert begun.generation == 2


def test_whether_it_is_alive(client: Client) -> None:
    """Who answers is; who does not is not."""
    assert client.is_alive(5.0)
    assert not Client(f"http://127.0.0.1:{free_port()}").is_alive(5.0)


@contextmanager
def answering(status: int, body: bytes, *headers: tuple[str, str]) -> Iterator[Client]:
    """A client of a server that gives one answer to everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield Client(f"http://127.0.0.1:{server.server_port}", "rpt_key")
        finally:
            server.shutdown()
            thread.join()


def problem(status: int, error: object = "") -> bytes:
    """A problem as the server tells it."""
    told = {"type": "about:blank", "title": "No", "detail": "It is so.", "side": "us"}
    return json.dumps({**told, "status": status, "error": error}).encode()


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        (401, UsageError, "It is so. A key is given as REPERTORY_SERVER_API_KEY"),
        (403, UsageError, "REPERTORY_SERVER_API_KEY"),
        (404, StoreError, "no Repertory server"),
        (422, UsageError, "It is so."),
        (429, StoreError, "cannot answer now: It is so."),
        (500, StoreError, "cannot answer now: It is so."),
        (503, StoreError, "cannot answer now: It is so."),
    ],
)
def test_a_problem_is_the_error_it_stands_for(
    status: int, error: type[RepertoryError], said: str
) -> None:
    """Its words are kept."""
    with answering(status, problem(status)) as client, pytest.raises(error, match=said) as raised:
        client.stats()
    assert type(raised.value) is error


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (404, UnknownItemError),
        (403, CallsOffError),
        (422, ArgumentsError),
        (502, CallError),
        (504, CallTimeoutError),
    ],
)
def test_an_error_that_was_raised_there_is_raised_here(
    status: int, error: type[RepertoryError]
) -> None:
    """The problem names its class; the words are the same."""
    told = answering(status, problem(status, error.__name__))
    with told as client, pytest.raises(error, match=r"^It is so\.$") as raised:
        client.stats()
    assert type(raised.value) is error


@pytest.mark.parametrize(
    "error", ["", "Nobody", "__doc__", "__builtins__", "Exception", "x" * 9_999, "é\0", 5, None, {}]
)
def test_a_class_that_is_none_of_ours_is_passed_over(error: object) -> None:
    """Whatever a server says: only our own errors are raised, by what the status stands for."""
    with answering(422, problem(422, error)) as client, pytest.raises(RepertoryError) as raised:
        client.stats()
    assert type(raised.value) in (UsageError, StoreError)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (404, b"<h1>Not found</h1>", "no Repertory server"),
        (404, b'{"detail":"Not Found"}', "no Repertory server"),
        (302, b"", "no Repertory server"),
        (200, b"<h1>Hello</h1>", "cannot be read"),
        (200, b'{"query": "x"}', "cannot be read"),
        (200, b'{"results": [' + b"[" * 5_000, "cannot be read"),
        (200, b'{"query": "\xff"}', "cannot be read"),
    ],
)
def test_what_is_no_server_is_said_to_be_none(status: int, body: bytes, said: str) -> None:
    """Whatever it answers, it is one sentence; and it is not followed elsewhere."""
    elsewhere = ("Location", "http://127.0.0.1:1/")
    with answering(status, body, elsewhere) as client, pytest.raises(StoreError, match=said):
        client.search(Query(text="x"))


def test_an_answer_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more is read than can be of any use."""
    monkeypatch.setattr(module, "MAX_ANSWER_SIZE", 100)
    with answering(200, b" " * 101) as client, pytest.raises(StoreError, match="more than"):
        client.stats()


def test_a_server_that_says_nothing_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for, but not for ever."""
    monkeypatch.setattr(module, "ANSWER_TIMEOUT_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(StoreError, match="cannot be reached"):
            client.stats()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:7700",
        "ftp://localhost",
        "http://",
        "http://localhost:0",
        "http://localhost:many",
        "http://[::1",
        "http://user:secret@localhost",
        "http://localhost/?key=secret",
    ],
)
def test_what_is_no_url_is_refused(url: str) -> None:
    """The message shows what one looks like, and nothing of what may be secret."""
    with pytest.raises(ConfigurationError, match="http://localhost:7700") as raised:
        Client(url)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("key", ["two\r\nlines: x", "ключ"])
def test_what_can_be_no_key_is_refused(key: str) -> None:
    """It is not sent, and not shown."""
    with pytest.raises(ConfigurationError) as raised:
        Client("http://localhost", key)
    assert key not in str(raised.value)
