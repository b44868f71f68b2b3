"""The MCP server of a backend: its tools, its resources, and how it reports failures."""

import base64
import contextlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import version
from typing import Any, Protocol, TypeVar

import anyio
import msgspec
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListToolsResult,
    NotificationParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    TextResourceContents,
)

from repertory.audit import Audit
from repertory.backend import Backend
from repertory.catalogue.item import Kind
from repertory.errors import RepertoryError, UnknownItemError
from repertory.formats.mcp import MEDIA_TYPES
from repertory.formats.uris import id_of, uri_of
from repertory.index.vectors import Filter
from repertory.keys import Scope
from repertory.text import cut, one_line
from repertory_query.mcp.catalogue import CALL, text_of
from repertory_query.mcp.contents import contents
from repertory_query.mcp.recording import Recorded, Recorder
from repertory_query.mcp.tool import Tool
from repertory_query.mcp.work import Work
from repertory_query.problems import status_of
from repertory_query.visible import visible_to

FRESH_S = 60.0  # a list is reused before the catalogue is read again
RETRY_INTERVAL_S = 1.0  # until an unreadable catalogue is read again
PAGE_SIZE = 100  # resources of one answer
MAX_DESCRIPTION_LENGTH = 400  # characters, of a resource

_INSTRUCTIONS = (
    "Repertory knows the skills, tools and documents that are there for this work. Search it "
    "before you start on a task, and read what fits."
)

_log = logging.getLogger(__name__)

T = TypeVar("T")
Context = ServerRequestContext[Any, Any]


class Threads(Protocol):
    """Runs blocking calls on threads."""

    def __call__(self, work: Work, call: Callable[[], T], /) -> Awaitable[T]:
        """Run it; StoreError if too many calls wait."""
        ...


class Face:
    """The MCP server of a backend, for any transport. For one event loop.

    Over HTTP, the scopes of ``request.state.caller`` decide what a caller may do and see.

    Args:
        backend: The backend.
        tools: The tools, in this order.
        threads: Runs the calls of the backend.
        announcing: Whether ``announce`` runs, so that clients may wait for changes.
        audit: Records what is done; None if another process does.

    Attributes:
        server: The SDK's server.
    """

    def __init__(
        self,
        backend: Backend,
        tools: Sequence[Tool],
        threads: Threads,
        *,
        announcing: bool = False,
        audit: Audit | None = None,
    ) -> None:
        self._backend = backend
        self._tools = {tool.function.name: tool for tool in tools}
        self._threads = threads
        self._record = Recorder(audit)
        self._listed: tuple[float, str, bool] | None = None
        self._told: tuple[str, bool] | None = None
        self._session: ServerSession | None = None
        self._bus = InMemorySubscriptionBus()
        self.server: Server[Any] = Server(
            "repertory",
            version=version("repertory"),
            title="Repertory",
            instructions=_INSTRUCTIONS,
            cache_hints={"resources/list": CacheHint(ttl_ms=int(FRESH_S * 1_000))},
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
            on_subscriptions_listen=ListenHandler(self._bus) if announcing else None,
        )
        if announcing:
            self.server.add_notification_handler(
                "notifications/initialized", NotificationParams, self._begun
            )

    async def announce(self) -> None:
        """Notify clients when the listed tools change, until cancelled."""
        while True:
            self._listed = None
            with contextlib.suppress(MCPError):  # the next list reports it
                listing = await self._listing()
                if self._told not in (None, listing):
                    self._told = None
                    await self._bus.publish(ToolsListChanged())
                    if self._session:
                        await self._session.send_tool_list_changed()
            await anyio.sleep(FRESH_S if self._listed else RETRY_INTERVAL_S)

    async def _begun(self, context: Context, _: NotificationParams) -> None:
        """Remember the one session, by which clients of the older protocol are notified."""
        self._session = context.session

    async def _list_tools(self, context: Context, _: object) -> ListToolsResult:
        said, calls_allowed = self._told = await self._listing()
        scopes = _scopes(context)
        return ListToolsResult(
            tools=[
                tool.definition(said)
                for name, tool in self._tools.items()
                if tool.scope in scopes and (calls_allowed or name != CALL)
            ],
            ttl_ms=int((FRESH_S if said else RETRY_INTERVAL_S) * 1_000),
            cache_scope="private",
        )

    async def _listing(self) -> tuple[str, bool]:
        """The contents of the catalogue, in words, and whether tools may be called."""
        now = time.monotonic()
        if self._listed is not None and now - self._listed[0] <= FRESH_S:
            return self._listed[1:]
        said, calls_allowed = await self._read(self._contents)
        if said:
            self._listed = now, said, calls_allowed
        return said, calls_allowed

    def _contents(self) -> tuple[str, bool]:
        """As above; unreadable parts are left out, since a search reports the reason."""
        said, calls_allowed = "", False
        with contextlib.suppress(RepertoryError):
            calls_allowed = self._backend.calls_allowed
        with contextlib.suppress(RepertoryError):
            said = contents(self._backend.entries())
        return said, calls_allowed

    async def _call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        with self._record.tool(context, params, is_known=params.name in self._tools) as record:
            result = await self._answer(context, params, record)
            record.note(is_error=bool(result.is_error))
            return result

    async def _answer(
        self, context: Context, params: CallToolRequestParams, record: Recorded
    ) -> CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(
                INVALID_PARAMS, f"There is no tool {params.name[:200]!r}; list those there are."
            )
        if tool.scope not in _scopes(context):
            record.status = 403
            return tool.failure(
                f"{params.name} takes a key of the scope {tool.scope}; ask who runs this server."
            )
        backend = self._seen(context)
        try:
            return await self._threads(
                tool.work, lambda: tool.answer(backend, params.arguments or {})
            )
        except RepertoryError as error:
            record.status = status_of(error)
            return tool.failure(str(error))
        # The boundary: the client gets an answer that reveals nothing.
        except Exception as error:
            return tool.failure(_unexpected(error))

    async def _list_resources(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        with self._record.action(context, "list"):
            after = _after(params.cursor if params else None)
            backend = self._seen(context)
            resources, cursor = await self._read(lambda: _skills(backend, after))
        return ListResourcesResult(resources=resources, next_cursor=cursor)

    async def _read_resource(
        self, context: Context, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        uri = str(params.uri)
        with self._record.action(context, "read", [id_of(uri) or uri]):
            return await self._resource(context, uri)

    async def _resource(self, context: Context, uri: str) -> ReadResourceResult:
        item_id = id_of(uri)
        if item_id is None:
            raise MCPError(INVALID_PARAMS, f"There is no resource {uri[:200]!r}; search for it.")
        backend = self._seen(context)
        item = await self._read(lambda: backend.item(item_id))
        if uri_of(item) != uri:
            raise MCPError(INVALID_PARAMS, f"{item_id[:200]!r} is {uri_of(item)}.")
        media_type = MEDIA_TYPES.get(item.kind, "application/json")
        return ReadResourceResult(
            contents=[TextResourceContents(uri=uri, mime_type=media_type, text=text_of(item))]
        )

    def _seen(self, context: Context) -> Backend:
        """The backend as a caller sees it."""
        request = context.request
        return visible_to(request.state.caller, self._backend) if request else self._backend

    async def _read(self, call: Callable[[], T]) -> T:
        """Read from the backend; a failure is an error of the request."""
        try:
            return await self._threads(Work.READ, call)
        except UnknownItemError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error
        except RepertoryError as error:
            raise MCPError(INTERNAL_ERROR, str(error)) from error
        # The boundary, as above.
        except Exception as error:
            raise MCPError(INTERNAL_ERROR, _unexpected(error)) from error


def _skills(backend: Backend, after: str) -> tuple[list[Resource], str | None]:
    """The skills whose ids come after one, as resources, and the next cursor."""
    ids = [entry.id for entry in backend.entries(Filter(kinds=(Kind.SKILL,)))]
    left = [item_id for item_id in ids if item_id > after]
    page = left[:PAGE_SIZE]
    resources = [
        Resource(
            uri=uri_of(item),
            name=one_line(item.name),
            description=cut(one_line(item.description), MAX_DESCRIPTION_LENGTH),
            mime_type=MEDIA_TYPES[item.kind],
        )
        for item in backend.items(page).values()
    ]
    return resources, _cursor(page[-1]) if len(left) > PAGE_SIZE else None


def _scopes(context: Context) -> frozenset[Scope]:
    """The scopes of a caller; the user who started this process has all."""
    return context.request.state.caller.scopes if context.request else frozenset(Scope)


def _unexpected(error: Exception) -> str:
    incident = secrets.token_hex(4)
    _log.error("mcp_request_failed", extra={"incident": incident}, exc_info=error)
    return f"Something went wrong here; the server's log says what, at {incident}."


def _cursor(last: str) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(last)).decode()


def _after(cursor: str | None) -> str:
    """The id that a page comes after."""
    if cursor is None:
        return ""
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(cursor), type=str)
    except ValueError as error:
        raise MCPError(
            INVALID_PARAMS, "The cursor is none of this server's; list from the beginning."
        ) from error
