"""Tool calls: authorised, validated against the tool's schema, and forwarded to its server or API.

Imported only when a tool is called, because the SDK and the HTTP client are slow to import.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from repertory.calling.arguments import validate_arguments
from repertory.calling.faults import faults
from repertory.calling.http.client import Requests
from repertory.calling.result import CallResult, result_of
from repertory.calling.servers import Servers
from repertory.calling.sessions import Sessions
from repertory.catalogue.item import Item
from repertory.errors import CallError, CallTimeoutError, RepertoryError, UsageError
from repertory.project.workspace import Workspace
from repertory.sources.openapi.api import Api
from repertory.sources.openapi.operation import operation_of
from repertory.sources.tools import given_name
from repertory.system.logs import CALLER
from repertory.values import Values

_log = logging.getLogger(__name__)


class Calls:
    """Forwards calls to the MCP servers and APIs of a workspace. Thread-safe."""

    def __init__(self, values: Values, workspace: Workspace) -> None:
        self._values = values
        self._workspace = workspace
        self._servers = Servers(workspace)
        self._sessions = Sessions()
        self._requests = Requests()
        self._lock = threading.Lock()
        self._outcomes: Counter[str] = Counter()

    @property
    def outcomes(self) -> Mapping[str, int]:
        """The number of calls by outcome: ``ok``, ``tool`` or a value of ``_outcome``."""
        with self._lock:
            return dict(self._outcomes)

    def call(self, tool: Item, arguments: Mapping[str, Any]) -> CallResult:
        """Call a tool.

        Returns:
            The tool's result, even if it reports a failure.

        Raises:
            UsageError: The item is not a tool.
            CallsOffError: The tool's server is not configured or not trusted here.
            ArgumentsError: The arguments do not match the tool's schema; nothing was sent.
            CallTimeoutError: The server did not answer in time.
            CallError: The server is unreachable or its answer is invalid.
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
        callee = self._servers.of(tool)
        sent = validate_arguments(arguments, tool)
        seconds = callee.call_timeout or self._values.call_timeout
        if isinstance(callee, Api):
            return self._call_api(callee, tool, sent, seconds)
        result = result_of(self._sessions.call(callee, given_name(tool), sent, seconds))
        if tool.output_schema is not None and not result.is_error:
            _check(result, tool)
        return result

    def _call_api(
        self, api: Api, tool: Item, arguments: dict[str, Any], seconds: float
    ) -> CallResult:
        """Call an operation of an API.

        The result is not validated, because many OpenAPI documents describe responses only roughly.
        """
        operation = operation_of(tool.extra)
        if operation is None:
            raise CallError(f"The tool {tool.id} has no request; run `repertory index`.")
        return self._requests.call(
            api, operation, arguments, seconds, self._workspace.settings.variables
        )


def _check(result: CallResult, tool: Item) -> None:
    """Validate a result against the tool's output schema.

    Raises:
        CallError: The result does not match.
    """
    if result.structured_content is None:
        wrong = ["it has no structured content"]
    else:
        wrong = faults(result.structured_content, tool.output_schema or {})
    if wrong:
        raise CallError(
            f"The MCP server {tool.server} answered the call of {tool.id} with a result that does "
            f"not fit the tool's own output schema: {'; '.join(wrong)}."
        )


def _outcome(error: RepertoryError) -> str:
    """The cause of a failed call: ``caller``, ``timeout``, ``server`` or ``us``."""
    if isinstance(error, UsageError):
        return "caller"
    if isinstance(error, CallTimeoutError):
        return "timeout"
    return "server" if isinstance(error, CallError) else "us"
