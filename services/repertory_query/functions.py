"""``/functions``: what agents are handed, listed in function-calling form, and called by name."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Body, Request, Response
from pydantic import BaseModel, JsonValue

from repertory.errors import UnknownItemError
from repertory.functions.function import Function
from repertory.functions.table import FUNCTIONS
from repertory.keys import Scope
from repertory_query.access import require
from repertory_query.pool import Pool
from repertory_query.service import Service


class Definition(BaseModel):
    """What a function does and takes."""

    name: str
    description: str
    parameters: dict[str, JsonValue]


class Tool(BaseModel):
    """A function as function-calling models take it."""

    type: Literal["function"]
    function: Definition


Arguments = Annotated[dict[str, JsonValue], Body()]


def router(service: Service, pool: Pool) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/functions", tags=["functions"])

    @routes.get("", response_model=list[Tool], summary="List functions")
    async def functions() -> list[dict[str, Any]]:
        """List the functions for agents, each defined as function-calling models take it."""
        return [function.definition() for function in FUNCTIONS.values()]

    def calling(function: Function) -> Callable[..., Awaitable[Response]]:
        async def call(request: Request, arguments: Arguments) -> Response:
            if function.writes:
                require(request.state.caller, Scope.CALL)
            found = await pool.run(lambda: function.call(service, arguments))
            return Response(msgspec.json.encode(found), media_type="application/json")

        return call

    for function in FUNCTIONS.values():
        routes.add_api_route(
            f"/{function.name}",
            calling(function),
            methods=["POST"],
            summary=function.title,
            description=function.description,
            operation_id=function.name,
            responses={200: _json(function.returns or {"type": "string"})},
            openapi_extra={"requestBody": _json(function.parameters)},
        )

    @routes.post("/{name}", include_in_schema=False)
    async def unknown(name: str) -> None:
        known = ", ".join(FUNCTIONS)
        raise UnknownItemError(f"There is no function {name[:200]!r}; there are {known}.")

    return routes


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}
