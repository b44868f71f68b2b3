"""Follows a server, so that its current tools are known without starting it for each scan.

The session with a server that reports changes stays open, because its tools may change only within
it. Any other server is polled, in a new session each time.
"""

import contextlib
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.from_thread import start_blocking_portal

from repertory.errors import SignInError, SourceError
from repertory.sources.mcp.server import ServerConfig
from repertory.sources.mcp.sign_ins import SignIns
from repertory.sources.mcp.traffic import Listing
from repertory.sources.mcp.variables import fill_in
from repertory.system.jitter import jittered

if TYPE_CHECKING:
    from repertory.sources.mcp.conversation import Conversation

MIN_INTERVAL_S = 1.0  # between two listings in a session, and before the first retry
# A session is renewed after this time, because a newer version of the server may be installed.
MAX_SESSION_S = 3_600.0

_log = logging.getLogger(__name__)


class ServerFollower:
    """Keeps the listing of one server up to date, on a separate thread.

    Args:
        server: A server that may be run.
        on_change: Called on that thread after each listing and each failure to list. A session lost
            after its listing is not a failure unless the next session cannot list.
        poll: Seconds between two listings if the server does not report changes.
    """

    def __init__(self, server: ServerConfig, on_change: Callable[[], None], poll: float) -> None:
        self._server = server
        self._on_change = on_change
        self._poll = poll
        self._latest: Listing | SourceError | None = None
        self._first = threading.Event()
        self._pause = MIN_INTERVAL_S  # before the next attempt, after a failure
        self._stack = contextlib.ExitStack()
        self._future: Future[None] | None = None

    def start(self) -> None:
        """Start following the server."""
        portal = self._stack.enter_context(start_blocking_portal())
        self._future = portal.start_task_soon(self._follow)

    def close(self) -> None:
        """Disconnect and wait until the server has ended."""
        if self._future is not None:
            self._future.cancel()
        self._stack.close()

    def listing(self) -> Listing:
        """Return the current tools; the first call may wait for them.

        Raises:
            SourceError: The last listing failed.
        """
        self._first.wait()
        latest = self._latest
        if isinstance(latest, Listing):
            return latest
        if latest is None:
            raise SourceError(f"The MCP server {self._server.name} is not followed.")
        raise type(latest)(str(latest))

    def _publish(self, latest: Listing | SourceError) -> None:
        self._latest = latest
        self._first.set()
        self._on_change()

    async def _follow(self) -> None:
        try:
            while True:
                began, is_polled = anyio.current_time(), False
                try:
                    is_polled = await self._run_session()
                # A boundary: scans wait for a result, and the next attempt may succeed.
                except Exception as error:
                    kind = type(error).__name__  # not its message, which may quote secrets
                    _log.error("follow_failed", extra={"server": self._server.name, "error": kind})
                    message = f"The MCP server {self._server.name} could not be queried: {kind}."
                    self._publish(SourceError(message))
                await anyio.sleep(jittered(self._wait_after(began, is_polled=is_polled)))
        finally:
            self._first.set()

    async def _run_session(self) -> bool:
        """List the tools of the server in one session, until it ends.

        Returns:
            Whether the session ended after a listing, because the server does not report changes.
        """
        # Imported on this thread, so that the caller of start does not wait for the slow SDK.
        from repertory.sources.mcp.client import converse  # noqa: PLC0415 - as above

        has_listed = is_polled = False

        async def talk(conversation: "Conversation") -> None:
            nonlocal has_listed, is_polled
            renewal = anyio.current_time() + jittered(MAX_SESSION_S)
            while anyio.current_time() < renewal:
                self._publish(await conversation.list_tools())
                has_listed, listed_at = True, anyio.current_time()
                if not conversation.reports_changes:
                    is_polled = True
                    return
                # The timeout detects unreported changes and dead connections.
                await conversation.wait_for_change(jittered(self._poll))
                await anyio.sleep_until(listed_at + MIN_INTERVAL_S)

        before = self._signed_in_at()
        try:
            await converse(self._server, talk)
        except SourceError as error:
            # After a listing, a lost connection is first reopened.
            if not has_listed or isinstance(error, SignInError):
                self._publish(error)
            if isinstance(error, SignInError):
                await self._wait_for_sign_in(before)
        return is_polled

    def _wait_after(self, began: float, *, is_polled: bool) -> float:
        """Seconds until the next session, given when the last one began."""
        if is_polled or anyio.current_time() - began > self._poll:
            self._pause = MIN_INTERVAL_S
        if is_polled:
            return self._poll
        pause, self._pause = self._pause, min(2 * self._pause, self._poll)
        return pause

    def _signed_in_at(self) -> float:
        """When a user signed in at the server, in Unix seconds; 0 without a sign-in."""
        server = self._server
        if not (server.sign_ins and server.url):
            return 0.0
        with contextlib.suppress(SourceError):  # a variable has no value
            url = fill_in(server).url
            found = SignIns(Path(server.sign_ins)).read(url)
            return found.at if found else 0.0
        return 0.0

    async def _wait_for_sign_in(self, before: float) -> None:
        """Wait until a user signs in, without requests to the server."""
        while self._server.sign_ins and self._signed_in_at() == before:
            await anyio.sleep(MIN_INTERVAL_S)
