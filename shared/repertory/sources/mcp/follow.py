"""Following a server: its tools as they are now, without starting it again for each look.

A server that says when its tools change is stayed with, since they may change within its session
only. Any other one is asked again every so often, in a session of its own each time.
"""

import contextlib
import logging
import random
import threading
from collections.abc import Callable
from concurrent.futures import Future

import anyio
from anyio.from_thread import start_blocking_portal

from repertory.errors import SourceError
from repertory.sources.mcp.client import converse
from repertory.sources.mcp.conversation import Conversation
from repertory.sources.mcp.server import ServerConfig
from repertory.sources.mcp.traffic import Listing

PAUSE = 1.0  # seconds between two looks at one that does, and before it is called again at first
# A session is renewed after so many seconds: its program may have been replaced by a newer one.
LONGEST_SESSION = 3_600.0
JITTER = 0.2  # the share that a time is varied by, so that not all servers are asked at once

_log = logging.getLogger(__name__)


class ServerFollower:
    """Keeps the listing of one server up to date, on a thread of its own.

    Args:
        server: The server, which may be run.
        on_change: Called on that thread whenever there is a listing or a failure to be had.
        poll: Seconds between two looks where the server says nothing of changes.
    """

    def __init__(
        self,
        server: ServerConfig,
        on_change: Callable[[], None],
        poll: float,
    ) -> None:
        self._server = server
        self._on_change = on_change
        self._poll = poll
        self._latest: Listing | SourceError | None = None
        self._first = threading.Event()
        self._listed = self._stayed = False
        self._stack = contextlib.ExitStack()
        self._future: Future[None] | None = None

    def start(self) -> None:
        """Begin to follow."""
        portal = self._stack.enter_context(start_blocking_portal())
        self._future = portal.start_task_soon(self._follow)

    def close(self) -> None:
        """Hang up and wait until the server has ended."""
        if self._future is not None:
            self._future.cancel()
        self._stack.close()

    def listing(self) -> Listing:
        """The tools as they are now; at the very beginning it waits for them.

        Raises:
            SourceError: The server could not be asked the last time.
        """
        self._first.wait()
        latest = self._latest
        if isinstance(latest, Listing):
            return latest
        raise SourceError(str(latest or f"The MCP server {self._server.name} is not followed."))

    def _publish(self, latest: Listing | SourceError) -> None:
        self._latest = latest
        self._first.set()
        self._on_change()

    async def _follow(self) -> None:
        try:
            pause = PAUSE
            while True:
                began = anyio.current_time()
                self._listed = self._stayed = False
                try:
                    await converse(self._server, self._talk)
                except SourceError as error:
                    if not self._listed:  # else the line broke, and is to be mended first
                        self._publish(error)
                # A boundary: whatever happens, somebody waits for news, and the next time may do.
                except Exception as error:
                    kind = type(error).__name__  # no more of it, for it may quote secrets
                    _log.error("follow_failed", extra={"server": self._server.name, "error": kind})
                    message = f"The MCP server {self._server.name} could not be asked: {kind}."
                    self._publish(SourceError(message))
                if self._listed and not self._stayed:
                    await anyio.sleep(_about(self._poll))
                    continue
                if anyio.current_time() - began > self._poll:
                    pause = PAUSE
                await anyio.sleep(_about(pause))
                pause = min(2 * pause, self._poll)
        finally:
            self._first.set()

    async def _talk(self, conversation: Conversation) -> None:
        renewal = anyio.current_time() + _about(LONGEST_SESSION)
        while anyio.current_time() < renewal:
            self._publish(await conversation.list_tools())
            self._listed, listed_at = True, anyio.current_time()
            if not conversation.tells_of_changes:
                return
            self._stayed = True
            # What a server forgets to say is seen all the same, and so is a line that is dead.
            await conversation.wait_for_change(_about(self._poll))
            await anyio.sleep_until(listed_at + PAUSE)


def _about(seconds: float) -> float:
    return seconds * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - no secret
