"""The pages: search, one item, the state of the server."""

from functools import partial

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from repertory.errors import StoreError
from repertory.keys import Scope
from repertory.local import available
from repertory.stats import Jobs
from repertory.values import Values
from repertory_query.access import STATIC, Access, require
from repertory_query.pages import connecting, openid, results, review, sign_in, trying, why
from repertory_query.pages.form import form_of
from repertory_query.pages.item import ItemPage, home_of
from repertory_query.pages.page import STATIC_FILES, page, root_of, static_file
from repertory_query.pool import Pool
from repertory_query.searching import AnsweredSearches
from repertory_query.service import Service
from repertory_query.visible import jobs_for, visible_to


def routes(
    service: Service,
    searches: AnsweredSearches,
    pool: Pool,
    calls: Pool,
    access: Access,
    defaults: Values,
) -> list[BaseRoute]:
    """The routes, which are not part of the API.

    Args:
        service: The running server.
        searches: Answers queries.
        pool: The threads of blocking calls that are no searches.
        calls: The threads of calls of tools.
        access: Access control, to sign in.
        defaults: The settings for fields that a form leaves out.
    """
    items = ItemPage(service, access)

    async def view(request: Request) -> Response:
        """Show an item whole, at the section that matched."""
        return await pool.run(lambda: items.show(request, request.path_params["item_id"]))

    async def status(request: Request) -> Response:
        """Show the state of the server."""
        part = form_of(request).part
        return await pool.run(lambda: _status(request, service, part=part))

    async def retry(request: Request) -> Response:
        """Try a failed job, or all of them, again."""
        require(request.state.caller, Scope.ADMIN)
        sent = await sign_in.fields(request)
        ids = [sent["id"]] if sent.get("id") else None
        await pool.run(partial(service.retry, ids))
        return RedirectResponse(f"{root_of(request)}/status", 303)

    async def static(request: Request) -> Response:
        """Send one of the files of the pages."""
        name = request.path_params["name"]
        if name not in STATIC_FILES:
            raise HTTPException(404)
        return static_file(name)

    return [
        *sign_in.routes(access),
        *openid.routes(access),
        *results.routes(service, searches, defaults),
        *why.routes(service, searches, defaults),
        *trying.routes(service, items, calls),
        *connecting.routes(service, access),
        Route("/view/{item_id:path}", view),
        Route("/status", status),
        Route("/status/retry", retry, methods=["POST"]),
        *review.routes(service.parts.reviews, pool),
        Route(STATIC + "{name}", static),
    ]


def _status(request: Request, service: Service, *, part: bool) -> Response:
    caller = request.state.caller
    try:
        jobs: Jobs | None = jobs_for(caller, service)
    except StoreError:  # the statistics say why
        jobs = None
    may_all = Scope.ADMIN in caller.scopes
    return page(
        request,
        "live.html" if part else "status.html",
        stats=visible_to(caller, service).stats(),
        jobs=jobs,
        home=home_of(service),
        may_all=may_all,
        recent=service.recent.newest_first() if may_all else (),
        waiting=available(service.parts.reviews.count, []) if may_all else 0,
    )
