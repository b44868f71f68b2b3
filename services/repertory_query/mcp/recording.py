"""Audit log entries for actions over MCP."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams

from repertory.audit import Audit, outcome_of, user
from repertory.functions.function import Function
from repertory.usage.recorder import UsageRecorder
from repertory_query.problems import status_of
from repertory_query.records.request_usage import collecting

Context = ServerRequestContext[Any, Any]


class ActionStatus:
    """An action in progress, with a status like that of HTTP."""

    status = 200


class Recorder:
    """Records the actions of an MCP server.

    Args:
        audit: The log; None if another process records the actions.
        usage: Records searches and uses in this process.
    """

    def __init__(self, audit: Audit | None, usage: UsageRecorder) -> None:
        self._audit = audit
        self._usage = usage

    @contextmanager
    def tool(
        self, context: Context, params: CallToolRequestParams, function: Function | None
    ) -> Iterator[ActionStatus]:
        """Record a call of a tool; its function is None if there is no such tool."""
        action, name = (function.action, function.subject) if function else ("mcp", "")
        arguments = params.arguments or {}
        what = arguments.get(name) if name else None
        has_texts = self._audit is not None and self._audit.has_texts
        text = json.dumps(arguments, ensure_ascii=False) if has_texts else ""
        with self.action(context, action, [what] if isinstance(what, str) else [], text) as found:
            yield found

    @contextmanager
    def action(
        self, context: Context, action: str, what: Sequence[str] = (), text: str = ""
    ) -> Iterator[ActionStatus]:
        """Record an action after the block; a protocol error determines its outcome."""
        request = context.request
        caller = str(request.state.caller.who) if request else user()  # over stdio, our own user
        found, began = ActionStatus(), time.perf_counter()
        try:
            with collecting() as usage:
                yield found
        except MCPError as error:
            is_callers = error.code == INVALID_PARAMS
            found.status = 422 if is_callers else status_of(error.__cause__) or 500
            raise
        except BaseException:
            found.status = 500
            raise
        finally:
            usage.record(self._usage, caller)
            if request:
                request.state.is_recorded = True
            if self._audit is not None:
                self._audit.record(
                    action,
                    caller,
                    "mcp",
                    outcome=outcome_of(found.status),
                    what=what,
                    status=found.status,
                    seconds=time.perf_counter() - began,
                    text=text,
                )
