"""An MCP server, built on the SDK, with callable tools: ``callee.py stdio``.

``callee.py http [PORT]`` and ``callee.py stateless [PORT]`` serve over HTTP, by default on a free
port, and print the address.
"""

import os
import socket
import sys
from typing import Annotated, Any

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ImageContent, TextContent
from pydantic import BaseModel, Field

server = MCPServer("callee")


class Answer(BaseModel):
    """The answer that ``elicit`` requests."""

    yes: bool


@server.tool()
def add(first: int, second: int) -> int:
    """Add two numbers."""
    return first + second


@server.tool(structured_output=False)
def echo(value: Any = None) -> str:  # noqa: ANN401 - any argument
    """Return the argument."""
    return repr(value)


@server.tool(structured_output=False)
def draw() -> list[TextContent | ImageContent]:
    """Answer with a text and an image."""
    image = ImageContent(type="image", data="AAAA", mime_type="image/png")
    return [TextContent(type="text", text="a dot"), image]


@server.tool(structured_output=False)
def fail(reason: str) -> str:
    """Fail with a reason."""
    raise ToolError(reason)


@server.tool(structured_output=False)
async def wait(seconds: float) -> str:
    """Answer after a while."""
    await anyio.sleep(seconds)
    return "done"


@server.tool(structured_output=False)
async def report(context: Context) -> str:
    """Report progress, then answer."""
    for step in range(3):
        await context.report_progress(step, 3)
    return "done"


@server.tool(structured_output=False)
async def elicit(context: Context) -> str:
    """Ask the caller a question, and return the outcome."""
    try:
        answer = await context.elicit("Are you sure?", Answer)
    except Exception as error:
        return f"refused: {error}"
    return str(answer)


@server.tool(structured_output=False)
def process() -> str:
    """Return the id of this process."""
    return str(os.getpid())


@server.tool(structured_output=False)
def die() -> str:
    """Exit during a call."""
    os._exit(3)


@server.tool(structured_output=False)
def region(
    name: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
) -> str:
    """Take an argument that the newer protocol repeats as a header."""
    return name


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run()
    else:
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0))
            listener.listen()
            print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
            app = server.streamable_http_app(
                stateless_http=sys.argv[1] == "stateless", json_response=sys.argv[1] == "stateless"
            )
            uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
