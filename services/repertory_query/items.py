"""``/items``: what is indexed, in a list and one by one."""

from functools import partial
from typing import Annotated

import msgspec
from fastapi import APIRouter, Response
from fastapi import Query as Parameter

from repertory.index.keywords.document import Entry
from repertory.index.vectors import Filter
from repertory_query import schemas
from repertory_query.pool import Pool
from repertory_query.searching import Filters, Kinds, filtered
from repertory_query.service import Service

_SHOWN = ("id", "kind", "name", "source", "server", "description", "path", "tags")


def router(service: Service, pool: Pool) -> APIRouter:
    """The routes."""
    routes = APIRouter(tags=["items"])

    @routes.get("/items", response_model=schemas.Items, summary="List items")
    async def items(
        kind: Kinds = [],  # noqa: B006 - FastAPI's way to say that there need be none
        source: Filters = [],  # noqa: B006 - likewise
        server: Filters = [],  # noqa: B006 - likewise
        tag: Filters = [],  # noqa: B006 - likewise
        offset: Annotated[int, Parameter(ge=0)] = 0,
        limit: Annotated[int, Parameter(ge=1, le=10_000)] = 100,
    ) -> Response:
        """List what is indexed, by id, each with the beginning of its description."""
        where = filtered(kind, source, server, tag)
        found = await pool.run(lambda: _page(service, where, offset, limit))
        return Response(found, media_type="application/json")

    @routes.post("/items", response_model=schemas.WholeItems, summary="Show several items")
    async def some(body: schemas.Ids) -> Response:
        """Show some items whole, in the order asked for; those that are not there are left out."""
        found = await pool.run(partial(service.items, body.ids))
        return Response(
            msgspec.json.encode({"items": list(found.values())}), media_type="application/json"
        )

    @routes.get("/items/{item_id:path}", response_model=schemas.Item, summary="Show an item")
    async def item(item_id: str) -> Response:
        """Show one item whole: everything that is known of it, its text and its schemas."""
        found = await pool.run(partial(service.item, item_id))
        return Response(msgspec.json.encode(found), media_type="application/json")

    return routes


def _page(service: Service, where: Filter, offset: int, limit: int) -> bytes:
    found = service.entries(where)
    shown = [_summary(entry) for entry in found[offset : offset + limit]]
    return msgspec.json.encode({"items": shown, "total": len(found)})


def _summary(entry: Entry) -> dict[str, object]:
    return {field: getattr(entry, field) for field in _SHOWN}
