"""The bounded record of a session with one server; it keeps enough to explain a failure."""

import contextlib
import re
import shlex
from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

import anyio
import msgspec

from repertory.text import cut, one_line

MAX_BYTES = 32 * 2**20  # that a server may send for one listing or call
MAX_LINES = 50_000  # on stdout
MAX_STDERR_SIZE = 4_096  # bytes, the last ones
MAX_QUOTE_LENGTH = 300

SAYS = "; it wrote"  # in a message, before what a server wrote
TOO_MUCH = f"sent more than {MAX_BYTES // 2**20} MB or {MAX_LINES:,} lines"

_ADVICE = "hint: "  # of uv, after the error
# The last line of Node.js, npm and groups of Python's errors says nothing of the error before it.
_END = re.compile(r"Node\.js v|npm (?:error|ERR!) A complete log |\s*\+--")
_ERROR = re.compile(
    r"[\s|]*(?:npm (?:error|ERR!) (?!code |errno |syscall |path )"
    r"|\[?[\w.$]*(?:[Ee]rror|Exception)(?: \[\w+\])?: )\S"
)


class Listing(msgspec.Struct, frozen=True):
    """All tools of a server, as sent and unchecked.

    Attributes:
        tools: The tools.
        complaints: The defects of the listing, each to follow the name of the server.
    """

    tools: list[Any]
    complaints: list[str]


class _Called(msgspec.Struct):
    name: str
    arguments: dict[str, Any] = {}


class _Call(msgspec.Struct):
    params: _Called
    method: Literal["tools/call"]


def call_key(name: str, arguments: Mapping[str, Any]) -> bytes:
    """What a call of a tool has in common with its request over HTTP."""
    return msgspec.json.encode([name, arguments], order="deterministic")


class Traffic:
    """The record of one session.

    Attributes:
        listing: The tools of all pages so far.
        greeted: Whether the handshake succeeded.
        complete: Whether the listing is complete; true for a session of calls.
        changed: Set when the server reports changed tools, and when a connection ends.
        ended: Set when the connection to the server is closed.
        status: The last HTTP status; 0 if there was none.
        awaits_sign_in: Whether it asks for a sign-in that only a person can make.
        trouble: Why its tokens could not be renewed; empty if they could.
        was_signed_in: Whether it was sent a token, or one was revoked.
        forgotten: Whether the server reported, over HTTP, that it no longer knows the session.
        refused: How many calls it has refused by that, by ``call_key``.
        exit_code: The exit code of its process, if the process ended by itself.
        stray: The first line on stdout that is not MCP.
        flooded: Whether it exceeded the limits; the session is over then.
    """

    def __init__(self) -> None:
        self.greeted = False
        self.ended = anyio.Event()
        self.status = 0
        self.awaits_sign_in = False
        self.was_signed_in = False
        self.trouble = ""
        self.forgotten = False
        self.refused: Counter[bytes] = Counter()
        self.exit_code: int | None = None
        self._stderr = b""
        self.stray = ""
        self.start_listing()

    def start_listing(self) -> None:
        """Start to record a new listing, with fresh limits."""
        self.listing = Listing([], [])
        self.complete = False
        self.changed = anyio.Event()
        self.flooded = False
        self._bytes = 0
        self._lines = 0

    def reset_counters(self) -> None:
        """Reset the limits after a call; the next one may send as much."""
        self._bytes = self._lines = 0

    def end(self) -> None:
        """Record that the connection to the server is closed."""
        self.ended.set()
        self.changed.set()

    def forget(self, request: bytes) -> None:
        """Record that the server answered a request by not knowing the session."""
        self.forgotten = True
        with contextlib.suppress(msgspec.MsgspecError):  # it is no call
            call = msgspec.json.decode(request, type=_Call)
            self.refused[call_key(call.params.name, call.params.arguments)] += 1

    def add_received(self, size: int, lines: int = 0) -> bool:
        """Count received data; False if it exceeds the limits."""
        self._bytes += size
        self._lines += lines
        self.flooded |= self._bytes > MAX_BYTES or self._lines > MAX_LINES
        return not self.flooded

    def about_sign_in(self, name: str) -> str:
        """What is wrong with the sign-in at a server of a name, to follow it; empty if nothing."""
        if self.trouble:
            return f"could not be queried: {quote(self.trouble)}"
        if self.awaits_sign_in:
            return f"is waiting for sign-in; run `repertory login {shlex.quote(name)}`"
        return ""

    def add_stderr(self, data: bytes) -> None:
        """Keep the end of the server's stderr."""
        self._stderr = (self._stderr + data)[-MAX_STDERR_SIZE:]

    def add_stray(self, line: bytes) -> None:
        """Keep the first line on stdout that is not MCP."""
        self.stray = self.stray or _lines(line[:MAX_STDERR_SIZE])[-1]

    @property
    def last_stderr(self) -> str:
        """The last line on stderr that says why, as far as it is known which lines do not."""
        said = _lines(self._stderr)
        lines = [line for line in said if not line.startswith(_ADVICE)] or said
        named = filter(_ERROR.match, lines) if _END.match(lines[-1]) else ()
        return next(iter(named), lines[-1]).strip("| ")


def _lines(data: bytes) -> list[str]:
    """The lines that are not empty, at least one, which may be empty."""
    lines = [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines or [""]


def quote(text: str) -> str:
    """Make untrusted text safe for a message: one short line without control characters."""
    return cut(one_line(text), MAX_QUOTE_LENGTH)


def quote_end(text: str) -> str:
    """Do the same, but keep the end of a long text."""
    line = one_line(text)
    return line if len(line) <= MAX_QUOTE_LENGTH else "…" + line[-MAX_QUOTE_LENGTH:]
