"""A bounded record of a session with one server, which suffices to explain a failure."""

import contextlib
import re
import shlex
from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

import anyio
import msgspec

from repertory.text import cut, one_line

MAX_BYTES = 32 * 2**20  # from a server for one listing or call
MAX_LINES = 50_000  # on stdout
MAX_OBJECTS = 1_000_000  # and arrays; an empty one takes a hundred times the memory of its text
MAX_STDERR_SIZE = 4_096  # bytes kept from its end
MAX_QUOTE_LENGTH = 300

SAYS = "; it wrote"  # in a message, before a server's own output
TOO_MUCH = (
    f"sent more than {MAX_BYTES // 2**20} MB, {MAX_LINES:,} lines or {MAX_OBJECTS:,} JSON objects"
)

_ADVICE = "hint: "  # written by uv after an error
# The last lines of Node.js, npm and Python's exception groups, which do not show the error itself.
_END = re.compile(r"Node\.js v|npm (?:error|ERR!) A complete log |\s*\+--")
_ERROR = re.compile(
    r"[\s|]*(?:npm (?:error|ERR!) (?!code |errno |syscall |path )"
    r"|\[?[\w.$]*(?:[Ee]rror|Exception)(?: \[\w+\])?: )\S"
)


class Listing(msgspec.Struct, frozen=True):
    """All tools of a server, as sent and unchecked.

    Attributes:
        tools: The tools.
        complaints: The defects of the listing, as predicates after the name of the server.
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
    """A key that identifies a call, both before it is sent and in its HTTP request."""
    return msgspec.json.encode([name, arguments], order="deterministic")


class Traffic:
    """The record of one session.

    Attributes:
        listing: The tools of all pages so far.
        is_connected: Whether the handshake succeeded.
        complete: Whether the listing is complete; true for a session of calls.
        changed: Set when the server reports changed tools or a connection ends.
        ended: Set when the connection to the server is closed.
        status: The last HTTP status; 0 if there was none.
        awaits_sign_in: Whether the server needs a sign-in by a person.
        renewal_error: Why its tokens could not be renewed; empty if they could.
        was_signed_in: Whether a token was sent, or one was revoked.
        forgotten: Whether the server reported, over HTTP, that it no longer knows the session.
        refused: The number of calls refused for that reason, by ``call_key``.
        exit_code: The exit code of its process, if that ended by itself.
        stray: The first line on stdout that is not MCP.
        exceeds_limits: Whether it exceeded the limits, which ends the session.
    """

    def __init__(self) -> None:
        self.is_connected = False
        self.ended = anyio.Event()
        self.status = 0
        self.awaits_sign_in = False
        self.was_signed_in = False
        self.renewal_error = ""
        self.forgotten = False
        self.refused: Counter[bytes] = Counter()
        self.exit_code: int | None = None
        self._stderr = b""
        self.stray = ""
        self.start_listing()

    def start_listing(self) -> None:
        """Start recording a new listing, with fresh limits."""
        self.listing = Listing([], [])
        self.complete = False
        self.changed = anyio.Event()
        self.exceeds_limits = False
        self.reset_counters()

    def reset_counters(self) -> None:
        """Reset the counters after a call, so that the limits apply to each call."""
        self._bytes = self._lines = self._objects = 0

    def end(self) -> None:
        """Record that the connection to the server is closed."""
        self.ended.set()
        self.changed.set()

    def forget(self, request: bytes) -> None:
        """Record that the server rejected a request because it does not know the session."""
        self.forgotten = True
        with contextlib.suppress(msgspec.MsgspecError):  # not a call
            call = msgspec.json.decode(request, type=_Call)
            self.refused[call_key(call.params.name, call.params.arguments)] += 1

    def add_received(self, data: bytes, *, has_lines: bool = False) -> bool:
        """Count received data, and its lines if each is a message; False if it exceeds a limit."""
        self._bytes += len(data)
        self._objects += data.count(b"{") + data.count(b"[")
        self._lines += data.count(b"\n") if has_lines else 0
        self.exceeds_limits |= (
            self._bytes > MAX_BYTES or self._lines > MAX_LINES or self._objects > MAX_OBJECTS
        )
        return not self.exceeds_limits

    def about_sign_in(self, name: str) -> str:
        """A problem with the sign-in, as a predicate after the server's name; empty if none."""
        if self.renewal_error:
            return f"could not be queried: {quote(self.renewal_error)}"
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
        """The line on stderr that most likely explains a failure, usually the last one."""
        said = _lines(self._stderr)
        lines = [line for line in said if not line.startswith(_ADVICE)] or said
        named = filter(_ERROR.match, lines) if _END.match(lines[-1]) else ()
        return next(iter(named), lines[-1]).strip("| ")


def _lines(data: bytes) -> list[str]:
    """The non-empty lines; one empty line if there are no others."""
    lines = [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines or [""]


def quote(text: str) -> str:
    """Make untrusted text safe for a message: one short line without control characters."""
    return cut(one_line(text), MAX_QUOTE_LENGTH)


def quote_end(text: str) -> str:
    """Like ``quote``, but keep the end of a long text."""
    line = one_line(text)
    return line if len(line) <= MAX_QUOTE_LENGTH else "…" + line[-MAX_QUOTE_LENGTH:]
