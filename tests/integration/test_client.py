"""The client of the query service, against a real server and against invalid answers."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from http.server import BaseHTTPRequestHandler
from threading import Event, Timer

import pytest

from repertory.catalogue.item import Kind
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
from repertory.index.keywords.document import Entry
from repertory.index.vectors import Filter
from repertory.remote import client as module
from repertory.remote import requests as remote
from repertory.remote.client import Client
from repertory.remote.server_identity import HEADER, proof_of
from repertory.search.query import Query
from repertory.system.cancellation import waiting
from repertory.values import Weights
from tests.support.builders import write_skill
from tests.support.http_stub import serving
from tests.support.listening import served
from tests.support.ports import free_port
from tests.support.query_service import RunningService, indexed_server

WAIT_S = 5.0  # until a test gives up

FILTERED = Filter(kinds=("skill",), sources=("project",))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A server with three skills and a document."""
    project = tmp_path_factory.mktemp("served") / "project"
    write_skill(project, "key-rotation", "Rotate API keys without downtime")
    write_skill(project, "release-notes", "Write release notes from merged pull requests")
    write_skill(project, "post-mortem?", "Write up an incident: timeline, causes, actions")
    (project / "README.md").write_text("# Shop\n\nThe web shop and its checkout.\n")
    with indexed_server(project, tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture(scope="module")
def client(running: RunningService) -> Iterator[Client]:
    """A client of the server."""
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
def test_answers_equal_answers_of_the_engine(
    client: Client, running: RunningService, query: Query
) -> None:
    """Hits and evidence arrive unchanged."""
    answer = client.search(query)

    assert answer == running.service.engine.search(query)
    assert answer.items == 4


@pytest.mark.parametrize("item", ["project/key-rotation", "documents/README.md", "release-notes"])
@pytest.mark.parametrize(
    "query", [Query(text="rotate API keys", limit=1), Query(text="wriet", where=FILTERED)]
)
def test_an_explanation_equals_the_explanation_of_the_engine(
    client: Client, running: RunningService, query: Query, item: str
) -> None:
    """The item may be shown, hidden or filtered out, and given by id or by name."""
    found = client.explain(query, item)

    assert found == running.service.explain(query, item)
    assert found.shown == (found.hit in client.search(query).hits)


def test_an_unknown_item_cannot_be_explained(client: Client) -> None:
    """The error is the same as in the server."""
    with pytest.raises(UnknownItemError, match="did you mean project/key-rotation"):
        client.explain(Query(text="keys"), "key-rotaton")


def test_invalid_unicode_is_replaced(client: Client) -> None:
    """A shell may pass bytes that are not valid text."""
    assert client.search(Query(text="rotate keys \udcff")).query == "rotate keys ?"


def test_entries_are_read_in_pages(
    client: Client, running: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All entries arrive in order, each once."""
    monkeypatch.setattr(module, "PAGE_SIZE", 3)
    entries = client.entries()
    there = running.service.entries(Filter())

    assert [entry.id for entry in entries] == [entry.id for entry in there]
    assert [(one.compact, one.tags, one.kind) for one in entries] == [
        (one.compact, one.tags, one.kind) for one in there
    ]
    assert {entry.kind for entry in client.entries(FILTERED)} == {Kind.SKILL}


def test_reading_pages_ends_with_an_older_server(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older release ignores `after` and repeats the first page."""
    expected = client.entries()
    page_of, asked = client.page, []

    def page(
        where: Filter, limit: int, offset: int = 0, after: str = ""
    ) -> tuple[list[Entry], int]:
        asked.append(after)
        assert len(asked) <= 2 * len(expected)
        return page_of(where, limit, offset)

    monkeypatch.setattr(module, "PAGE_SIZE", 3)
    monkeypatch.setattr(client, "page", page)
    assert client.entries() == expected


def test_items_are_complete(client: Client, running: RunningService) -> None:
    """An unknown id is an error that suggests a similar id."""
    for entry in client.entries():
        assert client.item(entry.id) == running.service.item(entry.id)
    with pytest.raises(UnknownItemError, match="did you mean project/key-rotation"):
        client.item("project/key-rotaton")


def test_stats_and_jobs_are_read(client: Client, running: RunningService) -> None:
    """Statistics and failed jobs arrive; a retry of unknown jobs retries nothing."""
    failure = Failure(
        id="f1", collection="c", items={"a": ""}, error="It is odd.", at=1.0, attempts=3
    )
    running.parts.coordination.failures.add(failure)
    stats, jobs = client.stats(), client.jobs()
    running.parts.coordination.failures.remove(["f1"])

    assert (stats.items, stats.building, stats.queue.failed) == (4, None, 1)
    assert {source.name for source in stats.sources} == {"project", "documents"}
    assert [(job.id, job.items, job.error) for job in jobs.failed] == [("f1", ["a"], "It is odd.")]
    assert client.retry(["nothing"]) == 0


def test_a_rebuild_is_started(client: Client) -> None:
    """The answer has the configuration and the generation."""
    begun = client.rebuild()

    assert begun.configuration == client.stats().configuration
    assert begun.generation == 2


def test_only_a_call_ends_with_its_caller(client: Client) -> None:
    """Other requests of a cancelled caller complete, so the server does not look lost."""
    with waiting():
        late = copy_context()
    assert late.run(client.remote.is_alive, 30.0)
    assert late.run(client.stats).items
    with pytest.raises(StoreError, match="cannot be reached"):
        late.run(client.call, "desk__add", {})


def test_health_is_checked(client: Client) -> None:
    """A server that answers is alive; an unreachable one is not."""
    assert client.remote.is_alive(5.0)
    assert not Client(f"http://127.0.0.1:{free_port()}").remote.is_alive(5.0)


@contextmanager
def answering(status: int, body: bytes, *headers: tuple[str, str]) -> Iterator[Client]:
    """A client of a server that answers every request in the same way."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in headers:
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)

    with serving(answer) as url:
        yield Client(url, "rpt_key")


def problem(status: int, error: object = "") -> bytes:
    """A problem as the server sends it."""
    fields = {"type": "about:blank", "title": "No", "detail": "It is so.", "side": "us"}
    return json.dumps({**fields, "status": status, "error": error}).encode()


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [
        (401, UsageError, "It is so. Set REPERTORY_SERVER_API_KEY"),
        (403, UsageError, "REPERTORY_SERVER_API_KEY"),
        (404, StoreError, "Run the same release on both sides, and check the address"),
        (422, UsageError, "It is so."),
        (429, StoreError, "cannot answer now: It is so."),
        (500, StoreError, "cannot answer now: It is so."),
        (503, StoreError, "cannot answer now: It is so."),
    ],
)
def test_a_problem_becomes_the_matching_error(
    status: int, error: type[RepertoryError], message: str
) -> None:
    """The error has the message of the problem."""
    with (
        answering(status, problem(status)) as client,
        pytest.raises(error, match=message) as raised,
    ):
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
def test_an_error_of_the_server_is_raised_by_the_client(
    status: int, error: type[RepertoryError]
) -> None:
    """The problem names the class of the error; the message is the same."""
    server = answering(status, problem(status, error.__name__))
    with server as client, pytest.raises(error, match=r"^It is so\.$") as raised:
        client.stats()
    assert type(raised.value) is error


@pytest.mark.parametrize(
    "error",
    ["", "UnknownError", "__doc__", "__builtins__", "Exception", "x" * 9_999, "é\0", 5, None, {}],
)
def test_a_foreign_error_class_is_ignored(error: object) -> None:
    """Only errors of Repertory are raised; for other names the status decides."""
    with answering(422, problem(422, error)) as client, pytest.raises(RepertoryError) as raised:
        client.stats()
    assert type(raised.value) in (UsageError, StoreError)


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (404, b"<h1>Not found</h1>", "not a Repertory server"),
        (404, b'{"detail":"Not Found"}', "not a Repertory server"),
        (302, b"", "not a Repertory server"),
        (200, b"<h1>Hello</h1>", "cannot be read"),
        (200, b'{"query": "x"}', "cannot be read"),
        (200, b'{"results": [' + b"[" * 5_000, "cannot be read"),
        (200, b'{"query": "\xff"}', "cannot be read"),
    ],
)
def test_an_answer_of_another_program_is_an_error(status: int, body: bytes, message: str) -> None:
    """The error is one sentence, and redirects are not followed."""
    elsewhere = ("Location", "http://127.0.0.1:1/")
    with answering(status, body, elsewhere) as client, pytest.raises(StoreError, match=message):
        client.search(Query(text="x"))


@pytest.mark.parametrize("inner", ['[{"other": 1}]', "not json"])
def test_an_unreadable_answer_of_a_function_is_an_error(inner: str) -> None:
    """The result of a function is JSON within the JSON of the answer."""
    with answering(200, json.dumps(inner).encode()) as client, pytest.raises(StoreError) as raised:
        client.similar_skills("x")
    assert "cannot be read" in str(raised.value)


@pytest.mark.parametrize("path", ["/contents", "/items"])
def test_a_missing_operation_is_explained_by_another_release(path: str) -> None:
    """A server that was started before an upgrade may lack an operation or a parameter."""
    asked = []
    refused = {**json.loads(problem(422, "UsageError")), "detail": "It is no use: after: unknown."}

    def answer(request: BaseHTTPRequestHandler) -> None:
        asked.append(request.path.partition("?")[2])
        is_health = request.path == "/healthz"
        body = {"alive": True, "proof": proof_of("own", request.headers[HEADER] or "")}
        is_known = "/items" in request.path
        request.send_response(200 if is_health else 422 if is_known else 404)
        request.end_headers()
        request.wfile.write(json.dumps(body if is_health else refused if is_known else {}).encode())

    with serving(answer) as url:
        client = Client(url, "own", is_own=True)
        with pytest.raises(RepertoryError, match="Run the same release on both sides"):
            client.contents() if path == "/contents" else client.entries()
    assert "after" not in asked[-1]


def test_a_server_proves_itself_before_it_gets_the_token() -> None:
    """A server without proof never receives the token; a restarted server is another one."""
    asked: list[tuple[str, str | None]] = []
    tokens = iter(["other", "own", "other"])

    def answer(request: BaseHTTPRequestHandler) -> None:
        asked.append((request.path, request.headers["Authorization"]))
        is_health = request.path == "/healthz"
        proof = proof_of(next(tokens), request.headers[HEADER]) if is_health else ""
        request.send_response(200 if is_health else 401)
        request.end_headers()
        request.wfile.write(json.dumps({"alive": True, "proof": proof}).encode())

    with serving(answer) as url:
        client = Client(url, "own", is_own=True)
        with pytest.raises(StoreError, match="not the server of this data directory"):
            client.stats()
        with pytest.raises(StoreError, match="was restarted"):
            client.stats()
        with pytest.raises(StoreError, match="not the server of this data directory"):
            client.stats()
    assert asked == [
        ("/healthz", None),
        ("/healthz", None),
        ("/v1/stats", "Bearer own"),
        ("/healthz", None),
    ]


def test_the_size_of_an_answer_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A larger answer is an error."""
    monkeypatch.setattr(remote, "MAX_ANSWER_SIZE", 100)
    with answering(200, b" " * 101) as client, pytest.raises(StoreError, match="too large"):
        client.stats()


def test_a_silent_server_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is the same as for an unreachable server."""
    monkeypatch.setattr(remote, "ANSWER_TIMEOUT_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(StoreError, match="cannot be reached"):
            client.stats()


def test_a_program_that_answers_endlessly_is_not_the_server() -> None:
    """The time to prove an identity ends, even while another program continues to send."""
    done = Event()

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        with suppress(OSError):  # the client hangs up
            while not done.wait(0.01):
                request.wfile.write(b" ")

    with serving(answer) as url:
        stopped = Timer(WAIT_S, done.set)
        stopped.start()
        try:
            assert not Client(url, "own", is_own=True).remote.is_alive(0.1)
            assert not done.is_set()
        finally:
            stopped.cancel()
            done.set()


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
        "http://local host",
        "http://local..host",
        "http://local\0host",
        "http://localhost/ключ",
    ],
)
def test_an_invalid_url_is_refused(url: str) -> None:
    """The message shows a valid URL and no possible secret."""
    with pytest.raises(ConfigurationError, match="http://localhost:7700") as raised:
        Client(url)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("key", ["two\r\nlines: x", "ключ"])
def test_an_invalid_key_is_refused(key: str) -> None:
    """The key is neither sent nor shown."""
    with pytest.raises(ConfigurationError) as raised:
        Client("http://localhost", key)
    assert key not in str(raised.value)
