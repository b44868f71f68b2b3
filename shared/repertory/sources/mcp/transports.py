"""The transports to a server: its process, streamable HTTP or SSE, each with limits.

Imports the SDK, which is slow: import it only to contact a server.
"""

import asyncio
import contextlib
import functools
import logging
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

import anyio
import httpx2
from anyio.abc import ObjectReceiveStream
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse

from repertory.errors import SourceError
from repertory.sources.mcp.oauth import TokenAuth
from repertory.sources.mcp.process import run_process
from repertory.sources.mcp.server import Transport
from repertory.sources.mcp.sign_ins import SignIns
from repertory.sources.mcp.traffic import MAX_BYTES, Traffic
from repertory.sources.mcp.unreadable_answers import mended
from repertory.sources.mcp.variables import Launch
from repertory.system.addresses import DIRECT


def silence() -> None:
    """Silence the SDK, which logs whole URLs with keys and OAuth states."""
    for name in ("mcp.client", "mcp.shared", "client", "httpx2"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


@contextlib.asynccontextmanager
async def open_streams(
    transport: Transport, launch: Launch, traffic: Traffic
) -> AsyncIterator[tuple[Any, Any]]:
    """Connect to a server; yields the stream of its messages, without tools, and that of ours."""
    async with contextlib.AsyncExitStack() as stack:
        match transport:
            case Transport.STDIO:
                streams: Any = run_process(launch, traffic)
            case Transport.HTTP:
                client = await stack.enter_async_context(
                    http_client(traffic, launch.headers, auth=_auth(launch, traffic))
                )
                streams = streamable_http_client(
                    launch.url, http_client=client, max_sse_event_size=MAX_BYTES
                )
            case Transport.SSE:
                streams = sse_client(
                    launch.url,
                    launch.headers,
                    httpx_client_factory=functools.partial(http_client, traffic),
                    auth=_auth(launch, traffic),
                )
        received, to_send = await stack.enter_async_context(streams)
        yield _Incoming(received, traffic), to_send


class _Incoming(ObjectReceiveStream[SessionMessage | Exception]):
    """A server's messages, from which the tools of a listing are moved to ``traffic``, as sent.

    The SDK rejects a whole page for one invalid tool; this way, each tool is checked separately.
    """

    def __init__(
        self, inner: ObjectReceiveStream[SessionMessage | Exception], traffic: Traffic
    ) -> None:
        self._inner = inner
        self._traffic = traffic

    async def receive(self) -> SessionMessage | Exception:
        try:
            item = await self._inner.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, asyncio.CancelledError):
            self._traffic.end()
            raise
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
            result = item.message.result
            if not self._traffic.complete and isinstance(result.get("tools"), list):
                self._traffic.listing.tools.extend(result["tools"])
                result["tools"] = []
        return item

    async def aclose(self) -> None:
        await self._inner.aclose()


def _auth(launch: Launch, traffic: Traffic) -> TokenAuth | None:
    """The authentication of requests to a server; None if its configuration has its own."""
    if launch.has_authorization:
        return None
    sign_ins = SignIns(Path(launch.sign_ins)) if launch.sign_ins else None
    return TokenAuth(sign_ins, launch, traffic, lambda: http_client(Traffic(), is_mcp=False))


def http_client(
    traffic: Traffic,
    headers: Mapping[str, str] | None = None,
    timeout: httpx2.Timeout | None = None,
    auth: httpx2.Auth | None = None,
    *,
    is_mcp: bool = True,
) -> httpx2.AsyncClient:
    """Return an HTTP client that records the status and counts the bytes of each response.

    Args:
        traffic: The record of the session.
        headers: Sent with each request.
        timeout: The timeouts of each request; none by default.
        auth: The authentication of requests.
        is_mcp: Whether the responses are from an MCP server and need ``mended``.
    """

    async def note(response: httpx2.Response) -> None:
        # Only the first status and those of our messages count: servers may reject other requests.
        if response.request.method == "POST" or not traffic.status:
            traffic.status = response.status_code
            if traffic.is_connected and response.status_code == HTTPStatus.NOT_FOUND:
                traffic.forget(response.request.content)
        if response.headers.get("content-encoding", "identity") != "identity":
            raise SourceError("compressed its answer, so its size has no limit")
        response.encoding = "utf-8"  # whatever its header says: one codec takes quadratic time
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        # The stream of a GET stays open for the server's own messages.
        is_event_stream = response.request.method == "GET" and response.is_success
        counted = _Counted(response.stream, traffic, is_event_stream=is_event_stream)
        response.stream = _Mended(counted, traffic) if is_mcp else counted

    return httpx2.AsyncClient(
        headers={**(headers or {}), "Accept-Encoding": "identity"},
        timeout=timeout or httpx2.Timeout(None),
        auth=auth,
        event_hooks={"response": [note]},
        mounts=DIRECT,
    )


class _Counted(httpx2.AsyncByteStream):
    """A body that fails as soon as it exceeds the limits."""

    def __init__(
        self, inner: httpx2.AsyncByteStream, traffic: Traffic, *, is_event_stream: bool
    ) -> None:
        self._inner = inner
        self._traffic = traffic
        self._is_event_stream = is_event_stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._inner:
                if not self._traffic.add_received(chunk):
                    raise httpx2.StreamError("too much")
                yield chunk
        finally:
            if self._is_event_stream:
                self._traffic.changed.set()

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Mended(httpx2.AsyncByteStream):
    """A body or event stream, changed so that the SDK can read its answers; see ``mended``."""

    def __init__(self, inner: httpx2.AsyncByteStream, traffic: Traffic) -> None:
        self._inner = inner
        self._traffic = traffic

    async def __aiter__(self) -> AsyncIterator[bytes]:
        rest = bytearray()
        is_body = False
        async for chunk in self._inner:
            rest += chunk
            is_body = is_body or rest[:16].lstrip()[:1] == b"{"  # no line of an event starts so
            if not is_body and b"\n" in chunk:
                whole, _, rest = rest.rpartition(b"\n")
                yield b"\n".join(map(self._event, whole.split(b"\n"))) + b"\n"
        yield self._answer(bytes(rest)) if is_body else bytes(rest)

    def _event(self, line: bytearray) -> bytes:
        field, _, data = line.partition(b"data:")
        is_message = not field and data.lstrip()[:1] == b"{"
        return b"data: " + self._answer(bytes(data)) if is_message else bytes(line)

    def _answer(self, data: bytes) -> bytes:
        return mended(data, self._traffic.listing.complaints) or data

    async def aclose(self) -> None:
        await self._inner.aclose()
