"""``/runtime/tools.ts``: a TypeScript module that calls tools through this server."""

from collections.abc import Collection
from typing import Annotated

from fastapi import APIRouter, Request, Response
from fastapi import Query as Parameter

from repertory.catalogue.item import Kind
from repertory.index.vectors import Filter
from repertory.typescript.module import module
from repertory.typescript.selection import select_tools
from repertory_query import schemas
from repertory_query.pool import Pool
from repertory_query.service import Service

MEDIA_TYPE = "application/typescript"

FILTER = (
    "The servers whose tools are wanted, and single tools by their ids, with commas between or one "
    "by one; all tools if there are none."
)


def router(service: Service, pool: Pool) -> APIRouter:
    """The routes."""
    routes = APIRouter(prefix="/runtime", tags=["runtime"])

    @routes.get(
        "/tools.ts",
        summary="Get tools as TypeScript",
        response_class=Response,
        responses={200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}},
    )
    async def tools(
        request: Request,
        names: Annotated[
            list[str],
            Parameter(
                alias="filter",
                description=FILTER,
                max_length=schemas.MOST_VALUES,
                examples=[["github,myserver__echo"]],
            ),
        ] = [],  # noqa: B006 - FastAPI's way to say that there need be none
    ) -> Response:
        """Make a module of types and methods that call tools through this server."""
        listed = (one.strip() for name in names for one in name.split(","))
        wanted = dict.fromkeys(one for one in listed if one)
        gateway = str(request.base_url).rstrip("/")
        text = await pool.run(lambda: _module(service, wanted, gateway))
        return Response(text, media_type=f"{MEDIA_TYPE}; charset=utf-8")

    return routes


def _module(service: Service, wanted: Collection[str], gateway: str) -> str:
    tools = select_tools(service.entries(Filter(kinds=(Kind.TOOL.value,))), wanted)
    return module(list(service.items(tools).values()), gateway).text
