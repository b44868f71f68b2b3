"""MCP over HTTP: ``/mcp``, ``/mcp/skills`` and ``/mcp/project`` of the query service.

Requests share no state, so that any replica answers any of them. The guard checks keys, rates,
sizes, the Host and the Origin, as for every route.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

from repertory.backend import Backend
from repertory.errors import StoreError
from repertory.values import Values
from repertory_query.limits import MAX_BODY_SIZE
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
    """The MCP servers of an application, which run as long as it does.

    Args:
        backend: The backend.
        values: The settings for missing arguments of a search.
        pools: The threads, by what a tool occupies.

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
                max_request_body_size=MAX_BODY_SIZE,
            )
            for path, toolset in PATHS.items()
        }
        self.routes = [
            Route(path, StreamableHTTPASGIApp(manager), methods=["POST"])
            for path, manager in self._managers.items()
        ]

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Run them."""
        async with AsyncExitStack() as running:
            for manager in self._managers.values():
                await running.enter_async_context(manager.run())
            yield
