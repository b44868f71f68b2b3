"""A well-behaved MCP server, built on the SDK: ``sdk.py stdio``.

With ``http``, ``json`` or ``sse`` it serves on a free port and prints its address. With ``TOKEN``
in the environment, requests without this bearer token are refused.
"""

import os
import socket
import sys

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations
from starlette.types import ASGIApp, Receive, Scope, Send

server = MCPServer("weather")


@server.tool()
def forecast(city: str, days: int = 3) -> str:
    """Say what the weather will be in a city."""
    return f"{city}: sun for {days} days"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def alerts(region: str) -> list[str]:
    """List the storm warnings of a region."""
    return [region]


def guarded(app: ASGIApp, token: str) -> ASGIApp:
    """Refuse requests without the token."""

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        wanted = (b"authorization", f"Bearer {token}".encode())
        if scope["type"] == "http" and wanted not in scope["headers"]:
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        else:
            await app(scope, receive, send)

    return guard


def serve(app: ASGIApp, path: str) -> None:
    """Serve on a free local port, and print the address."""
    if token := os.environ.get("TOKEN"):
        app = guarded(app, token)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        print(f"http://127.0.0.1:{listener.getsockname()[1]}{path}", flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


match sys.argv[1]:
    case "stdio":
        server.run()
    case "http":
        serve(server.streamable_http_app(), "/mcp")
    case "json":
        serve(server.streamable_http_app(json_response=True, stateless_http=True), "/mcp")
    case "sse":
        serve(server.sse_app(), "/sse")
