"""The page of the items that wait for approval."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from repertory.keys import Scope
from repertory.review.store import ReviewStore
from repertory_query.access import require
from repertory_query.auditing import about
from repertory_query.pages import sign_in
from repertory_query.pages.page import page, root_of
from repertory_query.pool import Pool

PATH = "/status/reviews"


def routes(store: ReviewStore, pool: Pool) -> list[BaseRoute]:
    """The routes, which need the scope ``admin``."""

    async def reviews(request: Request) -> Response:
        """Show the items that wait for approval."""
        require(request.state.caller, Scope.ADMIN)
        return await pool.run(lambda: page(request, "reviews.html", reviews=store.waiting()))

    async def approve(request: Request) -> Response:
        """Approve an item as it was shown."""
        caller = request.state.caller
        require(caller, Scope.ADMIN)
        sent = await sign_in.fields(request)
        item = f"{sent.get('item', '')}@{sent.get('version', '')}"
        about(request, await pool.run(lambda: store.approve([item], caller.who)))
        return RedirectResponse(f"{root_of(request)}{PATH}", 303)

    return [Route(PATH, reviews), Route(PATH, approve, methods=["POST"])]
