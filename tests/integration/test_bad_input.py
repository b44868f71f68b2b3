"""The same invalid input on every face: one clear sentence in the form of that face."""

import asyncio
import json
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode
from urllib.request import urlopen

import msgspec
import pytest
from mcp import Client as McpClient
from mcp import MCPError
from starlette.testclient import TestClient

from repertory.functions.table import FUNCTIONS, PORTABLE
from repertory.search.query import MAX_QUERY_LENGTH
from repertory.wire import Refusal
from tests.support.builders import write_skill
from tests.support.command_line import TOOLS, Cli
from tests.support.listening import served
from tests.support.query_service import RunningService, indexed_server

HUGE = 10**30
Response = Any  # the type belongs to the HTTP library of the test client
DEEP = [200, 300, 900, 1_000, 100_000]  # some of these depths can be parsed, others cannot
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A server with a skill and some tools."""
    project = tmp_path_factory.mktemp("served") / "project"
    write_skill(project, "key-rotation", "Rotate API keys without downtime")
    (project / "tools").mkdir()
    (project / "tools" / "files.json").write_text(json.dumps(TOOLS))
    with indexed_server(project, tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture(scope="module")
def client(running: RunningService) -> Iterator[TestClient]:
    """An HTTP client of the server."""
    with running.client(allow_calls=True, requests_per_minute=1_000_000) as client:
        yield client


@pytest.fixture(scope="module")
def url(running: RunningService) -> Iterator[str]:
    """The URL of the server on a real socket."""
    with served(running, requests_per_minute=1_000_000) as url:
        yield url


@pytest.fixture(autouse=True)
def _nothing_unforeseen(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    messages = {record.message for record in caplog.records}
    assert not messages & {"request_failed", "mcp_request_failed"}


def problem(response: Response) -> str:
    """Check the form of a problem response, and return its detail."""
    assert 400 <= response.status_code < 500
    assert response.headers["content-type"] == "application/problem+json"
    refusal = msgspec.json.decode(response.content, type=Refusal)
    assert refusal.status == response.status_code
    assert 0 < len(refusal.detail) < 600
    assert "\n" not in refusal.detail
    return refusal.detail


# A search


Face = Callable[..., str]  # searches with invalid arguments, and returns the error

WRONG: dict[str, dict[str, object]] = {
    "no query": {},
    "a blank query": {"query": " \t "},
    "a long query": {"query": "x" * 32_001},
    "a query that is a list": {"query": ["x"]},
    "half a character": {"query": "x \ud800"},
    "limit 0": {"query": "x", "limit": 0},
    "limit -1": {"query": "x", "limit": -1},
    "a huge limit": {"query": "x", "limit": HUGE},
    "a limit in words": {"query": "x", "limit": "many"},
    "half a limit": {"query": "x", "limit": 1.5},
    "threshold NaN": {"query": "x", "threshold": math.nan},
    "threshold 2": {"query": "x", "threshold": 2},
    "a threshold in words": {"query": "x", "threshold": "high"},
    "an unknown kind": {"query": "x", "kinds": ["spoon"]},
    "an unknown argument": {"query": "x", "surprise": 1},
}
LACKS: dict[str, set[str]] = {  # inputs that a face cannot express, or accepts
    "GET": {"a query that is a list"},
    "POST": {"half a character"},
    "function": {"a blank query", "half a character"},  # a blank query is an empty list
    "mcp": {"half a character"},
}


@pytest.fixture
def faces(client: TestClient) -> dict[str, Face]:
    """Every face that accepts a search, except the command line."""

    def by_get(**arguments: object) -> str:
        renamed = {
            {"query": "q", "kinds": "kind"}.get(key, key): arguments[key] for key in arguments
        }
        target = "/search?" + urlencode(renamed, doseq=True, errors="surrogatepass")
        return problem(client.get(target))

    def by_post(**arguments: object) -> str:
        renamed = {"q" if key == "query" else key: arguments[key] for key in arguments}
        return problem(post(client, "/search", {"queries": [renamed]}))

    def by_function(**arguments: object) -> str:
        return problem(post(client, "/functions/skill.discovery.search", arguments))

    def by_mcp(**arguments: object) -> str:
        return mcp_error(rpc(client, "tools/call", {"name": "search", "arguments": arguments}))

    return {"GET": by_get, "POST": by_post, "function": by_function, "mcp": by_mcp}


def post(client: TestClient, target: str, body: object) -> Response:
    """Send JSON as Python writes it, with escaped surrogates and NaN."""
    return client.post(target, content=json.dumps(body), headers=JSON)


def rpc(client: TestClient, method: str, params: object, path: str = "/mcp") -> Response:
    """Send an MCP request of the older and simpler protocol."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    accepted = {"Accept": "application/json, text/event-stream"}
    return client.post(path, content=json.dumps(message), headers=JSON | accepted)


def mcp_error(response: Response) -> str:
    """Return the message of an MCP error: a failed result or a refused request."""
    answer = response.json()
    if "error" in answer:
        words = answer["error"]["message"]
    else:
        assert answer["result"]["isError"]
        (content,) = answer["result"]["content"]
        words = content["text"]
    assert "Traceback" not in words
    assert "Something went wrong" not in words
    assert 0 < len(words) < 1_000
    return str(words)


@pytest.mark.parametrize(
    ("face", "wrong"),
    [(face, wrong) for face in LACKS for wrong in WRONG if wrong not in LACKS[face]],
)
def test_an_invalid_search_is_refused(faces: dict[str, Face], face: str, wrong: str) -> None:
    """Every face answers with a client error that says what is wrong."""
    assert faces[face](**WRONG[wrong])


@pytest.mark.parametrize(
    "query", ["\0", "x\0y", "\u202e\x1b[31m", "𒀀" * 5_000, "'; DROP --", "%00"]
)
def test_a_query_of_odd_characters_is_answered(client: TestClient, query: str) -> None:
    """Control characters, rare scripts and SQL fragments are searched like other text."""
    assert client.get("/search", params={"q": query}).json()["query"] == query
    body = {"query": query}
    assert "results" in post(client, "/functions/skill.discovery.search", body).json()
    assert post(client, "/functions/search", {"searchQuery": query}).json()["success"]
    found = rpc(client, "tools/call", {"name": "search", "arguments": body}).json()
    assert not found["result"]["isError"]


def test_a_lone_surrogate_becomes_the_replacement_character(client: TestClient) -> None:
    """JavaScript can cut an emoji in two, and JSON allows the escaped half."""
    half, whole = "keys \ud83d", "keys \ufffd"
    many = post(client, "/search", {"queries": [{"q": half}]}).json()
    assert many["answers"][0]["query"] == whole
    found = post(client, "/functions/skill.discovery.search", {"query": half}).json()
    assert "results" in found
    (content,) = rpc(client, "tools/call", {"name": "search", "arguments": {"query": half}}).json()[
        "result"
    ]["content"]
    assert "project/key-rotation" in content["text"]


def test_a_query_of_the_maximum_length_is_answered_over_a_socket(url: str) -> None:
    """Its percent-encoded URL has twelve bytes per character."""
    query = "\U00012000" * MAX_QUERY_LENGTH
    with urlopen(f"{url}/search?q={quote(query)}") as response:
        assert msgspec.json.decode(response.read())["query"] == query


# Functions and bodies


def test_an_unknown_function_is_an_error(client: TestClient) -> None:
    """The message lists all functions, even if the requested name is long or strange."""
    for name in ("unknown", "Vector.searchskills", "%00", "x" * 5_000):
        words = problem(post(client, f"/functions/{name}", {}))
        assert all(known in words for known in FUNCTIONS | PORTABLE)


@pytest.mark.parametrize(
    "target", ["/search", "/items", *(f"/functions/{name}" for name in FUNCTIONS), "/queue/retry"]
)
def test_a_body_other_than_an_object_is_refused(client: TestClient, target: str) -> None:
    """Invalid JSON, other types, deep nesting, large bodies, and numbers out of range."""
    deep = [b'{"query": %s1%s}' % (b"[" * depth, b"]" * depth) for depth in DEEP]
    deep += [b'{"query": %s1%s}' % (b'{"a":' * depth, b"}" * depth) for depth in DEEP]
    for body in (
        *(b"", b"{", b"[]", b"null", b"1", b'"x"', b"NaN", b"\xff\xfe", b"{'query': 'x'}"),
        *(b'{"query": %s}' % (b"9" * 5_000), b'{"query": 1e999}', b'{"query": "\\ud8"}'),
        *deep,
    ):
        problem(client.post(target, content=body, headers=JSON))
    large = client.post(target, content=b" " * 1_000_001, headers=JSON)
    assert large.status_code == 413
    problem(large)


def test_an_invalid_argument_is_an_error_of_its_function(client: TestClient) -> None:
    """The message starts with the function's name."""
    for name, arguments in {
        "Vector.SearchSkills": {"query": 1},
        "Vector_SearchSkills": {"query": 1},
        "Vector.VectorUpdate": {"filepath": ["a"]},
        "skill.discovery.search": {"query": "x", "limit": HUGE},
        "search": {"searchQuery": "x", "threshold": "high"},
    }.items():
        assert problem(post(client, f"/functions/{name}", arguments)).startswith(f"{name}: ")


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("value", [None, True, 1.5, HUGE, [], {}, "", "\0", "\ud800", "x" * 90_000])
def test_a_function_survives_any_value(client: TestClient, name: str, value: object) -> None:
    """Any value of any argument is answered or refused, without a server error."""
    known = FUNCTIONS[name].parameters["properties"]
    needed = dict.fromkeys(FUNCTIONS[name].parameters["required"], "x")
    for argument in known:
        response = post(client, f"/functions/{name}", needed | {argument: value})
        if response.status_code != 200:
            problem(response)


# Items and tools


@pytest.mark.parametrize(
    "item_id",
    ["unknown", "files__read", "..%2F..%2Fetc%2Fpasswd", "%00", "%F0%9F%A5%84", "x" * 9_999],
)
def test_an_unknown_item_is_an_error(client: TestClient, item_id: str) -> None:
    """It can be neither shown nor called."""
    assert "no item" in problem(client.get(f"/items/{item_id}"))
    assert problem(post(client, f"/tools/{item_id}", {}))


def test_an_unknown_format_is_an_error(client: TestClient) -> None:
    """The message lists the formats."""
    assert "'json'" in problem(client.get("/search", params={"q": "x", "format": "carrier-pigeon"}))


# MCP


def test_mcp_reports_errors_to_its_clients(url: str) -> None:
    """The official client gets failed results or protocol errors, and its session continues."""
    failures: dict[str, list[tuple[str, dict[str, Any]]]] = {
        "/mcp": [
            ("search", {}),
            ("search", {"query": ""}),
            ("search", {"query": "x" * 32_001}),
            ("search", {"query": "x", "limit": HUGE}),
            ("get", {"id": "unknown"}),
            ("get", {"id": "project/key-rotation", "section": "None"}),
            ("call", {"tool": "unknown", "arguments": {}}),
        ],
        "/mcp/skills": [
            ("Vector.SearchSkills", {"query": ["x"]}),
            ("Vector.VectorUpdate", {"filepath": "../../etc/passwd"}),
            ("Vector.VectorUpdate", {"filepath": "a\0b"}),
            ("skill.discovery.search", {"query": "x", "limit": 0}),
        ],
        "/mcp/project": [("search", {"searchQuery": " "}), ("search", {})],
        "/mcp/explain": [
            ("explain", {"query": "", "item": "project/key-rotation"}),
            ("explain", {"query": "x", "item": "\0"}),
            ("explain", {"query": "x", "item": "unknown", "limit": HUGE}),
        ],
    }

    async def ask() -> None:
        for path, calls in failures.items():
            async with McpClient(url + path) as client:
                for name, arguments in calls:
                    result = await client.call_tool(name, arguments)
                    assert result.is_error, (name, arguments)
                    (content,) = result.content
                    assert content.type == "text"
                    assert "Something went wrong" not in content.text
                with pytest.raises(MCPError, match="There is no tool 'unknown'"):
                    await client.call_tool("unknown", {})
                with pytest.raises(MCPError, match="no resource"):
                    await client.read_resource("https://example.org/")

    asyncio.run(ask())


@pytest.mark.parametrize("path", ["/mcp", "/mcp/skills", "/mcp/project", "/mcp/explain"])
def test_invalid_mcp_requests_are_refused(client: TestClient, path: str) -> None:
    """An invalid body gets an HTTP status; invalid parameters get an error of MCP."""
    headers = JSON | {"Accept": "application/json, text/event-stream"}
    deep = [b"[" * depth + b"]" * depth for depth in DEEP]
    for body in (b"", b"{", b"[]", b"null", b"{}", b"\xff", b'{"jsonrpc": "2.0"}', *deep):
        response = client.post(path, content=body, headers=headers)
        assert 400 <= response.status_code < 500
    wrong: list[object] = [None, [], {}, {"name": 5}, {"name": "\ud800"}]
    for params in [*wrong, {"name": "search", "arguments": 1}]:
        response = rpc(client, "tools/call", params, path)
        assert response.status_code < 500
        assert "error" in response.json()


# The command line


def test_the_command_line_reports_errors_in_one_line(tmp_path: Path) -> None:
    """The error is on stderr, with exit code 2 and without a traceback."""
    (tmp_path / "home").mkdir()
    cli = Cli(tmp_path / "home", tmp_path / "data")
    project = tmp_path / "project"
    write_skill(project, "key-rotation", "Rotate API keys without downtime")
    assert cli.run(project, "index").returncode == 0
    wrong = {
        ("search", "x" * 32_001): "32,000 is the limit",
        ("search", "x", "--threshold", "nan"): "--threshold is 'nan'",
        ("items", "show", "unknown"): "no item 'unknown'",
        ("items", "show", os.fsdecode(b"\xff")): "no item",
        ("index", os.fsdecode(b"\xff")): "There is no",
        ("search", "x", "--output", "json", "--tag", os.fsdecode(b"\xff")): "There is no tag",
    }
    fruitless = (
        ("search", "x", "--limit", str(HUGE)),
        ("search", os.fsdecode(b"xyzzy \xff"), "--output", "json"),
    )
    with ThreadPoolExecutor() as pool:  # a command is slow to start
        refused = pool.map(lambda arguments: cli.run(project, *arguments), wrong)
        empty = pool.map(lambda arguments: cli.run(project, *arguments), fruitless)
    for words, done in zip(wrong.values(), refused, strict=True):
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert line.startswith("repertory: ")
        assert words in line
    for done in empty:
        assert (done.returncode, done.stderr) == (1, "")
