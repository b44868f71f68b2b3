"""MCP servers over streamable HTTP and SSE on this machine."""

import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler

import pytest

from repertory.errors import SourceError
from repertory.sources.mcp.server import ServerConfig, Transport
from repertory.sources.mcp.source import McpServer
from tests.support.http_stub import Answer, serving
from tests.support.mcp_servers import started
from tests.support.mcp_servers.raw import UNREADABLE, tool
from tests.support.waiting import until

TOKEN = "s3cret-t0ken"
TOOLS = ["forecast", "alerts"]
RESULTS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "slow", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "ping", "inputSchema": {"type": "object"}}]},
}

Start = Callable[..., str]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a server of the given kind, and returns its URL."""
    with ExitStack() as servers:
        yield lambda kind, **env: servers.enter_context(started("sdk.py", kind, **env))


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], str]]:
    """Answers every request with the given function, and returns the URL."""
    with ExitStack() as servers:
        yield lambda answer: f"{servers.enter_context(serving(answer))}/mcp"


def source(
    url: str, transport: Transport = Transport.HTTP, timeout: float = 20, **headers: str
) -> McpServer:
    """The trusted source of a server at this URL."""
    config = ServerConfig(
        name="web", transport=transport, url=url, headers=headers, timeout=timeout
    )
    return McpServer(config, trusted=True)


def tools(server: McpServer) -> list[str]:
    """The names of a server's tools."""
    return [item.name for item in server.scan().items]


def failure(server: McpServer) -> str:
    """Scan a source that fails, and return the message without secrets."""
    with pytest.raises(SourceError) as caught:
        server.scan()
    assert TOKEN not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("kind", ["http", "json"])
def test_streamable_http(start: Start, kind: str) -> None:
    """The server answers with a stream of events or with plain JSON."""
    assert tools(source(start(kind))) == TOOLS


def test_no_proxy_is_used_for_this_machine(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds even without ``no_proxy``, as on macOS, where the system names the proxy."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # nothing answers there
    assert tools(source(start("json"))) == TOOLS


def test_sse(start: Start) -> None:
    """Tools are listed over SSE, even if the configuration names HTTP."""
    url = start("sse")
    assert tools(source(url, Transport.SSE)) == TOOLS
    assert tools(source(url, Transport.HTTP)) == TOOLS


@pytest.mark.parametrize(("kind", "transport"), [("http", "http"), ("sse", "sse")])
def test_headers(start: Start, kind: str, transport: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables in headers are resolved. A header that the server refuses is an error."""
    monkeypatch.setenv("WEB_TOKEN", TOKEN)
    url = start(kind, TOKEN=TOKEN)
    assert tools(source(url, Transport(transport), Authorization="Bearer ${WEB_TOKEN}")) == TOOLS
    message = failure(source(f"{url}?key={TOKEN}", Transport(transport), Authorization="Bearer no"))
    assert message == (
        "The MCP server web answered with HTTP status 401: its headers must permit the call."
    )


def test_addresses_are_not_logged(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """A key in a URL is not logged at any level."""
    caplog.set_level(logging.DEBUG)
    assert tools(source(f"{start('http')}?key={TOKEN}")) == TOOLS
    assert not any(TOKEN in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("defect", UNREADABLE)
def test_an_unreadable_tool_does_not_hide_the_others(
    serve: Callable[[Answer], str], kind: str, defect: str
) -> None:
    """The answer is plain JSON or an event."""
    greeting = json.dumps(
        {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "raw", "version": "1"},
        }
    )
    results = {
        "initialize": greeting,
        "tools/list": f'{{"tools": [{UNREADABLE[defect]}, {json.dumps(tool("good"))}]}}',
    }

    def answer(request: BaseHTTPRequestHandler) -> None:
        size = int(request.headers.get("Content-Length") or 0)
        sent = json.loads(request.rfile.read(size) or "{}")
        result = results.get(sent.get("method"))
        if result is None:
            request.send_response(202 if size else 405)
            request.end_headers()
            return
        request.send_response(200)
        request.send_header("Content-Type", kind)
        request.end_headers()
        message = f'{{"jsonrpc": "2.0", "id": {sent["id"]}, "result": {result}}}'
        event = kind == "text/event-stream"
        request.wfile.write((f"data: {message}\n\n" if event else message).encode())

    scan = source(serve(answer)).scan()
    assert [item.name for item in scan.items] == ["good"]
    [problem] = scan.problems
    assert "sent an unreadable tool bad (number 1 of its list)" in problem.message


def test_no_server() -> None:
    """A URL without a listener is an error."""
    assert "could not be queried" in failure(source("http://127.0.0.1:9/mcp"))


def test_not_found(serve: Callable[[Answer], str]) -> None:
    """Another program at the URL is an error with its status."""
    url = serve(lambda request: request.send_error(404))
    assert "answered with HTTP status 404" in failure(source(url))


def test_not_mcp(serve: Callable[[Answer], str]) -> None:
    """A web page at the URL is an error."""

    def page(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/html")
        request.end_headers()
        request.wfile.write(b"<html>hello</html>")

    assert "could not be queried" in failure(source(serve(page)))


def test_silent(serve: Callable[[Answer], str]) -> None:
    """A server that never answers times out."""
    over = threading.Event()

    def wait(_: BaseHTTPRequestHandler) -> None:
        over.wait(60)

    assert "did not answer within 0.5 s" in failure(source(serve(wait), timeout=0.5))
    over.set()


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_flood(serve: Callable[[Answer], str], kind: str) -> None:
    """An endless answer is cut off at a limit."""

    def flood(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", kind)
        request.end_headers()
        try:
            while True:
                request.wfile.write(b": lorem ipsum\n\n" * 4_096)
        except OSError:
            pass  # it was cut off

    assert "sent more than 32 MB" in failure(source(serve(flood)))


def test_compressed(serve: Callable[[Answer], str]) -> None:
    """A compressed answer is refused, because its decompressed size is unlimited."""

    def bomb(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Encoding", "gzip")
        request.end_headers()

    assert "compressed its answer" in failure(source(serve(bomb)))


def test_a_stream_of_events_is_read_as_utf_8(serve: Callable[[Answer], str]) -> None:
    """Its header cannot choose another codec, of which one takes quadratic time."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        if request.command != "POST":
            request.send_error(405)
            return
        message = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        result = RESULTS.get(message["method"])
        request.send_response(200 if result else 202)
        request.send_header("Content-Type", "text/event-stream; charset=punycode")
        request.end_headers()
        if result:
            body = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            request.wfile.write(f"data: {json.dumps(body)}\n\n".encode())

    assert tools(source(serve(answer))) == ["ping"]


def test_a_server_that_hangs_at_the_end_of_a_session_does_not_delay_the_scan(
    serve: Callable[[Answer], str],
) -> None:
    """The time limit applies to the listing; afterwards the session is abandoned soon."""
    scanned, in_time = threading.Event(), []

    def answer(request: BaseHTTPRequestHandler) -> None:
        if request.command != "POST":
            if request.command == "DELETE":
                in_time.append(scanned.wait(30))
            request.send_error(405)
            return
        message = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        result = RESULTS.get(message["method"])
        request.send_response(200 if result else 202)
        request.send_header("Content-Type", "application/json")
        request.send_header("Mcp-Session-Id", "one")
        request.end_headers()
        if result:
            body = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            request.wfile.write(json.dumps(body).encode())

    url = serve(answer)
    assert tools(source(url, timeout=60)) == ["ping"]
    scanned.set()
    until(lambda: in_time)
    assert in_time == [True]
