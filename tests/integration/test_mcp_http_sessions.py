"""Sessions over HTTP that the server forgets, or whose sign-in is revoked."""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from repertory.calling.sessions import Sessions
from repertory.errors import CallError, SignInError
from repertory.sources.mcp.follow import ServerFollower
from repertory.sources.mcp.server import ServerConfig, Transport
from repertory.sources.mcp.sign_ins import SignIn, SignIns, key_of
from tests.support.waiting import TIMEOUT_S, until


class Scripted(BaseHTTPRequestHandler):
    """An MCP server that has forgotten the session at the first call of ``forget``."""

    calls: ClassVar[Counter[str]]
    both = threading.Event()  # set once both calls have arrived
    refused = threading.Event()
    is_revoked = False
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        """Offer no stream of events."""
        self._answer(None, 405)

    def do_DELETE(self) -> None:
        """End a session."""
        self._answer(None)

    def do_POST(self) -> None:
        """Answer a message, or refuse to renew a token."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/token":
            self._answer({"error": "invalid_grant"}, 400)
        elif self.is_revoked:
            self._answer({}, 401, {"WWW-Authenticate": "Bearer"})
        elif "id" not in (message := json.loads(body)):
            self._answer(None, 202)
        else:
            self._reply(message["id"], message["method"], message.get("params", {}))

    def _reply(self, number: int, method: str, params: dict[str, Any]) -> None:
        result: dict[str, Any] = {}
        if method == "initialize":
            result = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "x", "version": "1"},
            }
        elif method == "tools/list":
            result = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
        elif method == "tools/call":
            result = {"content": []}
            self.calls[params["name"]] += 1
            if params["name"] == "forget" and self.calls["forget"] == 1:
                self.both.wait(TIMEOUT_S)
                self._answer(
                    {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "?"}}, 404
                )
                self.refused.set()
                return
            if params["name"] == "send":
                self.both.set()
                self.refused.wait(TIMEOUT_S)
                time.sleep(0.2)  # until the client has read that the session is forgotten
                error = {"code": -32603, "message": "it was sent, but not noted"}
                self._answer({"jsonrpc": "2.0", "id": number, "error": error})
                return
        more = {"Mcp-Session-Id": f"s{time.time_ns()}"} if method == "initialize" else {}
        self._answer({"jsonrpc": "2.0", "id": number, "result": result}, more=more)

    def _answer(self, content: object, status: int = 200, more: dict[str, str] = {}) -> None:  # noqa: B006 - never changed
        body = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        for name, value in {**headers, **more}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def scripted() -> Iterator[type[Scripted]]:
    """The request handler of one test's server."""

    class One(Scripted):
        calls: ClassVar[Counter[str]] = Counter()
        both, refused = threading.Event(), threading.Event()

    yield One
    One.both.set()
    One.refused.set()


@pytest.fixture
def url(scripted: type[Scripted]) -> Iterator[str]:
    """The URL of the server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), scripted) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/mcp"
        server.shutdown()


def test_only_the_call_that_a_server_refused_is_sent_again(
    scripted: type[Scripted], url: str
) -> None:
    """The other call in the forgotten session was executed, although it ends with an error."""
    sessions = Sessions()
    server = ServerConfig(name="x", transport=Transport.HTTP, url=url, timeout=TIMEOUT_S)
    try:
        with ThreadPoolExecutor(2) as threads:
            forgotten = threads.submit(sessions.call, server, "forget", {"a": 1}, TIMEOUT_S)
            until(lambda: scripted.calls["forget"])
            sent = threads.submit(sessions.call, server, "send", {}, TIMEOUT_S)
            with pytest.raises(CallError, match="it was sent, but not noted"):
                sent.result()
            assert forgotten.result() == {"content": []}
    finally:
        sessions.close()
    assert scripted.calls == {"forget": 2, "send": 1}


def test_a_followed_server_reports_a_revoked_sign_in(
    scripted: type[Scripted], url: str, tmp_path: Path
) -> None:
    """Its tools are no longer current, since no new session can be opened."""
    issuer = url.removesuffix("/mcp")
    tokens = {"access_token": "a", "refresh_token": "r", "token_type": "Bearer"}
    metadata = {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "response_types_supported": ["code"],
    }
    client = {"client_id": "c", "redirect_uris": ["http://127.0.0.1/callback"]}
    signed_in = SignIn(
        server="x",
        key=key_of(url),
        issuer=issuer,
        client=client,
        metadata=metadata,
        at=1.0,
        tokens=tokens,
    )
    SignIns(tmp_path).write(url, signed_in)
    server = ServerConfig(name="x", transport=Transport.HTTP, url=url, sign_ins=str(tmp_path))
    follower = ServerFollower(server, lambda: None, 0.1)
    follower.start()
    try:
        assert len(follower.listing().tools) == 1
        scripted.is_revoked = True

        def asks_for_sign_in() -> bool:
            try:
                follower.listing()
            except SignInError as error:
                return "repertory login x" in str(error)
            return False

        until(asks_for_sign_in)
    finally:
        follower.close()
