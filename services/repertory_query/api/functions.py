"""``/functions``: lists the functions for agents in function-calling form, and calls them."""

from typing import Any, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from repertory.errors import UnknownItemError
from repertory.functions.function import Function
from repertory.functions.table import FUNCTIONS, PORTABLE
from repertory.keys import Scope
from repertory_query.api.operations import Handler, Nothing, Operations, answer, undescribed
from repertory_query.api.requests import JSON
from repertory_query.backend.caller_view import visible_to
from repertory_query.backend.pool import Pool
from repertory_query.backend.service import Service
from repertory_query.records.actions import Action, AuditedRoute


class Definition(msgspec.Struct, frozen=True):
    """The name, the description and the parameters of a function."""

    name: str
    description: str
    parameters: dict[str, Any]


class FunctionTool(msgspec.Struct, frozen=True):
    """A function, in the form for function-calling models."""

    type: Literal["function"]
    function: Definition


def routes(service: Service, pool: Pool) -> list[AuditedRoute]:
    """The routes."""
    operations = Operations("functions")

    @operations.get(
        "/functions", Nothing, returns=list[FunctionTool], action=None, summary="List functions"
    )
    async def list_functions(_: Request, __: Nothing) -> Response:
        """List the functions for agents, in the form for function-calling models.

        Every model API accepts these names. The names in the contracts can be called, too.
        """
        return answer([function.definition() for function in PORTABLE.values()])

    def calling(function: Function) -> Handler[dict[str, Any]]:
        async def call(request: Request, arguments: dict[str, Any]) -> Response:
            backend = visible_to(request.state.caller, service)
            return answer(await pool.run(lambda: function.call(backend, arguments)))

        return call

    by_contract = Operations("functions")
    for function in (FUNCTIONS | PORTABLE).values():
        shown = operations if function.name in PORTABLE else by_contract
        shown.post(
            f"/functions/{function.name}",
            dict,
            name=f"call_{function.name}",
            action=Action(function.action, has_text=True),
            summary=function.title,
            text=function.description,
            scope=Scope.CALL if function.writes else Scope.READ,
            error_is_message=function.error_is_result,
            content={JSON: function.returns or {"type": "string"}},
            body=function.parameters,
        )(calling(function))

    async def unknown(request: Request) -> Response:
        known, name = ", ".join(FUNCTIONS | PORTABLE), request.path_params["name"]
        raise UnknownItemError(f"There is no function {name[:200]!r}; there are {known}.")

    return [
        *operations.routes,
        *undescribed(by_contract.routes),
        AuditedRoute("POST", "/functions/{name}", unknown, action=Action("search", has_text=True)),
    ]
