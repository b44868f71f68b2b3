"""``/tools``: calls of tools, passed on to their MCP servers."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from repertory.calling.result import CallResult
from repertory.keys import Scope
from repertory.system.cancellation import waiting
from repertory_query.api.operations import Operations, answer
from repertory_query.backend.caller_view import visible_to
from repertory_query.backend.client_disconnect import while_connected
from repertory_query.backend.pool import Pool
from repertory_query.backend.service import Service
from repertory_query.problems import problem
from repertory_query.records.actions import Action, AuditedRoute

_ARGUMENTS = {
    "type": "object",
    "description": "The tool's arguments, by its input schema; a missing body is equal to {}.",
}


def routes(service: Service, pool: Pool) -> list[AuditedRoute]:
    """The routes."""
    operations = Operations("tools")

    @operations.post(
        "/tools/{tool_id:path}",
        dict,
        returns=CallResult,
        scope=Scope.CALL,
        body=_ARGUMENTS,
        action=Action("call", "tool_id", has_text=True),
        summary="Call a tool",
    )
    async def call_tool(request: Request, arguments: dict[str, Any]) -> Response:
        """Call a tool of an MCP server with its arguments; the answer is the tool's own.

        Calls are off by default. A problem's `side` says which side failed: the caller, the tool
        (then the problem includes its answer), its server, or us.
        """
        tool_id = request.path_params["tool_id"]
        backend = visible_to(request.state.caller, service)
        call = pool.run(lambda: backend.call(tool_id, arguments))
        with waiting():
            result = await while_connected(request.receive, call)
        return _failed(tool_id, result) if result.is_error else answer(result.as_json())

    return operations.routes


def _failed(tool_id: str, result: CallResult) -> Response:
    """The problem for a tool that reports a failure, with its whole output."""
    says = f"says: {result.words}" if result.words else "failed, and does not say why."
    return problem(
        502,
        f"The tool {tool_id} {says}",
        side="tool",
        content=result.content,
        structured_content=result.structured_content,
    )
