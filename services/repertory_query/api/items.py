"""``/items``: the indexed items, in a list and one by one; ``/skills``: the files of skills."""

from collections.abc import Callable
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from repertory.backend import Backend
from repertory.search.links import Links
from repertory.skill_files import FileContent, SkillFiles
from repertory.stats import Contents
from repertory.wire import Ids, Items, LinkedItem, Summaries, linked, summary
from repertory_query.api.operations import Nothing, Operations, answer
from repertory_query.api.searching import Filters, where_of
from repertory_query.backend.caller_view import contents_for, visible_to
from repertory_query.backend.pool import Pool
from repertory_query.backend.service import Service
from repertory_query.records.actions import Action, AuditedRoute
from repertory_query.records.auditing import name_items


class Page(Filters, frozen=True, kw_only=True):
    """A page of a filtered list."""

    offset: Annotated[int, Meta(ge=0, description="The number of items to skip.")] = 0
    limit: Annotated[int, Meta(ge=1, le=10_000, description="The maximum number of items.")] = 100
    after: Annotated[
        str, Meta(description="The id that the page comes after; empty for the first page.")
    ] = ""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One supporting file of a skill."""

    item: Annotated[str, Meta(description="The id of the skill.")]
    place: Annotated[str, Meta(description="The path of the file in the skill's folder.")]


def routes(service: Service, pool: Pool) -> list[AuditedRoute]:
    """The routes."""
    operations = Operations("items")

    async def read(request: Request, what: Callable[[Backend], object]) -> Response:
        """The result of reading from the caller's view of the server, as JSON."""
        backend = visible_to(request.state.caller, service)
        return await pool.run(lambda: answer(what(backend)))

    @operations.get("/items", Page, returns=Summaries, action=Action("list"), summary="List items")
    async def list_items(request: Request, given: Page) -> Response:
        """List the indexed items by id, each with the beginning of its description."""
        return await read(request, lambda backend: _page(backend, given))

    @operations.get("/contents", Nothing, returns=Contents, action=None, summary="Count the items")
    async def count_items(request: Request, _: Nothing) -> Response:
        """Count the indexed items of each kind and source."""
        caller = request.state.caller
        return await read(request, lambda backend: contents_for(caller, backend.contents()))

    @operations.post(
        "/items", Ids, returns=Items, action=Action("read"), summary="Show several items"
    )
    async def get_items(request: Request, given: Ids) -> Response:
        """Show several items in full, in the requested order; unknown ones are left out."""
        name_items(request, given.ids)
        return await read(
            request, lambda backend: Items(items=list(backend.items(given.ids).values()))
        )

    @operations.get(
        "/items/{item_id:path}",
        Nothing,
        returns=LinkedItem,
        action=Action("read", "item_id"),
        summary="Show an item",
    )
    async def get_item(request: Request, _: Nothing) -> Response:
        """Show one item in full, with its text, its schemas and its links.

        An item can also be named by its unique name.
        """
        return await read(request, lambda backend: _linked(backend, request.path_params["item_id"]))

    @operations.get(
        "/links/{item_id:path}", Nothing, returns=Links, action=None, summary="Show links"
    )
    async def get_links(request: Request, _: Nothing) -> Response:
        """Show the tools that a skill needs, or the skills that need a tool."""
        return await read(request, lambda backend: backend.links(request.path_params["item_id"]))

    @operations.post(
        "/skills/files",
        Ids,
        returns=dict[str, SkillFiles],
        action=Action("read"),
        summary="List the files of skills",
    )
    async def list_skill_files(request: Request, given: Ids) -> Response:
        """List the supporting files of some skills, by id, if this server can read them."""
        name_items(request, given.ids)
        return await read(request, lambda backend: backend.skill_files(given.ids))

    @operations.get(
        "/skills/file",
        Place,
        returns=FileContent,
        action=Action("read", "item"),
        summary="Read a file of a skill",
    )
    async def read_skill_file(request: Request, given: Place) -> Response:
        """Read one supporting file of a skill."""
        return await read(
            request, lambda backend: FileContent(data=backend.skill_file(given.item, given.place))
        )

    return operations.routes


def _linked(backend: Backend, wanted: str) -> LinkedItem:
    item = backend.item(wanted)
    return linked(item, backend.links(item.id))


def _page(backend: Backend, page: Page) -> Summaries:
    found, total = backend.page(where_of(page), page.limit, page.offset, page.after)
    return Summaries(items=[*map(summary, found)], total=total)
