"""Asking a server for its tools through the official SDK, within bounds of time and size.

Imported only when a server is asked: the SDK takes long to import.
"""

import contextlib
import logging
import math
import os
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Self

import anyio
import msgspec
from mcp import Client, MCPError
from mcp.client.session import IncomingMessage
from mcp_types import (
    CONNECTION_CLOSED,
    METHOD_NOT_FOUND,
    Implementation,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from repertory import __version__
from repertory.errors import SourceError
from repertory.sources.mcp.server import ServerConfig, Transport
from repertory.sources.mcp.traffic import MOST_BYTES, MOST_LINES, Listing, Traffic, quote, quote_end
from repertory.sources.mcp.transports import open_streams
from repertory.sources.mcp.variables import Launch, fill_in
from repertory.sources.tools import MOST_TOOLS

MOST_PAGES = 1_000


def list_tools(server: ServerConfig, environment: Mapping[str, str] = os.environ) -> Listing:
    """Start or call a server, list all its tools, page after page, and leave it.

    It is asked for no more once there are more than ``MOST_TOOLS``. Safe to call from several
    threads at once, but not from within an event loop.

    Raises:
        SourceError: It cannot be started or reached, ends or hangs, or does not speak MCP. The
            message carries no secret of its configuration.
    """
    listings: list[Listing] = []

    async def talk(conversation: Conversation) -> None:
        listings.append(await conversation.list_tools())

    anyio.run(converse, server, talk, environment)
    return listings[0]


class Conversation:
    """What can be said to a server while the line is open."""

    def __init__(
        self, client: Client, traffic: Traffic, limit: anyio.CancelScope, seconds: float
    ) -> None:
        self._client = client
        self._traffic = traffic
        self._limit = limit
        self._seconds = seconds
        self._subscription = contextlib.AsyncExitStack()
        self._subscribed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._subscription.aclose()

    @property
    def tells_of_changes(self) -> bool:
        """Whether the server says when its tools have changed."""
        tools = self._client.server_capabilities.tools
        return bool(tools and tools.list_changed)

    async def list_tools(self) -> Listing:
        """All its tools, for which it has as long as it was given to begin with."""
        traffic = self._traffic
        if traffic.complete:
            traffic.begin()
            self._limit.deadline = anyio.current_time() + self._seconds
        await _read_pages(self._client, traffic)
        traffic.complete = True
        return Listing(traffic.tools, traffic.complaints)

    async def wait_for_change(self, seconds: float) -> None:
        """Wait until the server says that its tools changed, or the connection ends.

        It returns at once where the newer protocol makes us ask first to be told of changes: there
        may have been some before.

        Args:
            seconds: The longest to wait.
        """
        if self._client.protocol_version in MODERN_PROTOCOL_VERSIONS and not self._subscribed:
            changes = self._client.listen(tools_list_changed=True)  # they come as any message does
            await self._subscription.enter_async_context(changes)
            self._subscribed = True
            self._limit.deadline = math.inf
            return
        self._limit.deadline = math.inf
        with anyio.move_on_after(seconds):
            await self._traffic.stirred.wait()


Talk = Callable[[Conversation], Awaitable[None]]


async def converse(
    server: ServerConfig, talk: Talk, environment: Mapping[str, str] = os.environ
) -> None:
    """Start or call a server and talk to it, in the first of the ways in which it answers.

    A conversation that breaks off after its tools were listed ends in good order.

    Args:
        server: The server.
        talk: Lists its tools first; leaving it hangs up.
        environment: What variables are filled in from.

    Raises:
        SourceError: It did not list its tools; see ``list_tools``.
    """
    launch = fill_in(server, environment)
    # They log whole addresses, with the keys that some servers take in them.
    for name in ("mcp.client", "mcp.shared", "client", "httpx2"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    failure = ""
    traffic = Traffic()
    with anyio.move_on_after(server.timeout) as limit:
        for transport, mode in _ways(server):
            traffic = Traffic()
            try:
                async with (
                    _connect(transport, mode, launch, traffic) as client,
                    Conversation(client, traffic, limit, server.timeout) as conversation,
                ):
                    traffic.greeted = True
                    await talk(conversation)
                    limit.deadline = anyio.current_time() + server.timeout  # to say goodbye
            # A boundary: what the SDK, its transports and their task groups raise is an open set.
            except Exception as exc:
                error = _first_leaf(exc)
                failure = failure or _explain(error, launch, traffic)
                if _is_refusal(error, traffic):
                    continue
            break
    if not traffic.complete:  # else it failed only to say goodbye
        failure = failure or f"did not list its tools within {server.timeout:g} s"
        last_words = _last_words(launch, traffic)
        # Out here it is not chained: what it failed on may quote addresses with their secrets.
        raise SourceError(f"The MCP server {server.name} {failure}{last_words}.")


def _ways(server: ServerConfig) -> list[tuple[Transport, str]]:
    """How to speak to a server, in order: over what, and in which era of the protocol.

    The older handshake goes first: servers that know only that one may end or wait over what the
    newer protocol asks first, while those that know only the newer one refuse it at once. An
    address of streamable HTTP may turn out to be one of SSE.
    """
    if server.transport is Transport.SSE:
        return [(Transport.SSE, "legacy")]
    ways: list[tuple[Transport, str]] = [(server.transport, "legacy"), (server.transport, "auto")]
    if server.transport is Transport.HTTP:
        ways.append((Transport.SSE, "legacy"))
    return ways


def _is_refusal(error: BaseException, traffic: Traffic) -> bool:
    """Whether a server refused how it was spoken to, rather than failed."""
    if traffic.greeted or traffic.flooded or traffic.status in (401, 403):
        return False
    return isinstance(error, MCPError) and error.code != CONNECTION_CLOSED


def _connect(transport: Transport, mode: str, launch: Launch, traffic: Traffic) -> Client:
    async def hear(message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            traffic.stirred.set()

    return Client(
        open_streams(transport, launch, traffic),
        mode=mode,
        cache=None,
        client_info=Implementation(name="repertory", version=__version__),
        message_handler=hear,
    )


async def _read_pages(client: Client, traffic: Traffic) -> None:
    """Ask for page after page; each one's tools end up in ``traffic``."""
    cursor: str | None = None
    seen: set[str] = set()
    while True:
        try:
            page = await client.list_tools(cursor=cursor)
        except MCPError as exc:
            if exc.code == METHOD_NOT_FOUND and client.server_capabilities.tools is None:
                return  # it has prompts or resources only
            raise
        cursor = page.next_cursor
        if not cursor or len(traffic.tools) > MOST_TOOLS:
            return
        if cursor in seen:
            traffic.complaints.append("gives a page of its tools again and again")
            traffic.tools = list({msgspec.json.encode(t): t for t in traffic.tools}.values())
            return
        if len(seen) == MOST_PAGES:
            traffic.complaints.append(f"has more than {MOST_PAGES:,} pages; the rest is left out")
            return
        seen.add(cursor)


def _explain(error: BaseException, launch: Launch, traffic: Traffic) -> str:
    """What went wrong, to follow after the name of the server."""
    if traffic.flooded:
        return f"sent more than {MOST_BYTES // 2**20} MB or {MOST_LINES:,} lines"
    if traffic.exit_code is not None:
        return f"ended with exit code {traffic.exit_code} before it had listed its tools"
    if traffic.status in (401, 403):
        return f"answered with HTTP status {traffic.status}: its headers must permit the call"
    if traffic.status >= 400:
        return f"answered with HTTP status {traffic.status}"
    if isinstance(error, OSError):
        missing = str(error.filename or launch.command)  # the command, or the folder to start in
        return f"could not be started: {error.strerror}: {quote(launch.redact(missing))}"
    return f"could not be asked for its tools: {quote(launch.redact(str(error)))}"


def _last_words(launch: Launch, traffic: Traffic) -> str:
    """What the server itself has to say, to follow after what went wrong."""
    if traffic.last_words:
        return f"; it wrote: {quote_end(launch.redact(traffic.last_words))}"
    if traffic.stray:
        return f"; it wrote what is not MCP: {quote(launch.redact(traffic.stray))}"
    return ""


def _first_leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
