"""Talking to a server through the official SDK, within bounds of time and size.

Imported only when a server is asked: the SDK takes long to import.
"""

import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version

import anyio
from mcp import Client, MCPError
from mcp.client.session import IncomingMessage
from mcp_types import CONNECTION_CLOSED, Implementation, ToolListChangedNotification

from repertory.errors import SourceError
from repertory.sources.mcp.conversation import Conversation
from repertory.sources.mcp.server import ServerConfig, Transport
from repertory.sources.mcp.traffic import TOO_MUCH, Listing, Traffic, quote, quote_end
from repertory.sources.mcp.transports import open_streams
from repertory.sources.mcp.variables import Launch, fill_in


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


Talk = Callable[[Conversation], Awaitable[None]]


async def converse(
    server: ServerConfig, talk: Talk, environment: Mapping[str, str] = os.environ
) -> str:
    """Start or call a server and talk to it, in the first of the ways in which it answers.

    Args:
        server: The server.
        talk: Lists its tools first, or stays; leaving it hangs up.
        environment: What variables are filled in from.

    Returns:
        Why the conversation broke off, after its tools were listed or it was stayed with; empty
        where it ended in good order.

    Raises:
        SourceError: It broke off before that; see ``list_tools``.
    """
    launch = fill_in(server, environment)
    # They log whole addresses, with the keys that some servers take in them.
    for name in ("mcp.client", "mcp.shared", "client", "httpx2"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    failure = ""
    is_cut_off = False
    traffic = Traffic()
    with anyio.move_on_after(server.timeout) as limit:
        for transport, mode in _ways(server):
            traffic = Traffic()
            try:
                async with (
                    _connect(transport, mode, launch, traffic) as client,
                    Conversation(server, launch, client, traffic, limit) as conversation,
                ):
                    traffic.greeted = True
                    await talk(conversation)
                    is_cut_off = traffic.ended.is_set()
                    limit.deadline = anyio.current_time() + server.timeout  # to say goodbye
            # A boundary: what the SDK, its transports and their task groups raise is an open set.
            except Exception as exc:
                error = _first_leaf(exc)
                failure = failure or _explain(error, launch, traffic)
                if _is_refusal(error, traffic):
                    continue
            break
    if is_cut_off and not failure:
        failure = _explain(None, launch, traffic)
    if not failure and traffic.complete:
        return ""
    failure = failure or f"did not answer within {server.timeout:g} s"
    words = f"{failure}{_last_words(launch, traffic)}".rstrip(".")
    message = f"The MCP server {server.name} {words}."
    if not traffic.complete:
        # Out here it is not chained: what it failed on may quote addresses with their secrets.
        raise SourceError(message)
    return message


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
        client_info=Implementation(name="repertory", version=version("repertory")),
        message_handler=hear,
    )


def _explain(error: BaseException | None, launch: Launch, traffic: Traffic) -> str:
    """What went wrong, to follow after the name of the server."""
    if traffic.flooded:
        return TOO_MUCH
    if traffic.exit_code is not None:
        return f"ended with exit code {traffic.exit_code} before it had answered"
    if traffic.status >= 400:
        hint = ": its headers must permit the call" if traffic.status in (401, 403) else ""
        return f"answered with HTTP status {traffic.status}{hint}"
    if isinstance(error, OSError):
        missing = str(error.filename or launch.command)  # the command, or the folder to start in
        return f"could not be started: {error.strerror}: {quote(launch.redact(missing))}"
    if error is None:
        return "closed the connection"
    return f"could not be asked: {quote(launch.redact(str(error)))}"


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
