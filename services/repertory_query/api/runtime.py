"""``/runtime/tools.ts``: a TypeScript module that calls tools through this server."""

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from repertory.catalogue.item import Kind
from repertory.index.vectors import Filter
from repertory.typescript.module import module
from repertory.typescript.selection import names_in, select_tools
from repertory.wire import MAX_VALUES
from repertory_query.access.callers import Access
from repertory_query.api.operations import Operations
from repertory_query.backend.caller_view import visible_to
from repertory_query.backend.pool import Pool
from repertory_query.backend.service import Service
from repertory_query.records.actions import Action, AuditedRoute

MEDIA_TYPE = "application/typescript"


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of a module."""

    filter: Annotated[
        tuple[str, ...],
        Meta(
            max_length=MAX_VALUES,
            description="Names of servers, for all their tools, and ids of single tools, separated "
            "by commas or repeated; all tools by default. A name with a comma needs its own "
            "parameter.",
            examples=[["github,myserver__echo"]],
        ),
    ] = ()


def routes(service: Service, pool: Pool, access: Access) -> list[AuditedRoute]:
    """The routes."""
    operations = Operations("runtime")

    @operations.get(
        "/runtime/tools.ts",
        Selection,
        content={MEDIA_TYPE: {"type": "string"}},
        action=Action("read", "filter"),
        summary="Get tools as TypeScript",
    )
    async def get_tools_module(request: Request, given: Selection) -> Response:
        """Get a module with types and methods that call tools through this server."""
        gateway = access.url(request)
        backend = visible_to(request.state.caller, service)

        def made() -> str:
            entries = backend.entries(Filter(kinds=(Kind.TOOL.value,)))
            tools = select_tools(entries, names_in(entries, given.filter))
            return module(list(backend.items(tools).values()), gateway).text

        text = await pool.run(made)
        return Response(text, media_type=f"{MEDIA_TYPE}; charset=utf-8")

    return operations.routes
