"""Open sessions with MCP servers: one per server, shared by all calls of its tools.

All sessions share one event loop, which runs on its own thread, so a server that hangs does not
block the others.
"""

import logging
import threading
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any

import anyio
from anyio.from_thread import BlockingPortal

from repertory.errors import CallError, CallTimeoutError, SourceError, UsageError
from repertory.sources.mcp.client import converse
from repertory.sources.mcp.conversation import ConnectionLostError, Conversation
from repertory.sources.mcp.server import ServerConfig
from repertory.sources.mcp.traffic import quote
from repertory.system.cancellation import leave_lookups, when_given_up

IDLE_TIMEOUT_S = 300.0  # an unused session is closed after this time or up to twice as long
MAX_AGE_S = 3_600.0  # then restart, because the server's program may have been updated
PING_TIMEOUT_S = 5.0  # for the ping after a failed call
MAX_CONCURRENT_CALLS = 16  # per server, so that a hanging server cannot occupy every thread

_log = logging.getLogger(__name__)


class Sessions:
    """Calls tools through one session for each server. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._portal: BlockingPortal | None = None
        self._is_closed = False
        self._sessions: dict[str, ServerSession] = {}

    def call(
        self, server: ServerConfig, tool: str, arguments: dict[str, Any], seconds: float
    ) -> dict[str, Any]:
        """Call a tool, opening a session with its server if necessary.

        A call is retried once, in a new session, only if the server certainly did not receive it.

        Args:
            server: A trusted server.
            tool: The tool's name on the server.
            arguments: Plain JSON.
            seconds: The timeout of the call, not counting the start of the server.

        Returns:
            The server's answer, a valid MCP result.

        Raises:
            CallTimeoutError: The server did not answer in time.
            CallError: The server is unreachable, exited, or answered with an error or an invalid
                result.
            UsageError: The caller no longer waits for the answer; see ``waiting``.
        """
        asked = (server, tool, arguments, seconds)
        call: Future[dict[str, Any]] = self._open().start_task_soon(self._call, *asked)
        when_given_up(call.cancel)
        try:
            return call.result()
        except CancelledError:
            raise UsageError(f"The call of {quote(tool)} was cancelled by its caller.") from None

    def close(self) -> None:
        """End all sessions and wait for their servers to exit."""
        with self._lock:
            self._is_closed = True
            if self._portal is not None:
                self._portal.call(self._portal.stop)
                self._thread.join()
                self._portal = None

    def _open(self) -> BlockingPortal:
        with self._lock:
            self._check_open()
            if self._portal is None:
                started: Future[BlockingPortal] = Future()
                # A daemon thread lets the process exit even if ``close`` is never called.
                self._thread = threading.Thread(
                    target=self._serve, args=(started,), name="calls of tools", daemon=True
                )
                self._thread.start()
                self._portal = started.result()
            return self._portal

    def _serve(self, started: Future[BlockingPortal]) -> None:
        try:
            anyio.run(self._run, started)
        except OSError as error:  # too many open files to create an event loop
            if started.done():
                raise
            reason = f"Tools cannot be called now: {error.strerror}; try again."
            started.set_exception(CallError(reason))

    async def _run(self, started: Future[BlockingPortal]) -> None:
        """Run the event loop of the sessions until ``close``."""
        leave_lookups()
        async with BlockingPortal() as portal, anyio.create_task_group() as self._tasks:
            started.set_result(portal)
            await portal.sleep_until_stopped()
            self._tasks.cancel_scope.cancel()

    async def _call(
        self, server: ServerConfig, tool: str, arguments: dict[str, Any], seconds: float
    ) -> dict[str, Any]:
        for _ in range(2):
            with suppress(ConnectionLostError):
                return await self._session(server).call(tool, arguments, seconds)
        raise CallError(
            f"The MCP server {server.name} ends its sessions before a tool can be called."
        )

    def _session(self, server: ServerConfig) -> "ServerSession":
        self._check_open()
        session = self._sessions.get(server.name)
        if session is None or not session.is_open or session.server != server:
            if session is not None:
                session.retire()
            session = self._sessions[server.name] = ServerSession(server)
            self._tasks.start_soon(self._keep, session)
        return session

    def _check_open(self) -> None:
        if self._is_closed:
            raise CallError("Tools can no longer be called: this process is shutting down.")

    async def _keep(self, session: "ServerSession") -> None:
        """Run a session and remove it from the open sessions when it ends."""
        try:
            await session.run()
        finally:
            if self._sessions.get(session.server.name) is session:
                del self._sessions[session.server.name]


class ServerSession:
    """One session with a server.

    Attributes:
        server: The server's configuration when the session began.
    """

    def __init__(self, server: ServerConfig) -> None:
        self.server = server
        self._conversation: Conversation | None = None
        self._opened = anyio.Event()
        self._ended = anyio.Event()
        self._failure = ""
        self._pending_calls = 0
        self._used = self._began = anyio.current_time()
        self._is_retired = self._needs_ping = False
        self._idle_scope = anyio.CancelScope()

    @property
    def is_open(self) -> bool:
        """Whether new calls are accepted: the session is opening or open."""
        is_opening = not self._opened.is_set()
        is_usable = self._conversation is not None and not self._conversation.is_over
        return not self._is_retired and (is_opening or is_usable)

    def retire(self) -> None:
        """Accept no more calls, and end the session when its pending calls have finished."""
        self._is_retired = True
        self._idle_scope.cancel()

    async def run(self) -> None:
        """Open the session and keep it until it is idle, retired or disconnected."""
        try:
            self._failure = await converse(self.server, self._stay)
        except SourceError as error:
            self._failure = str(error)
        # Catch everything: pending calls must get the error, and other sessions must continue.
        except Exception as error:
            kind = type(error).__name__  # not the message, which may quote secrets
            _log.error("session_failed", extra={"server": self.server.name, "error": kind})
            self._failure = f"The MCP server {self.server.name} could not be queried: {kind}."
        finally:
            self._opened.set()
            self._ended.set()

    async def call(self, tool: str, arguments: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Call a tool; see ``Sessions.call``.

        Raises:
            ConnectionLostError: The session ended before the server received the call.
        """
        name = self.server.name
        if self._pending_calls == MAX_CONCURRENT_CALLS:
            raise CallError(
                f"The MCP server {name} is already answering {MAX_CONCURRENT_CALLS} calls; call "
                "again when one of them has ended."
            )
        self._pending_calls += 1
        try:
            await self._opened.wait()
            if self._conversation is None:
                if self._failure:
                    raise CallError(self._failure)
                raise ConnectionLostError(maybe_received=False)
            with anyio.fail_after(seconds):
                return await self._conversation.call_tool(tool, arguments)
        except CallError:
            self._schedule_ping()
            raise
        except TimeoutError:
            self._schedule_ping()
            raise CallTimeoutError(
                f"The MCP server {name} did not answer the call of {quote(tool)} within "
                f"{seconds:g} s."
            ) from None
        except ConnectionLostError as error:
            self.retire()
            if not error.maybe_received:
                raise
            await self._ended.wait()
            raise CallError(
                self._failure or f"The session with the MCP server {name} was ended."
            ) from None
        finally:
            self._pending_calls -= 1
            self._used = anyio.current_time()
            if self._is_retired:
                self._idle_scope.cancel()

    def _schedule_ping(self) -> None:
        """Schedule a ping to check whether the server is still alive."""
        self._needs_ping = True
        self._idle_scope.cancel()

    async def _stay(self, conversation: Conversation) -> None:
        conversation.stay()
        self._conversation = conversation
        self._opened.set()
        try:
            await self._wait(conversation)
        finally:
            self._conversation = None

    async def _wait(self, conversation: Conversation) -> None:
        """Wait until the session should end."""
        while self._pending_calls or not (self._is_retired or self._is_idle):
            if self._needs_ping:
                self._needs_ping = False
                self._is_retired |= not await conversation.is_alive(PING_TIMEOUT_S)
                continue
            with anyio.move_on_after(IDLE_TIMEOUT_S) as self._idle_scope:
                await conversation.wait_for_end()
                return
            self._is_retired |= anyio.current_time() - self._began > MAX_AGE_S

    @property
    def _is_idle(self) -> bool:
        return anyio.current_time() - self._used >= IDLE_TIMEOUT_S
