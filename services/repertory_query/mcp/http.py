"""MCP over HTTP: ``/mcp``, ``/mcp/skills`` and ``/mcp/project`` of the query service.

Nothing is kept between two requests, so that any replica answers any of them; what passes first
(keys, rates, sizes, the Host and the Origin) is the guard's affair, as for every route.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

from fastapi import FastAPI, HTTPException
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.routing import Match, Route
from starlette.types import Scope

from repertory.backend import Backend
from repertory.errors import StoreError
from repertory.settings import Values
from repertory_query.limits import LARGEST_BODY
from repertory_query.mcp.face import Face
from repertory_query.mcp.tool import Work
from repertory_query.mcp.toolset import Toolset
from repertory_query.mcp.toolsets import tools_of
from repertory_query.pool import Pool

PATHS = {
    "/mcp": Toolset.CATALOGUE,
    "/mcp/skills": Toolset.SKILLS,
    "/mcp/project": Toolset.PROJECT,
}

T = TypeVar("T")


class Mcp:
    """The MCP servers of an application, which runs as long as they do.

    Args:
        backend: What is asked.
        values: The settings that hold for what a search does not say.
        pools: Where it is asked.

    Attributes:
        routes: Their routes.
    """

    def __init__(self, backend: Backend, values: Values, pools: Mapping[Work, Pool]) -> None:
        async def threads(work: Work, call: Callable[[], T]) -> T:
            try:
                return await pools[work].run(call)
            except HTTPException as error:
                raise StoreError(error.detail) from error

        self._managers = {
            path: StreamableHTTPSessionManager(
                Face(backend, tools_of([toolset], values), threads).server,
                json_response=True,
                stateless=True,
                max_request_body_size=LARGEST_BODY,
            )
            for path, toolset in PATHS.items()
        }
        self.routes = [
            _Route(path, StreamableHTTPASGIApp(manager), methods=["POST"])
            for path, manager in self._managers.items()
        ]

    @asynccontextmanager
    async def lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        """Run them."""
        async with AsyncExitStack() as running:
            for manager in self._managers.values():
                await running.enter_async_context(manager.run())
            yield


class _Route(Route):
    """A route that says which it is, as FastAPI's own do: requests are measured by it."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, found = super().matches(scope)
        return match, {**found, "route": self}
