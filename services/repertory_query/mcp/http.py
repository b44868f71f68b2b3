"""MCP over HTTP: ``/mcp``, and a path below it for each other toolset.

Requests share no state, so any replica can answer them. The guard checks keys, rates, sizes, the
Host and the Origin, as for every route.

The SDK is imported at the first request, because it takes a second and 30 MB of memory.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from repertory.audit import Audit
from repertory.errors import StoreError
from repertory.text import with_whole_characters
from repertory.usage.recorder import UsageRecorder
from repertory.values import Values
from repertory_query.access.limits import MAX_BODY_SIZE
from repertory_query.backend.pool import Pool, Work
from repertory_query.backend.service import Service
from repertory_query.mcp.toolset_names import PATHS
from repertory_query.records.actions import MCP, AuditedRoute

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

T = TypeVar("T")


class McpEndpoints:
    """The MCP servers of an application, which run from the first MCP request until it ends.

    Args:
        service: The server.
        defaults: Returns the settings for missing arguments of a search.
        audit: Records actions.
        usage: Records searches and uses.
        pools: The threads, by the kind of work.

    Attributes:
        routes: The routes.
    """

    def __init__(
        self,
        service: Service,
        defaults: Callable[[], Values],
        audit: Audit,
        usage: UsageRecorder,
        pools: Mapping[Work, Pool],
    ) -> None:
        self._service = service
        self._defaults = defaults
        self._audit = audit
        self._usage = usage
        self._pools = pools
        self._managers: dict[str, StreamableHTTPSessionManager] = {}
        self._requested = anyio.Event()
        self._running = anyio.Event()
        self.routes = [
            AuditedRoute("POST", path + end, _Endpoint(self, path), action=MCP, face="mcp")
            for path in PATHS
            for end in ("", "/")  # some hosts' configurations have a trailing slash
        ]

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Run the servers once one is requested."""
        self._requested, self._running = anyio.Event(), anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._run)
            yield
            tasks.cancel_scope.cancel()

    async def manager(self, path: str) -> "StreamableHTTPSessionManager":
        """The running server of a path."""
        self._requested.set()
        await self._running.wait()
        return self._managers[path]

    async def _run(self) -> None:
        await self._requested.wait()
        self._managers = await anyio.to_thread.run_sync(self._create)
        async with AsyncExitStack() as stack:
            for manager in self._managers.values():
                await stack.enter_async_context(manager.run())
            self._running.set()
            await anyio.sleep_forever()

    def _create(self) -> "dict[str, StreamableHTTPSessionManager]":
        from mcp.server.streamable_http_manager import (  # noqa: PLC0415 - as said above
            StreamableHTTPSessionManager,
        )

        from repertory_query.mcp.server import McpServer  # noqa: PLC0415 - as above
        from repertory_query.mcp.toolsets import tools_of  # noqa: PLC0415 - as above

        return {
            path: StreamableHTTPSessionManager(
                McpServer(
                    self._service,
                    tools_of([toolset], self._defaults),
                    self._threads,
                    audit=self._audit,
                    usage=self._usage,
                ).server,
                json_response=True,
                stateless=True,
                max_request_body_size=MAX_BODY_SIZE,
            )
            for path, toolset in PATHS.items()
        }

    async def _threads(self, work: Work, call: Callable[[], T]) -> T:
        try:
            return await self._pools[work].run(call)
        except HTTPException as error:
            raise StoreError(error.detail) from error


class _Endpoint:
    """The route of one server."""

    def __init__(self, mcp: McpEndpoints, path: str) -> None:
        self._mcp = mcp
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        manager = await self._mcp.manager(self._path)
        body = with_whole_characters(await Request(scope, receive).body())
        messages = [{"type": "http.request", "body": body}]

        async def received() -> Message:
            return messages.pop() if messages else await receive()

        await manager.asgi_app(scope, received, send)
