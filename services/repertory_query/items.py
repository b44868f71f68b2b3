"""``/items``: the indexed items, in a list and one by one."""

from typing import Annotated

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from repertory.backend import Backend
from repertory.catalogue.item import Item
from repertory.index.vectors import Filter
from repertory.wire import Ids, Items, Summaries, summary
from repertory_query.api import Nothing, Operations, answer
from repertory_query.pool import Pool
from repertory_query.searching import Filters
from repertory_query.service import Service
from repertory_query.visible import visible_to


class Page(Filters, frozen=True, kw_only=True):
    """A page of a filtered list."""

    offset: Annotated[int, Meta(ge=0)] = 0
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 100


def routes(service: Service, pool: Pool) -> list[BaseRoute]:
    """The routes."""
    operations = Operations("items")

    @operations.get("/items", Page, returns=Summaries, summary="List items")
    async def list_items(request: Request, given: Page) -> Response:
        """List the indexed items by id, each with the beginning of its description."""
        backend = visible_to(request.state.caller, service)
        return await pool.run(lambda: answer(_page(backend, given.where, given)))

    @operations.post("/items", Ids, returns=Items, summary="Show several items")
    async def get_items(request: Request, given: Ids) -> Response:
        """Show some items whole, in the requested order; missing ones are left out."""
        backend = visible_to(request.state.caller, service)
        return await pool.run(lambda: answer(Items(items=list(backend.items(given.ids).values()))))

    @operations.get("/items/{item_id:path}", Nothing, returns=Item, summary="Show an item")
    async def get_item(request: Request, _: Nothing) -> Response:
        """Show one item whole, with its text and its schemas."""
        backend, item_id = visible_to(request.state.caller, service), request.path_params["item_id"]
        return await pool.run(lambda: answer(backend.item(item_id)))

    return operations.routes


def _page(backend: Backend, where: Filter, page: Page) -> Summaries:
    found = backend.entries(where)
    return Summaries(
        items=[summary(entry) for entry in found[page.offset : page.offset + page.limit]],
        total=len(found),
    )
