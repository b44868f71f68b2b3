"""MCP over the standard streams of this process, which must not be used for anything else."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import anyio
from anyio import CapacityLimiter, create_task_group, to_thread
from anyio.abc import ObjectReceiveStream
from mcp.server.lowlevel import NotificationOptions
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from repertory.audit import Audit
from repertory.backend import Backend
from repertory.text import with_whole_characters
from repertory.usage.recorder import UsageRecorder
from repertory_query.backend.pool import Work
from repertory_query.mcp.server import McpServer
from repertory_query.mcp.tool import Tool

THREADS = {Work.SEARCH: 8, Work.READ: 8, Work.CALL: 32}

_NO_JSON = "json_invalid"  # pydantic's error type; its input is the whole line

T = TypeVar("T")


def run(
    backend: Backend,
    tools: Sequence[Tool],
    audit: Audit | None = None,
    usage: UsageRecorder | None = None,
    *,
    broken: Callable[[], None],
) -> None:
    """Answer until the standard input ends.

    Args:
        backend: The backend.
        tools: The tools.
        audit: Records actions; None if a team's server does.
        usage: Records searches and uses, if this process is the server.
        broken: Called if the standard output is closed. The call then still waits for the next
            line or the end of the standard input.
    """
    anyio.run(_serve, backend, tools, audit, usage, broken)


async def _serve(
    backend: Backend,
    tools: Sequence[Tool],
    audit: Audit | None,
    usage: UsageRecorder | None,
    broken: Callable[[], None],
) -> None:
    limiters = {work: CapacityLimiter(threads) for work, threads in THREADS.items()}

    async def threads(work: Work, call: Callable[[], T]) -> T:
        # Do not wait for a cancelled request; its work ends on its own.
        return await to_thread.run_sync(call, limiter=limiters[work], abandon_on_cancel=True)

    ours = McpServer(backend, tools, threads, announcing=True, audit=audit, usage=usage)
    changes = NotificationOptions(tools_changed=True, resources_changed=True)
    options = ours.server.create_initialization_options(changes)
    async with stdio_server() as (received, sent), create_task_group() as tasks:
        tasks.start_soon(ours.announce)
        try:
            await ours.server.run(_Intake(received, sent), sent, options)
        except BaseException:
            broken()
            raise
        tasks.cancel_scope.cancel()


class _Intake(ObjectReceiveStream[SessionMessage | Exception]):
    """The client's messages; a line that is not a message is answered with an error.

    The SDK drops lines that it cannot read, and the client would wait for ever.
    """

    def __init__(
        self,
        inner: Any,  # noqa: ANN401 - a stream of a private type of the SDK
        sent: Any,  # noqa: ANN401 - as above
    ) -> None:
        self._inner = inner
        self._sent = sent

    async def receive(self) -> SessionMessage | Exception:
        while True:
            item: SessionMessage | Exception = await self._inner.receive()
            if not isinstance(item, ValidationError):
                return item
            try:
                return _repaired(item)
            except ValidationError as error:
                refusal = JSONRPCError(jsonrpc="2.0", id=None, error=_error_of(error))
                await self._sent.send(SessionMessage(refusal))

    async def aclose(self) -> None:
        await self._inner.aclose()


def _repaired(error: ValidationError) -> SessionMessage:
    """The message that could not be read, with lone surrogates replaced.

    Raises:
        ValidationError: It still cannot be read.
    """
    [first, *_] = error.errors()
    if first["type"] != _NO_JSON:
        raise error
    line = with_whole_characters(first["input"].encode())
    return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))


def _error_of(error: ValidationError) -> ErrorData:
    if error.errors()[0]["type"] == _NO_JSON:
        return ErrorData(code=PARSE_ERROR, message="The line is not JSON.")
    return ErrorData(code=INVALID_REQUEST, message="The line is not a JSON-RPC 2.0 message.")
