"""Open sessions with MCP servers: one for each server, which all calls of its tools share.

Imported only when a tool is called: the SDK takes long to import. All of it happens in one event
loop, on a thread of its own, so that a server that hangs holds up no other.
"""

import logging
import threading
from concurrent.futures import Future
from typing import Any

import anyio
from anyio.from_thread import BlockingPortal

from repertory.errors import CallError, CallTimeoutError, SourceError
from repertory.sources.mcp.client import converse
from repertory.sources.mcp.conversation import Conversation, LineLostError
from repertory.sources.mcp.server import ServerConfig
from repertory.sources.mcp.traffic import quote

IDLE = 300.0  # seconds after which a session is closed that nobody uses, or twice as many
LONGEST = 3_600.0  # seconds; a server's program may have been replaced by a newer one
SIGN_OF_LIFE = 5.0  # seconds that a server has to say that it is there, once a call took too long
MOST_AT_ONCE = 16  # calls of one server, so that one that hangs does not take every thread there is

_log = logging.getLogger(__name__)


class Sessions:
    """Calls tools, each server in one session. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._portal: BlockingPortal | None = None
        self._is_closed = False
        self._sessions: dict[str, Session] = {}

    def call(
        self, server: ServerConfig, tool: str, arguments: dict[str, Any], seconds: float
    ) -> dict[str, Any]:
        """Call a tool, opening a session with its server where there is none.

        A call is sent once more, in a new session, only if it is sure that the server has not
        taken it.

        Args:
            server: The server, which may be run.
            tool: The tool's own name.
            arguments: Plain JSON.
            seconds: How long the server may take; starting it comes on top.

        Returns:
            What the server answered, in the form of a result.

        Raises:
            CallTimeoutError: It did not answer in time.
            CallError: It cannot be reached, ends, or answers with an error or nonsense.
        """
        return self._open().call(self._call, server, tool, arguments, seconds)

    def close(self) -> None:
        """End all sessions, and wait until their servers have ended."""
        with self._lock:
            self._is_closed = True
            if self._portal is not None:
                self._portal.call(self._portal.stop)
                self._thread.join()
                self._portal = None

    def _open(self) -> BlockingPortal:
        with self._lock:
            self._see_that_it_is_open()
            if self._portal is None:
                started: Future[BlockingPortal] = Future()
                # Of those who never close this, the process ends all the same.
                self._thread = threading.Thread(
                    target=anyio.run, args=(self._run, started), name="calls of tools", daemon=True
                )
                self._thread.start()
                self._portal = started.result()
            return self._portal

    async def _run(self, started: Future[BlockingPortal]) -> None:
        """Be where the sessions are."""
        async with BlockingPortal() as portal, anyio.create_task_group() as self._tasks:
            started.set_result(portal)
            await portal.sleep_until_stopped()
            self._tasks.cancel_scope.cancel()

    async def _call(
        self, server: ServerConfig, tool: str, arguments: dict[str, Any], seconds: float
    ) -> dict[str, Any]:
        try:
            return await self._session(server).call(tool, arguments, seconds)
        except LineLostError:
            pass
        try:
            return await self._session(server).call(tool, arguments, seconds)
        except LineLostError:
            raise CallError(
                f"The MCP server {server.name} ends its sessions before anything can be called."
            ) from None

    def _session(self, server: ServerConfig) -> "Session":
        self._see_that_it_is_open()
        session = self._sessions.get(server.name)
        if session is None or not session.is_open or session.server != server:
            if session is not None:
                session.retire()
            session = self._sessions[server.name] = Session(server)
            self._tasks.start_soon(self._keep, session)
        return session

    def _see_that_it_is_open(self) -> None:
        if self._is_closed:
            raise CallError("Tools cannot be called any more: this process is ending.")

    async def _keep(self, session: "Session") -> None:
        """Keep a session, and forget it when it is over."""
        try:
            await session.run()
        finally:
            if self._sessions.get(session.server.name) is session:
                del self._sessions[session.server.name]


class Session:
    """One session with a server.

    Attributes:
        server: The server as it was configured when the session began.
    """

    def __init__(self, server: ServerConfig) -> None:
        self.server = server
        self._conversation: Conversation | None = None
        self._opened = anyio.Event()
        self._ended = anyio.Event()
        self._failure = ""
        self._under_way = 0
        self._used = self._began = anyio.current_time()
        self._is_retired = self._is_doubted = False
        self._rest = anyio.CancelScope()

    @property
    def is_open(self) -> bool:
        """Whether calls may be begun: it is being opened, or is open."""
        if self._is_retired or not self._opened.is_set():
            return not self._is_retired
        return self._conversation is not None and not self._conversation.is_over

    def retire(self) -> None:
        """Take no more calls, and end when those under way have come to their ends."""
        self._is_retired = True
        self._rest.cancel()

    async def run(self) -> None:
        """Open the session, and keep it until it is not needed any more or breaks off."""
        try:
            self._failure = await converse(self.server, self._stay)
        except SourceError as error:
            self._failure = str(error)
        # A boundary: whatever happens, calls wait to be told, and other sessions go on.
        except Exception as error:
            kind = type(error).__name__  # no more of it, for it may quote secrets
            _log.error("session_failed", extra={"server": self.server.name, "error": kind})
            self._failure = f"The MCP server {self.server.name} could not be asked: {kind}."
        finally:
            self._opened.set()
            self._ended.set()

    async def call(self, tool: str, arguments: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Call a tool; see ``Sessions.call``.

        Raises:
            LineLostError: The session is over, and the server has not taken the call.
        """
        name = self.server.name
        if self._under_way == MOST_AT_ONCE:
            raise CallError(
                f"The MCP server {name} has {MOST_AT_ONCE} calls to answer already; call again "
                "when it has."
            )
        self._under_way += 1
        try:
            await self._opened.wait()
            if self._conversation is None:
                if self._failure:
                    raise CallError(self._failure)
                raise LineLostError(taken=False)
            with anyio.fail_after(seconds):
                return await self._conversation.call_tool(tool, arguments)
        except CallError:
            self._doubt()
            raise
        except TimeoutError:
            self._doubt()
            raise CallTimeoutError(
                f"The MCP server {name} did not answer the call of {quote(tool)} within "
                f"{seconds:g} s."
            ) from None
        except LineLostError as error:
            self.retire()
            if not error.taken:
                raise
            await self._ended.wait()
            raise CallError(
                self._failure or f"The session with the MCP server {name} was ended."
            ) from None
        finally:
            self._under_way -= 1
            self._used = anyio.current_time()
            if self._is_retired:
                self._rest.cancel()

    def _doubt(self) -> None:
        """Have it seen to that the server is still there."""
        self._is_doubted = True
        self._rest.cancel()

    async def _stay(self, conversation: Conversation) -> None:
        conversation.stay()
        self._conversation = conversation
        self._opened.set()
        try:
            await self._wait(conversation)
        finally:
            self._conversation = None

    async def _wait(self, conversation: Conversation) -> None:
        """Wait until the session is to end."""
        while self._under_way or not (self._is_retired or self._is_idle):
            if self._is_doubted:
                self._is_doubted = False
                self._is_retired |= not await conversation.is_alive(SIGN_OF_LIFE)
                continue
            with anyio.move_on_after(IDLE) as self._rest:
                await conversation.wait_for_end()
                return
            self._is_retired |= anyio.current_time() - self._began > LONGEST

    @property
    def _is_idle(self) -> bool:
        return anyio.current_time() - self._used >= IDLE
