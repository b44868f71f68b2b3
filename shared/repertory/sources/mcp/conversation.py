"""Requests to a server over an open connection. Import it only to contact a server."""

import contextlib
import math
from typing import Any, NoReturn

import anyio
import msgspec
from mcp import Client, MCPError
from mcp.client.subscriptions import Subscription, SubscriptionLost
from mcp_types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    METHOD_NOT_FOUND,
    CallToolRequest,
    CallToolRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import RootModel, ValidationError

from repertory.errors import CallError
from repertory.sources.mcp.server import ServerConfig
from repertory.sources.mcp.traffic import TOO_MUCH, Listing, Traffic, call_key, quote
from repertory.sources.mcp.variables import Launch
from repertory.sources.tools import MAX_TOOLS

MAX_PAGES = 1_000
SETTLING_S = 0.1  # for the SDK to hand over the changes that it has received


class _Answer(RootModel[dict[str, Any]]):
    """A result as sent, only checked to be an object."""


class ConnectionLostError(Exception):
    """The connection to a server was lost during a call; the owner of the session handles it.

    Attributes:
        maybe_received: Whether the server may have received the call.
    """

    def __init__(self, *, maybe_received: bool) -> None:
        self.maybe_received = maybe_received


class Conversation:
    """An open session with a server. A subscription to changes ends with ``stack``."""

    def __init__(
        self,
        server: ServerConfig,
        launch: Launch,
        client: Client,
        traffic: Traffic,
        limit: anyio.CancelScope,
        stack: contextlib.AsyncExitStack,
    ) -> None:
        self._server = server
        self._launch = launch
        self._client = client
        self._traffic = traffic
        self._limit = limit
        self._stack = stack
        self._changes: Subscription | None = None

    @property
    def reports_changes(self) -> bool:
        """Whether the server reports when its tools have changed."""
        tools = self._client.server_capabilities.tools
        return bool(tools and tools.list_changed)

    async def list_tools(self) -> Listing:
        """List all its tools, within the server's timeout."""
        traffic = self._traffic
        if traffic.complete:
            traffic.start_listing()
            self._limit.deadline = anyio.current_time() + self._server.timeout
        await _read_pages(self._client, traffic)
        traffic.complete = True
        return traffic.listing

    async def wait_for_change(self, seconds: float) -> None:
        """Wait until the server reports changed tools, the connection ends, or time is up.

        With the newer protocol, the first call subscribes and returns at once, because changes may
        have happened before. If the subscription has ended, such as with a restarted server, the
        next call subscribes again.
        """
        if self._client.protocol_version in MODERN_PROTOCOL_VERSIONS and self._changes is None:
            changes = self._client.listen(tools_list_changed=True)  # they arrive as normal messages
            self._changes = await self._stack.enter_async_context(changes)
            self._limit.deadline = math.inf
            return
        self._limit.deadline = math.inf
        with anyio.move_on_after(seconds):
            await self._traffic.changed.wait()
        if self._changes is not None and await _has_ended(self._changes):
            self._changes = None

    @property
    def is_over(self) -> bool:
        """Whether no further request is possible."""
        traffic = self._traffic
        return traffic.ended.is_set() or traffic.forgotten or traffic.exceeds_limits

    def stay(self) -> None:
        """Keep the session open for calls, without a time limit, instead of listing tools."""
        self._traffic.complete = True
        self._limit.deadline = math.inf

    async def wait_for_end(self) -> None:
        """Wait until the connection is closed."""
        await self._traffic.ended.wait()

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool and return its result in the protocol's form.

        Several calls may run at once; a cancelled one is cancelled on the server.

        Raises:
            CallError: The answer is an error, invalid or too large.
            ConnectionLostError: The connection is lost.
        """
        if self.is_over:
            raise ConnectionLostError(maybe_received=False)
        params = CallToolRequestParams(name=name, arguments=arguments)
        try:
            answer = await self._send(CallToolRequest(params=params))
        except MCPError as error:
            self._check_refused(call_key(name, arguments))
            self._fail(error)
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, found["loc"]))
            raise self._error(f"answered with an invalid result: {where}: {found['msg']}") from None
        finally:
            self._traffic.reset_counters()
        if answer.get("resultType", "complete") != "complete":
            raise self._error("requests more input during a call, which is not supported")
        return answer

    async def is_alive(self, seconds: float) -> bool:
        """Whether the server gives any answer within the given seconds."""
        with anyio.move_on_after(seconds):
            try:
                await self._client.session.send_ping()
            except MCPError as error:  # newer servers need not support ping
                return error.code != CONNECTION_CLOSED
            except ValidationError:
                pass
            return True
        return False

    async def _send(self, call: CallToolRequest) -> dict[str, Any]:
        session = self._client.session
        try:
            return (await session.send_request(call, _Answer)).root
        except MCPError as error:
            if error.code != HEADER_MISMATCH:
                raise
            await self._learn_headers(call.params.name)
            return (await session.send_request(call, _Answer)).root

    async def _learn_headers(self, name: str) -> None:
        """Let the SDK learn which arguments of a tool the newer protocol repeats as headers."""
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self._client.list_tools(cursor=cursor)
            cursor = page.next_cursor
            if not cursor or any(tool.name == name for tool in page.tools):
                return

    def _check_refused(self, call: bytes) -> None:
        """Raise ConnectionLostError if this call, not another one, was refused."""
        if self._traffic.refused[call]:
            self._traffic.refused[call] -= 1
            # According to the protocol, the server has not processed it.
            raise ConnectionLostError(maybe_received=False) from None

    def _fail(self, error: MCPError) -> NoReturn:
        """Raise the error for a failed call, without its cause, which may quote secrets."""
        traffic = self._traffic
        if traffic.exceeds_limits:
            raise self._error(TOO_MUCH) from None
        # Servers use this code for other errors, too.
        if error.code == CONNECTION_CLOSED and traffic.ended.is_set():
            raise ConnectionLostError(maybe_received=True) from None
        if known := traffic.about_sign_in(self._server.name):
            raise self._error(known) from None
        status = f" and HTTP status {traffic.status}" if traffic.status >= 400 else ""
        words = quote(self._launch.redact(error.message))
        raise self._error(f"answered with an error{status}: {words}") from None

    def _error(self, text: str) -> CallError:
        return CallError(f"The MCP server {self._server.name} {text.rstrip('.')}.")


async def _has_ended(changes: Subscription) -> bool:
    """Whether a subscription has ended; the changes that it has received are dropped."""
    with anyio.move_on_after(SETTLING_S):
        try:
            async for _ in changes:
                pass
        except SubscriptionLost:
            return True
        return True
    return False


async def _read_pages(client: Client, traffic: Traffic) -> None:
    """Request all pages; their tools arrive in ``traffic``."""
    listing = traffic.listing
    cursor: str | None = None
    seen: set[str] = set()
    while True:
        try:
            page = await client.list_tools(cursor=cursor)
        except MCPError as exc:
            if exc.code == METHOD_NOT_FOUND and client.server_capabilities.tools is None:
                return  # it has only prompts or resources
            raise
        cursor = page.next_cursor
        if not cursor or len(listing.tools) > MAX_TOOLS:
            return
        if cursor in seen:
            listing.complaints.append("sends the same page of tools repeatedly")
            listing.tools[:] = {msgspec.json.encode(t): t for t in listing.tools}.values()
            return
        if len(seen) == MAX_PAGES:
            listing.complaints.append(f"has more than {MAX_PAGES:,} pages; the rest is left out")
            return
        seen.add(cursor)
