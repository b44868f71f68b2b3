"""``/reviews``: the items that wait for approval, and the history of an item."""

from starlette.requests import Request
from starlette.responses import Response

from repertory.keys import Scope
from repertory.review.store import ReviewStore
from repertory.review.versions import check_bound
from repertory.review.wire import ApprovalRequest, ApprovedItems, History, ItemId, Reviews
from repertory_query.api.operations import Nothing, Operations, answer
from repertory_query.backend.pool import Pool
from repertory_query.records.actions import Action, AuditedRoute
from repertory_query.records.auditing import name_items


def routes(reviews: ReviewStore, pool: Pool) -> list[AuditedRoute]:
    """The routes."""
    operations = Operations("reviews")

    @operations.get(
        "/reviews",
        Nothing,
        returns=Reviews,
        scope=Scope.ADMIN,
        action=None,
        summary="Items to review",
    )
    async def list_reviews(_: Request, __: Nothing) -> Response:
        """List the items that are quarantined, new or changed, with the suspicious passages.

        At most 500 are listed; ``waiting`` is their total number.
        """
        return await pool.run(lambda: answer(reviews.listing()))

    @operations.post(
        "/reviews/approve",
        ApprovalRequest,
        returns=ApprovedItems,
        scope=Scope.ADMIN,
        action=Action("approve"),
        summary="Approve items",
    )
    async def approve(request: Request, given: ApprovalRequest) -> Response:
        """Approve items as they were shown; agents see them within seconds."""
        who = request.state.caller.who
        name_items(request, given.items)
        check_bound(given.items)
        done = await pool.run(lambda: reviews.approve(given.items, who))
        name_items(request, done)
        return answer(ApprovedItems(items=done))

    @operations.get(
        "/reviews/history",
        ItemId,
        returns=History,
        scope=Scope.ADMIN,
        action=Action("read", "item"),
        summary="History",
    )
    async def get_history(_: Request, given: ItemId) -> Response:
        """List when an item appeared, how it changed, and who approved it."""
        return await pool.run(lambda: answer(History(events=reviews.history(given.item))))

    return operations.routes
