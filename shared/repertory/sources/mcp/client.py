"""Asking a server for its tools through the official SDK, within bounds of time and size.

Imported only when a server is asked: the SDK takes long to import.
"""

import logging
import os
from collections.abc import Mapping

import anyio
import msgspec
from mcp import Client, MCPError
from mcp_types import CONNECTION_CLOSED, METHOD_NOT_FOUND, Implementation

from repertory import __version__
from repertory.errors import SourceError
from repertory.sources.mcp.server import ServerConfig, Transport
from repertory.sources.mcp.traffic import MOST_BYTES, MOST_LINES, Traffic, quote, quote_end
from repertory.sources.mcp.transports import open_streams
from repertory.sources.mcp.variables import Launch, fill_in
from repertory.sources.tools import MOST_TOOLS

MOST_PAGES = 1_000


def list_tools(server: ServerConfig, environment: Mapping[str, str] = os.environ) -> Traffic:
    """Start or call a server, list all its tools, page after page, and leave it.

    It is asked for no more once there are more than ``MOST_TOOLS``. Safe to call from several
    threads at once, but not from within an event loop.

    Returns:
        What the server sent: its ``tools`` as it wrote them, unchecked, and the ``complaints``
        there are about the listing as a whole.

    Raises:
        SourceError: It cannot be started or reached, ends or hangs, or does not speak MCP. The
            message carries no secret of its configuration.
    """
    launch = fill_in(server, environment)
    # They log whole addresses, with the keys that some servers take in them.
    for name in ("mcp.client", "mcp.shared", "client", "httpx2"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return anyio.run(_list_tools, server, launch)


async def _list_tools(server: ServerConfig, launch: Launch) -> Traffic:
    """Try one way of speaking to a server after the other, within its time limit."""
    failure = ""
    traffic = Traffic()
    with anyio.move_on_after(server.timeout):
        for transport, mode in _ways(server):
            traffic = Traffic()
            try:
                await _converse(transport, mode, launch, traffic)
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
    return traffic


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


async def _converse(transport: Transport, mode: str, launch: Launch, traffic: Traffic) -> None:
    streams = open_streams(transport, launch, traffic)
    about_us = Implementation(name="repertory", version=__version__)
    async with Client(streams, mode=mode, cache=None, client_info=about_us) as client:
        traffic.greeted = True
        await _read_pages(client, traffic)
        traffic.complete = True


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
