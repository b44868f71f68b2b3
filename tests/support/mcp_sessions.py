"""Sessions with an MCP server, single requests in a new session, and the texts of results."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from tests.support.command_line import COMMAND, Cli
from tests.support.query_service import bearer
from tests.support.waiting import TIMEOUT_S

Mode = Literal["legacy", "auto"]


def stdio_session(cli: Cli, folder: Path, *arguments: str | Path, mode: Mode = "auto") -> Client:
    """A session with ``repertory mcp``, started as a separate process."""
    command, *first = COMMAND
    parameters = StdioServerParameters(
        command=command,
        args=[*first, "mcp", *map(str, arguments)],
        env=cli.environment,
        cwd=str(folder),
    )
    return Client(parameters, mode=mode)


@asynccontextmanager
async def http_session(url: str, token: str, mode: Mode = "auto") -> AsyncIterator[Client]:
    """A session over HTTP with a token."""
    async with (
        httpx2.AsyncClient(headers=bearer(token), timeout=TIMEOUT_S) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


def asked(url: str, ask: Callable[[Client], Awaitable[Any]], mode: Mode = "auto") -> Any:  # noqa: ANN401
    """The result of ``ask`` in a new session."""

    async def run() -> Any:  # noqa: ANN401 - any result
        async with Client(url, mode=mode) as client:
            return await ask(client)

    return asyncio.run(run())


def called(url: str, mode: Mode, name: str, /, **arguments: Any) -> CallToolResult:  # noqa: ANN401
    """The result of a call of one of Repertory's MCP tools in a new session."""
    result = asked(f"{url}/mcp", lambda client: client.call_tool(name, arguments), mode)
    assert isinstance(result, CallToolResult)
    return result


def text_of(result: CallToolResult) -> str:
    """The first text of a result."""
    first = result.content[0]
    assert isinstance(first, TextContent)
    return first.text
