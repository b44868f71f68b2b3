"""``/tools``: calls of tools, passed on to their MCP servers."""

from functools import partial
from typing import Annotated

import msgspec
from fastapi import APIRouter, Body, Response
from pydantic import JsonValue

from repertory.calling.result import CallResult
from repertory_query import schemas
from repertory_query.access import Calling
from repertory_query.pool import Pool
from repertory_query.problems import MEDIA_TYPE, problem
from repertory_query.service import Service


def router(service: Service, pool: Pool) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/tools", tags=["tools"])

    @routes.post(
        "/{tool_id:path}",
        response_model=schemas.CallResult,
        responses={
            502: {
                "description": "The tool says that it failed, or its server did.",
                "content": {MEDIA_TYPE: {"schema": schemas.CallRefusal.model_json_schema()}},
            }
        },
        summary="Call a tool",
    )
    async def call(
        tool_id: str,
        _: Calling,
        arguments: Annotated[dict[str, JsonValue], Body(description=schemas.ARGUMENTS)] = {},  # noqa: B006 - FastAPI's way
    ) -> Response:
        """Call a tool of an MCP server with its arguments; the answer is the tool's own.

        Calls are off unless they are switched on. What goes wrong says whose side it was on: the
        caller's, the tool's, its server's, or ours.
        """
        result = await pool.run(partial(service.call, tool_id, arguments))
        if result.is_error:
            return _failed(tool_id, result)
        return Response(msgspec.json.encode(result.as_json()), media_type="application/json")

    return routes


def _failed(tool_id: str, result: CallResult) -> Response:
    """The problem of a tool that says that it failed, with all that it says."""
    answer = result.as_json()
    del answer["isError"]
    says = f"says: {result.words}" if result.words else "failed, and does not say why."
    return problem(502, f"The tool {tool_id} {says}", side="tool", **answer)
