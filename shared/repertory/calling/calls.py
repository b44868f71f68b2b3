"""Calls of tools: allowed, checked against the tool's schema, and passed on to its server."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from repertory.calling.arguments import checked
from repertory.calling.faults import faults
from repertory.calling.result import CallResult, result_of
from repertory.calling.servers import Servers
from repertory.calling.sessions import Sessions
from repertory.catalogue.item import Item
from repertory.errors import CallError, CallTimeoutError, RepertoryError, UsageError
from repertory.logs import CALLER
from repertory.settings import Values
from repertory.sources.tools import given_name
from repertory.workspace import Workspace

_log = logging.getLogger(__name__)


class Calls:
    """Passes calls on to MCP servers. Safe to use from several threads.

    Args:
        values: How long a call may take where its server's configuration does not say.
        workspace: The directory whose MCP servers may be called.
    """

    def __init__(self, values: Values, workspace: Workspace) -> None:
        self._values = values
        self._servers = Servers(workspace)
        self._sessions = Sessions()
        self._lock = threading.Lock()
        self._outcomes: Counter[str] = Counter()

    @property
    def outcomes(self) -> Mapping[str, int]:
        """How many calls there were, by ``ok`` or the side that failed them; see ``_outcome``."""
        with self._lock:
            return dict(self._outcomes)

    def call(self, tool: Item, arguments: Mapping[str, Any]) -> CallResult:
        """Call a tool.

        Returns:
            What the tool answered, also where it says itself that it failed.

        Raises:
            UsageError: The item is no tool.
            CallsOffError: It is no tool of a server that may be run here.
            ArgumentsError: The arguments do not fit its schema; nothing was sent.
            CallTimeoutError: The server did not answer in time.
            CallError: The server cannot be reached, or answers what is no result.
        """
        began = time.perf_counter()
        outcome = "us"
        try:
            result = self._call(tool, arguments)
            outcome = "tool" if result.is_error else "ok"
            return result
        except RepertoryError as error:
            outcome = _outcome(error)
            raise
        finally:
            with self._lock:
                self._outcomes[outcome] += 1
            fields = {
                "tool": tool.id,
                "server": tool.server,
                "ms": round((time.perf_counter() - began) * 1_000, 1),
                "outcome": outcome,
                "caller": CALLER.get(),
            }
            _log.info("tool_called", extra=fields)

    def close(self) -> None:
        """End all sessions. Closing twice is allowed."""
        self._sessions.close()

    def _call(self, tool: Item, arguments: Mapping[str, Any]) -> CallResult:
        server = self._servers.of(tool)
        sent = checked(arguments, tool)
        seconds = server.call_timeout or self._values.call_timeout
        result = result_of(self._sessions.call(server, given_name(tool), sent, seconds))
        if tool.output_schema is not None and not result.is_error:
            _check(result, tool)
        return result


def _check(result: CallResult, tool: Item) -> None:
    """See that a result is as the tool promises.

    Raises:
        CallError: It is not.
    """
    if result.structured_content is None:
        wrong = ["it has no structured content"]
    else:
        wrong = faults(result.structured_content, tool.output_schema or {})
    if wrong:
        raise CallError(
            f"The MCP server {tool.server} answered the call of {tool.id} with what does not fit "
            f"the tool's own output schema: {'; '.join(wrong)}."
        )


def _outcome(error: RepertoryError) -> str:
    """Which side failed: ``caller``, ``timeout``, ``server``, or ``us``; ``tool`` is no error."""
    if isinstance(error, UsageError):
        return "caller"
    if isinstance(error, CallTimeoutError):
        return "timeout"
    return "server" if isinstance(error, CallError) else "us"
