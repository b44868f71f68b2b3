"""What passed between us and one server: bounded, and enough of it kept to say what failed."""

from typing import Any

import anyio
import msgspec

from repertory.text import cut, one_line

MOST_BYTES = 32 * 2**20  # of all that a server sends up to the next listing, or end of a call
MOST_LINES = 50_000  # on stdout
STDERR_KEPT = 4_096  # bytes, the last ones
LONGEST_QUOTE = 300  # characters

TOO_MUCH = f"sent more than {MOST_BYTES // 2**20} MB or {MOST_LINES:,} lines"


class Listing(msgspec.Struct, frozen=True):
    """All tools of a server as it wrote them, unchecked.

    Attributes:
        tools: The tools.
        complaints: What is wrong with the listing, to follow after the name of the server.
    """

    tools: list[Any]
    complaints: list[str]


class Traffic:
    """The record of one conversation.

    Attributes:
        tools: The tools as the server wrote them, page after page.
        complaints: What is wrong with the listing, to follow after the name of the server.
        greeted: Whether the two have agreed on how to speak.
        complete: Whether the listing came to its end; for calls none is needed.
        stirred: Set when the server says that its tools changed, and when a connection ends.
        ended: Set when nothing more can be heard of the server.
        status: The last HTTP status; 0 where there was none.
        forgotten: Whether the server said, over HTTP, that it does not know the session any more.
        exit_code: How its process ended, where it ended by itself.
        flooded: Whether it sent more than it may; the conversation is over then.
    """

    def __init__(self) -> None:
        self.greeted = False
        self.ended = anyio.Event()
        self.status = 0
        self.forgotten = False
        self.exit_code: int | None = None
        self._stderr = b""
        self._stray = b""
        self.begin()

    def begin(self) -> None:
        """Record a listing anew, with the bounds of one."""
        self.tools: list[Any] = []
        self.complaints: list[str] = []
        self.complete = False
        self.stirred = anyio.Event()
        self.flooded = False
        self._bytes = 0
        self._lines = 0

    def begin_anew(self) -> None:
        """Count from here on: a call came to its end, and the next may bring as much."""
        self._bytes = self._lines = 0

    def end(self) -> None:
        """Note that nothing more can be heard of the server."""
        self.ended.set()
        self.stirred.set()

    def add_received(self, size: int, lines: int = 0) -> bool:
        """Count what came in; False when that was too much."""
        self._bytes += size
        self._lines += lines
        self.flooded |= self._bytes > MOST_BYTES or self._lines > MOST_LINES
        return not self.flooded

    def add_stderr(self, data: bytes) -> None:
        """Keep the end of what the server says on stderr."""
        self._stderr = (self._stderr + data)[-STDERR_KEPT:]

    def add_stray(self, line: bytes) -> None:
        """Keep the first line on stdout that is not MCP."""
        self._stray = self._stray or line[:STDERR_KEPT]

    @property
    def last_words(self) -> str:
        """The last line on stderr that says anything."""
        return _last_line(self._stderr)

    @property
    def stray(self) -> str:
        """The first line on stdout that is not MCP."""
        return _last_line(self._stray)


def _last_line(data: bytes) -> str:
    lines = [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""


def quote(text: str) -> str:
    """Text of a stranger, safe to print in a message: one line, no control characters, not long."""
    return cut(one_line(text), LONGEST_QUOTE)


def quote_end(text: str) -> str:
    """The same, but where it is too long, its end."""
    line = one_line(text)
    return line if len(line) <= LONGEST_QUOTE else "…" + line[-LONGEST_QUOTE:]
