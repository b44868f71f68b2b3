"""An MCP server, built on the SDK, whose tools change while it runs: ``changing.py stdio``.

Its tools are the words in the file that ``TOOLS`` names, and it reports their changes. When it
starts, it appends a line to the file that ``STARTS`` names. ``changing.py http`` serves on a free
port and prints the address. With ``QUIET`` in the environment, the server neither announces nor
sends reports of changes.
"""

import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from mcp.server import NotificationOptions, Server
from mcp.server.session import ServerSession
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ToolsListChanged
from mcp_types import ListToolsResult, Tool

TOOLS = Path(os.environ["TOOLS"])
REPORTS = "QUIET" not in os.environ

bus = InMemorySubscriptionBus()
sessions: list[ServerSession] = []


def names() -> list[str]:
    """The names of the current tools."""
    return TOOLS.read_text().split()


async def list_tools(context: Any, _: object) -> ListToolsResult:  # noqa: ANN401 - the SDK's type
    """List the current tools, and remember the session for later reports."""
    if context.session not in sessions:
        sessions.append(context.session)
    tools = [
        Tool(name=name, description=f"Does {name}.", input_schema={"type": "object"})
        for name in names()
    ]
    return ListToolsResult(tools=tools)


@asynccontextmanager
async def reporting(_: object) -> AsyncIterator[None]:
    """Report changes while the server runs."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(report)
        yield
        tasks.cancel_scope.cancel()


async def report() -> None:
    """Report changed tools to every session, in both versions of the protocol."""
    reported = names()
    while True:
        await anyio.sleep(0.02)
        if REPORTS and names() != reported:
            reported = names()
            await bus.publish(ToolsListChanged())
            for session in sessions:
                try:
                    await session.send_tool_list_changed()
                except (MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError):
                    sessions.remove(session)


class Changing(Server[None]):
    """A server that can report changes."""

    def create_initialization_options(self, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - passed on
        """Add the capability that the SDK does not declare by itself."""
        return super().create_initialization_options(NotificationOptions(tools_changed=REPORTS))


server = Changing(
    "changing",
    lifespan=reporting,
    on_list_tools=list_tools,
    on_subscriptions_listen=ListenHandler(bus) if REPORTS else None,
)


async def stdio() -> None:
    """Serve over stdin and stdout."""
    async with stdio_server() as (received, to_send):
        await server.run(received, to_send, server.create_initialization_options())


with Path(os.environ["STARTS"]).open("a") as starts:
    starts.write(f"{os.getpid()}\n")
if sys.argv[1] == "stdio":
    anyio.run(stdio)
else:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
        config = uvicorn.Config(server.streamable_http_app(), log_level="error")
        uvicorn.Server(config).run(sockets=[listener])
