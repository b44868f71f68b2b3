"""Calls that time out do not wait for a name lookup."""

import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import anyio
import pytest

from repertory.calling.http.client import Requests
from repertory.calling.sessions import Sessions
from repertory.errors import CallError, SourceError
from repertory.sources.mcp.client import list_tools
from repertory.sources.mcp.server import ServerConfig, Transport
from repertory.sources.openapi.api import Api
from repertory.sources.openapi.operation import Operation
from repertory.system.cancellation import leave_lookups

HOST = "http://slow.example"
SERVER = ServerConfig(name="slow", transport=Transport.HTTP, url=f"{HOST}/mcp", timeout=0.3)


def call_api() -> None:
    """Call an operation of a web API."""
    operation = Operation(method="GET", url=f"{HOST}/")
    Requests().call(Api(name="slow", origin=HOST), operation, {}, 0.3, os.environ)


def ask_server() -> None:
    """Ask an MCP server for its tools."""
    list_tools(SERVER, Future())


def call_tool() -> None:
    """Call a tool of an MCP server, and end the sessions."""
    sessions = Sessions()
    try:
        sessions.call(SERVER, "tool", {}, 0.3)
    finally:
        sessions.close()


@pytest.mark.parametrize("ask", [call_api, ask_server, call_tool])
def test_a_timeout_waits_for_no_lookup(
    ask: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unreachable resolver takes half a minute to fail."""
    is_over, lookups = threading.Event(), []

    def look_up(*_: object, **_options: object) -> Any:  # noqa: ANN401 - never returns
        lookups.append(is_over.wait(60))
        raise socket.gaierror("away")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    try:
        with pytest.raises((CallError, SourceError), match=r"did not answer within 0\.3 s"):
            ask()
        assert lookups == []
    finally:
        is_over.set()


def test_a_lookup_that_is_not_cancelled_completes() -> None:
    """It returns its result, or raises its error."""

    async def look_up(port: str) -> Any:  # noqa: ANN401 - a list of tuples
        leave_lookups()
        return await anyio.getaddrinfo("127.0.0.1", port)

    assert anyio.run(look_up, "80")
    with pytest.raises(socket.gaierror):
        anyio.run(look_up, "no port")
