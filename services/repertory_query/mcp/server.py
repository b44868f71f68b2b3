"""The MCP server of a backend: its tools, its resources, and how it reports failures."""

import contextlib
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple, Protocol, TypeVar

import anyio
from cachetools import LRUCache
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    NotificationParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    ServerCapabilities,
    SubscriptionFilter,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)
from mcp_types.version import is_version_at_least
from typing_extensions import override

from repertory.audit import Audit
from repertory.backend import Backend
from repertory.errors import RepertoryError, StoreError, UnknownItemError
from repertory.formats.uris import id_of
from repertory.keys import Scope
from repertory.system.cancellation import waiting
from repertory.usage.recorder import UsageRecorder
from repertory_query.backend.caller_view import visibility, visible_to
from repertory_query.backend.pool import Work
from repertory_query.backend.service import Service
from repertory_query.mcp import skills
from repertory_query.mcp.catalogue import CALL
from repertory_query.mcp.catalogue_summary import contents
from repertory_query.mcp.recording import ActionStatus, Context, Recorder
from repertory_query.mcp.resources import after_of, read, skills_after, unknown_cursor
from repertory_query.mcp.tool import Tool, without_links
from repertory_query.problems import incident, status_of

FRESH_S = 60.0  # for which a list is reused before the catalogue is read again
RETRY_INTERVAL_S = 1.0  # before an unreadable catalogue is read again
MAX_LISTED = 64  # cached lists, one per set of visible sources

_INSTRUCTIONS = (
    "Repertory knows the skills, tools and documents that are there for this work. Search it "
    "before you start on a task, and read what fits."
)

T = TypeVar("T")


class Listing(NamedTuple):
    """The contents of the lists of tools and skills.

    Attributes:
        summary: The contents of the catalogue, in words; empty if unknown.
        calls_allowed: Whether tools may be called.
        changes_allowed: Whether anything else may be changed.
        skills: A digest of the skills.
    """

    summary: str = ""
    calls_allowed: bool = False
    changes_allowed: bool = True
    skills: str = ""

    def includes(self, tool: Tool) -> bool:
        """Whether the list of tools includes a tool."""
        if tool.function.name == CALL:
            return self.calls_allowed
        return self.changes_allowed or not tool.function.writes


class Threads(Protocol):
    """Runs blocking calls on threads."""

    def __call__(self, work: Work, call: Callable[[], T], /) -> Awaitable[T]:
        """Run a call; StoreError if too many calls are waiting."""
        ...


class _Server(Server[Any]):
    """The SDK's server, which tells clients only what it really has and announces."""

    @override
    def get_capabilities(self, *args: Any, **kwargs: Any) -> ServerCapabilities:
        found = super().get_capabilities(*args, **kwargs)
        if found.resources:
            found.resources.subscribe = False  # only changes of the list, not of single resources
        found.prompts = None  # the list is always empty
        return found


class _Changes(ListenHandler):
    """The subscription to changes of the two lists; other subscriptions are not accepted."""

    @override
    async def __call__(
        self, ctx: Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        asked = params.notifications
        agreed = SubscriptionFilter(
            tools_list_changed=asked.tools_list_changed,
            resources_list_changed=asked.resources_list_changed,
        )
        return await super().__call__(ctx, params.model_copy(update={"notifications": agreed}))


class McpServer:
    """The MCP server of a backend, for any transport. For use by one event loop.

    Over HTTP, the scopes of ``request.state.caller`` decide what a caller may do and see.

    Args:
        backend: The backend.
        tools: The tools, in this order.
        threads: Runs calls of the backend.
        announcing: Whether ``announce`` runs, so that clients may subscribe to changes.
        audit: Records actions; None if another process does.
        usage: Records searches and uses in this process; None to record nothing.

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
        usage: UsageRecorder | None = None,
    ) -> None:
        self._backend = backend
        self._tools = {tool.function.name: tool for tool in tools}
        self._threads = threads
        self._is_announcing = announcing
        self._record = Recorder(audit, usage or UsageRecorder(None))
        self._listed: LRUCache[Hashable, tuple[float, Listing]] = LRUCache(MAX_LISTED)
        self._listed_tools: tuple[object, ...] | None = None
        self._listed_skills: str | None = None
        self._session: ServerSession | None = None
        self._bus = InMemorySubscriptionBus()
        self.server: Server[Any] = _Server(
            "repertory",
            version=version("repertory"),
            title="Repertory",
            instructions=_INSTRUCTIONS,
            cache_hints={"resources/list": CacheHint(ttl_ms=_fresh_ms())},
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_list_prompts=self._list_prompts,
            on_read_resource=self._read_resource,
            on_subscriptions_listen=_Changes(self._bus) if announcing else None,
        )
        self.server.extensions[skills.EXTENSION] = {}
        self.server.add_request_handler("skills/list", PaginatedRequestParams, self._list_skills)
        self.server.add_request_handler("skills/get", skills.SkillParams, self._get_skill)
        if announcing:
            self.server.add_notification_handler(
                "notifications/initialized", NotificationParams, self._initialized
            )

    async def announce(self) -> None:
        """Notify clients when the listed tools or skills change, until cancelled."""
        while True:
            self._listed.clear()
            with contextlib.suppress(MCPError):  # the next list reports it
                listing = await self._listing(self._backend, None)
                if self._listed_tools not in (None, self._shown(listing)):
                    self._listed_tools = None
                    await self._bus.publish(ToolsListChanged())
                    if self._session:
                        await self._session.send_tool_list_changed()
                if self._listed_skills not in (None, listing.skills):
                    self._listed_skills = None
                    await self._bus.publish(ResourcesListChanged())
                    if self._session:
                        await self._session.send_resource_list_changed()
            await anyio.sleep(FRESH_S if self._listed else RETRY_INTERVAL_S)

    async def _initialized(self, context: Context, _: NotificationParams) -> None:
        """Remember the only session, to notify clients of the older protocol."""
        self._session = context.session

    async def _list_tools(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        if params and params.cursor is not None:
            raise unknown_cursor()  # all tools are on one page
        listing = await self._listing(*self._backend_of(context))
        self._listed_tools = self._shown(listing)
        summary, scopes = listing.summary, _scopes(context)
        return ListToolsResult(
            tools=[
                tool.definition(summary)
                for tool in self._tools.values()
                if tool.scope in scopes and listing.includes(tool)
            ],
            ttl_ms=int((FRESH_S if summary else RETRY_INTERVAL_S) * 1_000),
            cache_scope="private",
        )

    def _shown(self, listing: Listing) -> tuple[object, ...]:
        """The values that determine the list of tools."""
        parameters = [tool.parameters for tool in self._tools.values()]
        return listing._replace(skills=""), parameters

    async def _listing(self, backend: Backend, seen: Hashable) -> Listing:
        """The contents of the lists, at most ``FRESH_S`` old.

        Args:
            backend: The backend as a caller sees it.
            seen: The cache key: callers with equal keys see equal lists.
        """
        now = time.monotonic()
        if (listed := self._listed.get(seen)) and now - listed[0] <= FRESH_S:
            return listed[1]
        listing = await self._read(lambda: _contents(backend))
        if listing.summary:
            self._listed[seen] = now, listing
        return listing

    async def _call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        tool = self._tools.get(params.name)
        with self._record.tool(context, params, tool.function if tool else None) as record:
            if tool is None:
                raise MCPError(
                    INVALID_PARAMS, f"There is no tool {params.name[:200]!r}; list the tools."
                )
            result = await self._answer(context, tool, params.arguments or {}, record)
            if result.is_error and record.status == 200:
                record.status = 502
            has_links = is_version_at_least(context.protocol_version, "2025-06-18")
            return result if has_links else without_links(result)

    async def _answer(
        self, context: Context, tool: Tool, arguments: dict[str, Any], record: ActionStatus
    ) -> CallToolResult:
        if tool.scope not in _scopes(context):
            record.status = 403
            return tool.failure(
                f"{tool.function.name} needs a key with the scope {tool.scope}; "
                "ask the person who runs this server."
            )
        backend, _ = self._backend_of(context)
        try:
            with waiting():  # a cancelled request cancels its calls
                return await self._threads(tool.work, lambda: tool.answer(backend, arguments))
        except RepertoryError as error:
            record.status = status_of(error)
            return tool.failure(str(error))
        # The boundary: the answer reveals nothing about the error.
        except Exception as error:
            record.status = 500
            return tool.failure(incident("mcp_request_failed", error))

    async def _list_resources(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        with self._record.action(context, "list"):
            after = after_of(params.cursor if params else None)
            backend = await self._backend_with_skills(context)
            resources, cursor = await self._read(lambda: skills_after(backend, after))
        return ListResourcesResult(resources=resources, next_cursor=cursor)

    async def _list_templates(
        self, _: Context, __: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        """Return an empty list; some clients drop all resources if they get an error."""
        return ListResourceTemplatesResult(resource_templates=[])

    async def _list_prompts(
        self, _: Context, __: PaginatedRequestParams | None
    ) -> ListPromptsResult:
        """Return an empty list; some clients ask every server, and drop it if they get an error."""
        return ListPromptsResult(prompts=[])

    async def _read_resource(
        self, context: Context, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        uri = str(params.uri)
        with self._record.action(context, "read", [id_of(uri) or uri]):
            backend, _ = self._backend_of(context)
            return ReadResourceResult(contents=[await self._read(lambda: read(backend, uri))])

    async def _list_skills(self, context: Context, params: PaginatedRequestParams) -> skills.Json:
        with self._record.action(context, "list"):
            after = after_of(params.cursor)
            backend = await self._backend_with_skills(context)
            return await self._read(lambda: skills.list_skills(backend, after, _fresh_ms()))

    async def _get_skill(self, context: Context, params: skills.SkillParams) -> skills.Json:
        with self._record.action(context, "read", [id_of(params.uri) or params.uri]):
            backend, _ = self._backend_of(context)
            return await self._read(lambda: skills.get_skill(backend, params.uri, _fresh_ms()))

    async def _backend_with_skills(self, context: Context) -> Backend:
        """The backend as a caller sees it, for a list of its skills.

        A subscribed caller is notified when the skills change afterwards.
        """
        backend, seen = self._backend_of(context)
        if self._is_announcing:
            self._listed_skills = (await self._listing(backend, seen)).skills
        return backend

    def _backend_of(self, context: Context) -> tuple[Backend, Hashable]:
        """The backend as a caller sees it, and a key for this view; see ``visibility``."""
        if not context.request:
            return self._backend, None
        if not isinstance(self._backend, Service):
            raise TypeError("Only a server has callers.")
        caller = context.request.state.caller
        seen: Hashable = ()
        with contextlib.suppress(StoreError):  # the request itself reports it
            seen = visibility(caller, self._backend)
        return visible_to(caller, self._backend), seen

    async def _read(self, call: Callable[[], T]) -> T:
        """Read from the backend; failures become protocol errors."""
        try:
            return await self._threads(Work.READ, call)
        except UnknownItemError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error
        except RepertoryError as error:
            raise MCPError(INTERNAL_ERROR, str(error)) from error
        # The boundary, as above.
        except Exception as error:
            raise MCPError(INTERNAL_ERROR, incident("mcp_request_failed", error)) from error


def _contents(backend: Backend) -> Listing:
    """The contents of the lists; unreadable parts are left out, since a search reports them."""
    with contextlib.suppress(RepertoryError):
        found = backend.contents()
        return Listing(
            summary=contents(found),
            calls_allowed=found.calls_allowed,
            changes_allowed=found.changes_allowed,
            skills=found.skills,
        )
    with contextlib.suppress(RepertoryError):
        return Listing(calls_allowed=backend.calls_allowed)
    return Listing()


def _fresh_ms() -> int:
    return int(FRESH_S * 1_000)


def _scopes(context: Context) -> frozenset[Scope]:
    """The scopes of a caller; the user who started this process has all of them."""
    return context.request.state.caller.scopes if context.request else frozenset(Scope)
