"""Requests to an MCP server, each in a session of its own, and what it says."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from mcp import Client
from mcp_types import CallToolResult, TextContent

Mode = Literal["legacy", "auto"]


def asked(url: str, ask: Callable[[Client], Awaitable[Any]], mode: Mode = "auto") -> Any:  # noqa: ANN401
    """The result of requests in a new session."""

    async def run() -> Any:  # noqa: ANN401 - any result
        async with Client(url, mode=mode) as client:
            return await ask(client)

    return asyncio.run(run())


def called(url: str, mode: Mode, name: str, /, **arguments: Any) -> CallToolResult:  # noqa: ANN401
    """The result of a tool of the catalogue."""
    result = asked(f"{url}/mcp", lambda client: client.call_tool(name, arguments), mode)
    assert isinstance(result, CallToolResult)
    return result


def text_of(result: CallToolResult) -> str:
    """The first text of a result."""
    first = result.content[0]
    assert isinstance(first, TextContent)
    return first.text
