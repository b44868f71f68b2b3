"""Runs a server as a child process, with limits on its output, and leaves no process behind.

It replaces the SDK's own stdio transport, which reads without limits, logs every line that is not
MCP, and does not end the children of a server that exited properly.

Imports the SDK, which is slow: import it only to contact a server.
"""

import asyncio
import contextlib
import math
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable

import anyio
import anyio.lowlevel
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import DEFAULT_INHERITED_ENV_VARS
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from repertory.sources.mcp.traffic import Traffic
from repertory.sources.mcp.unreadable_answers import mended
from repertory.sources.mcp.variables import PROXIES, Launch

GRACE_S = 1.0  # to exit after stdin is closed, and again after SIGTERM
POLL_INTERVAL_S = 0.01
# Behind a proxy, ``npx`` and ``uvx`` need these to download a server.
NETWORK = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    *PROXIES,
)

Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


@contextlib.asynccontextmanager
async def run_process(launch: Launch, traffic: Traffic) -> AsyncIterator[Streams]:
    """Start a server that speaks MCP on stdin and stdout; on exit, end it and its children.

    Its environment has only the variables that the SDK considers safe (``PATH``, ``HOME``, …),
    those for certificates and proxies, and its configured ones.

    Raises:
        OSError: The command cannot be started.
    """
    inherited = {
        name: launch.inherited[name]
        for name in (*DEFAULT_INHERITED_ENV_VARS, *NETWORK)
        if name in launch.inherited
        and not launch.inherited[name].startswith("()")  # a shell function
    }
    environment = inherited | launch.env
    # Windows finds ``npx.cmd`` only this way.
    command = shutil.which(launch.command, path=environment.get("PATH")) or launch.command
    await anyio.lowlevel.checkpoint()  # importing the SDK delays a cancellation
    server = _Server(traffic)
    try:
        # A cancellation during the start would leave the loop before the process has ended.
        with anyio.CancelScope(shield=True):
            transport, _ = await asyncio.get_running_loop().subprocess_exec(
                lambda: server,
                command,
                *launch.args,
                env=environment,
                cwd=launch.cwd,
                start_new_session=True,
            )
    except BaseException:
        server.close()
        raise
    # No await between the start and here, because a cancellation would leave the process behind.
    outgoing, to_write = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_write, transport, to_write)
        try:
            yield server.incoming, outgoing
        finally:
            outgoing.close()
            with anyio.CancelScope(shield=True):
                await _stop(transport, server, traffic)
            server.close()
            tasks.cancel_scope.cancel()


class _Server(asyncio.SubprocessProtocol):
    """Receives a server's output: messages on stdout, any text on stderr."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._partial = bytearray()
        self._messages, self.incoming = anyio.create_memory_object_stream[
            SessionMessage | Exception
        ](math.inf)  # bounded by ``Traffic``
        self.ended = False
        self.closed = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._traffic.add_stderr(data)
        elif not self._traffic.add_received(data, has_lines=True):
            self._messages.close()
        else:
            self._partial += data
            if b"\n" in data:
                *lines, self._partial = self._partial.split(b"\n")
                for line in lines:
                    self._receive(line)

    def _receive(self, line: bytearray) -> None:
        if not line.strip():
            return
        sent = bytes(line)
        try:
            readable = mended(sent, self._traffic.listing.complaints) or sent
            message = jsonrpc_message_adapter.validate_json(readable, by_name=False)
        except ValueError:
            self._traffic.add_stray(sent)
            return
        # The session may have closed while the server still sends.
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._messages.send_nowait(SessionMessage(message))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        if fd == 1:
            self.ended = True
            self._messages.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        self.closed.set()

    def close(self) -> None:
        self._messages.close()
        self.incoming.close()


async def _write(
    transport: asyncio.SubprocessTransport, to_write: MemoryObjectReceiveStream[SessionMessage]
) -> None:
    pipe = transport.get_pipe_transport(0)
    assert isinstance(pipe, asyncio.WriteTransport)
    async with to_write:
        async for item in to_write:
            line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            pipe.write(line.encode() + b"\n")


async def _stop(transport: asyncio.SubprocessTransport, server: _Server, traffic: Traffic) -> None:
    """Close stdin and wait; then end the process group, first with SIGTERM, then with SIGKILL."""
    ended_by_itself = server.ended
    if stdin := transport.get_pipe_transport(0):
        stdin.close()
    await _wait_until(lambda: transport.get_returncode() is not None)
    if ended_by_itself:
        traffic.exit_code = transport.get_returncode()
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not _signal_group(transport, number):
            break
        await _wait_until(lambda: not _signal_group(transport, 0))
    transport.close()
    with anyio.move_on_after(GRACE_S):
        await server.closed.wait()


def _signal_group(transport: asyncio.SubprocessTransport, number: int) -> bool:
    """Signal a server and all its children; False if none is left."""
    if sys.platform == "win32":  # no process groups: only the server itself can be ended
        transport.kill()
        return False
    try:
        # Its pid is the group's id, which cannot be looked up once the server is gone.
        os.killpg(transport.get_pid(), number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


async def _wait_until(done: Callable[[], bool]) -> None:
    """Wait until ``done`` returns true, for at most ``GRACE_S`` seconds."""
    with anyio.move_on_after(GRACE_S):
        while not done():
            await anyio.sleep(POLL_INTERVAL_S)
