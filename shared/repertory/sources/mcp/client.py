"""Communication with a server through the official SDK, with limits on time and size.

Imports the SDK, which is slow: import it only to contact a server.
"""

import contextlib
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from importlib.metadata import version

import anyio
from mcp import Client, MCPError
from mcp.client.session import IncomingMessage
from mcp_types import CONNECTION_CLOSED, Implementation, ToolListChangedNotification

from repertory.errors import SignInError, SourceError
from repertory.sources.mcp.conversation import Conversation
from repertory.sources.mcp.server import ServerConfig, Transport
from repertory.sources.mcp.traffic import SAYS, TOO_MUCH, Listing, Traffic, quote, quote_end
from repertory.sources.mcp.transports import open_streams, silence
from repertory.sources.mcp.variables import Launch, fill_in
from repertory.system.cancellation import cancelling, leave_lookups

DISCONNECT_TIMEOUT_S = 2.0  # after the answer; the server's own timeout ends with that


def list_tools(server: ServerConfig, given_up: Future[None]) -> Listing:
    """Start or contact a server, list all pages of its tools, and disconnect.

    The listing stops after more than ``MAX_TOOLS``. Safe to call from several threads at once, but
    not from within an event loop.

    Args:
        server: The server.
        given_up: Cancelling it ends the listing at once.

    Raises:
        SignInError: It asks for a sign-in.
        SourceError: It cannot be started or reached, exits, hangs, or does not speak MCP. The
            message contains no secret of its configuration.
    """
    listings: list[Listing] = []

    async def talk(conversation: Conversation) -> None:
        listings.append(await conversation.list_tools())

    async def ask() -> None:
        leave_lookups()
        with anyio.CancelScope() as scope:
            cancel = cancelling(scope)
            given_up.add_done_callback(lambda _: cancel())
            await converse(server, talk)

    anyio.run(ask)
    if not listings:
        raise SourceError(
            f"The MCP server {server.name} was not queried, because the request was cancelled."
        )
    return listings[0]


Talk = Callable[[Conversation], Awaitable[None]]


async def converse(server: ServerConfig, talk: Talk) -> str:
    """Start or contact a server and talk to it over the first protocol that it answers.

    Args:
        server: The server.
        talk: Lists the tools first, or calls ``stay``. The connection closes when it returns.

    Returns:
        Why the connection was lost after the listing or ``stay``; empty if it was closed properly.

    Raises:
        SourceError: The connection was lost before the listing; see ``list_tools``.
    """
    launch = fill_in(server)
    silence()
    failure = ""
    is_cut_off = False
    traffic = Traffic()
    with anyio.move_on_after(server.timeout) as limit:
        for transport, mode in _attempts(server):
            traffic = Traffic()
            try:
                async with (
                    _connect(transport, mode, launch, traffic) as client,
                    contextlib.AsyncExitStack() as stack,
                ):
                    traffic.is_connected = True
                    failure = ""  # forget the failures of earlier attempts
                    await talk(Conversation(server, launch, client, traffic, limit, stack))
                    is_cut_off = traffic.ended.is_set()
                    timeout = min(server.timeout, DISCONNECT_TIMEOUT_S)
                    limit.deadline = anyio.current_time() + timeout
            # A boundary: the SDK, its transports and their task groups may raise anything.
            except Exception as exc:
                error = _first_leaf(exc)
                # The first way's failure counts, unless a later one only lacks a sign-in.
                failure = traffic.about_sign_in(server.name) or failure
                failure = failure or _explain(error, server.name, launch, traffic)
                if _is_refusal(error, traffic):
                    continue
            break
    if is_cut_off and not failure:
        failure = _explain(None, server.name, launch, traffic)
    if not failure and traffic.complete:
        return ""
    failure = failure or f"did not answer within {server.timeout:g} s"
    words = f"{failure}{_quoted_output(launch, traffic)}".rstrip(".")
    message = f"The MCP server {server.name} {words}."
    if not traffic.complete:
        # Raised here, without its cause, which may quote URLs with secrets.
        raise SignInError(message) if traffic.awaits_sign_in else SourceError(message)
    return message


def _attempts(server: ServerConfig) -> list[tuple[Transport, str]]:
    """Return the transports and protocol versions to try, in order.

    The older handshake comes first: servers that support only it may exit or hang on the newer
    protocol's first request, while servers that support only the newer one reject it at once. A
    URL for streamable HTTP may be one for SSE.
    """
    if server.transport is Transport.SSE:
        return [(Transport.SSE, "legacy")]
    ways: list[tuple[Transport, str]] = [(server.transport, "legacy"), (server.transport, "auto")]
    if server.transport is Transport.HTTP:
        ways.append((Transport.SSE, "legacy"))
    return ways


def _is_refusal(error: BaseException, traffic: Traffic) -> bool:
    """Whether a server rejected the protocol, rather than failed."""
    if traffic.is_connected or traffic.exceeds_limits or traffic.renewal_error:
        return False
    if traffic.status in (401, 403):
        return False
    return isinstance(error, MCPError) and error.code != CONNECTION_CLOSED


def _connect(transport: Transport, mode: str, launch: Launch, traffic: Traffic) -> Client:
    async def receive(message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            traffic.changed.set()

    return Client(
        open_streams(transport, launch, traffic),
        mode=mode,
        cache=None,
        client_info=Implementation(name="repertory", version=version("repertory")),
        message_handler=receive,
    )


def _explain(error: BaseException | None, name: str, launch: Launch, traffic: Traffic) -> str:
    """Describe the failure, as a predicate after the name of the server."""
    if known := TOO_MUCH if traffic.exceeds_limits else traffic.about_sign_in(name):
        return known
    if traffic.exit_code is not None:
        return f"ended with exit code {traffic.exit_code} before it answered"
    if traffic.status >= 400:
        hint = ": its headers must permit the call" if traffic.status in (401, 403) else ""
        return f"answered with HTTP status {traffic.status}{hint}"
    if isinstance(error, OSError):
        missing = str(error.filename or launch.command)  # the command, or its working directory
        shown = quote(launch.redact(missing))
        is_searched = missing == launch.command and "/" not in missing
        unknown = f"{shown} was not found in its search path (PATH)"
        return f"could not be started: {unknown if is_searched else f'{error.strerror}: {shown}'}"
    if error is None:
        return "closed the connection"
    return f"could not be queried: {quote(launch.redact(str(error)))}"


def _quoted_output(launch: Launch, traffic: Traffic) -> str:
    """Quote the server's own output, to append to the description of the failure."""
    if traffic.last_stderr:
        return f"{SAYS}: {quote_end(launch.redact(traffic.last_stderr))}"
    if traffic.stray:
        return f"{SAYS} text that is not MCP: {quote(launch.redact(traffic.stray))}"
    return ""


def _first_leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
