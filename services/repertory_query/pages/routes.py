"""All pages: those for searching, and those for managing the server."""

from collections.abc import Callable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from repertory.keys import Scope
from repertory.values import Values
from repertory_query.access.callers import STATIC, Access
from repertory_query.api.schemas import Schema
from repertory_query.backend.answering import AnsweredSearches
from repertory_query.backend.pool import Pool
from repertory_query.backend.service import Service
from repertory_query.pages import (
    api_reference,
    connecting,
    explanation,
    insights,
    keys,
    openid,
    policies,
    results,
    review,
    sign_in,
    status,
    tool_call,
)
from repertory_query.pages.item import ItemPage
from repertory_query.pages.page import STATIC_FILES, PageRoute, static_file
from repertory_query.records.actions import Action


def routes(
    service: Service,
    searches: AnsweredSearches,
    pool: Pool,
    calls: Pool,
    access: Access,
    defaults: Callable[[], Values],
    document: Schema,
) -> list[BaseRoute]:
    """The routes, which are not part of the API.

    Args:
        service: The running server.
        searches: Answers queries.
        pool: The threads for blocking calls other than searches.
        calls: The threads for calls of tools.
        access: Access control, for sign-in and keys.
        defaults: Returns the settings for missing fields of a form.
        document: The OpenAPI document of the API.
    """
    items = ItemPage(service, access)

    async def view(request: Request) -> Response:
        """Show the whole item, at the section that matched."""
        return await pool.run(lambda: items.show(request, request.path_params["item_id"]))

    async def static(request: Request) -> Response:
        """Send a static file of the pages."""
        name = request.path_params["name"]
        if name not in STATIC_FILES:
            raise HTTPException(404)
        return static_file(name)

    return [
        *sign_in.routes(access),
        *openid.routes(access),
        *results.routes(service, searches, defaults),
        *explanation.routes(searches, defaults),
        *tool_call.routes(service, items, calls),
        *connecting.routes(service, access),
        *api_reference.routes(document, access),
        *(
            PageRoute("GET", path, view, action=Action("read", "item_id"), scope=Scope.READ)
            for path in ("/view/{item_id:path}", tool_call.PATH)  # the second after a sign-in
        ),
        *status.routes(service, pool),
        *insights.routes(service, pool),
        *review.routes(service, pool),
        *policies.routes(service, pool),
        *keys.routes(service, pool, access),
        PageRoute("GET", STATIC + "{name}", static, action=None, scope=None),
    ]
