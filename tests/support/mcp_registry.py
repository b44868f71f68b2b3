"""A local MCP registry that follows the published API."""

import copy
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

OFFICIAL = "io.modelcontextprotocol.registry/official"
SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"


def server(name: str, version: str = "1.0.0", **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A server document of the registry."""
    about = {"description": f"Does what {name.rpartition('/')[2]} does."}
    return {"$schema": SCHEMA, "name": name, "version": version, **about, **fields}


def npm(identifier: str = "@acme/tracker-mcp", version: str = "1.2.0", **fields: Any) -> Any:  # noqa: ANN401 - JSON
    """An npm package entry of a server document."""
    package = {
        "registryType": "npm",
        "registryBaseUrl": "https://registry.npmjs.org",
        "identifier": identifier,
        "version": version,
        "transport": {"type": "stdio"},
    }
    return package | fields


class McpRegistry:
    """A registry.

    Attributes:
        servers: All versions of all servers; the latest version of a server comes last.
        status: Official metadata that overrides the default, by server name and version.
        requests: The requested paths and queries.
    """

    def __init__(self, *servers: dict[str, Any], page_size: int = 2) -> None:
        self.servers = list(servers)
        self.status: dict[tuple[str, str], dict[str, Any]] = {}
        self.requests: list[str] = []
        self._page_size = page_size

    @property
    def app(self) -> Starlette:
        """The application."""
        versions = "/v0.1/servers/{name:path}/versions/{version}"
        return Starlette(
            routes=[Route("/v0.1/servers", self._list), Route(versions, self._version)]
        )

    def _wrapped(self, one: dict[str, Any]) -> dict[str, Any]:
        found = self.status.get((one["name"], one["version"]), {})
        meta = {"status": "active", "publishedAt": "2026-01-01T10:30:00Z", "isLatest": True}
        return {"server": copy.deepcopy(one), "_meta": {OFFICIAL: meta | found}}

    def _latest(self) -> dict[str, dict[str, Any]]:
        return {one["name"]: one for one in self.servers}

    def _list(self, request: Request) -> Response:
        self.requests.append(f"{request.url.path}?{request.url.query}")
        word = request.query_params.get("search", "").lower()
        found = [one for name, one in self._latest().items() if word in name.lower()]
        start = int(request.query_params.get("cursor", "0"))
        limit = min(int(request.query_params.get("limit", "30")), self._page_size)
        page = found[start : start + limit]
        metadata: dict[str, Any] = {"count": len(page)}
        if start + limit < len(found):
            metadata["nextCursor"] = str(start + limit)
        return JSONResponse({"servers": list(map(self._wrapped, page)), "metadata": metadata})

    def _version(self, request: Request) -> Response:
        self.requests.append(request.url.path)
        name, version = unquote(request.path_params["name"]), request.path_params["version"]
        known = [one for one in self.servers if one["name"] == name]
        if version != "latest":
            known = [one for one in known if one["version"] == version]
        if not known:
            return JSONResponse({"error": "Server not found"}, 404)
        return JSONResponse(self._wrapped(known[-1]))
