"""``/insights``: reports on the recorded usage of the catalogue, for administrators."""

from starlette.requests import Request
from starlette.responses import Response

from repertory.insights import insights_of, unanswered_of
from repertory.keys import Scope
from repertory.usage.wire import Insights, UnansweredQueries
from repertory_query.api.operations import Nothing, Operations, answer
from repertory_query.backend.pool import Pool
from repertory_query.backend.service import Service
from repertory_query.records.actions import Action, AuditedRoute


def routes(service: Service, pool: Pool) -> list[AuditedRoute]:
    """The routes."""
    operations = Operations("insights")

    @operations.get(
        "/insights",
        Nothing,
        returns=Insights,
        scope=Scope.ADMIN,
        action=Action("insights"),
        summary="Usage insights",
    )
    async def get_insights(_: Request, __: Nothing) -> Response:
        """Report searches without results or use, and unused items, with advice for each."""
        return await pool.run(lambda: answer(insights_of(service)))

    @operations.get(
        "/insights/unanswered",
        Nothing,
        returns=UnansweredQueries,
        scope=Scope.ADMIN,
        action=Action("insights"),
        summary="Queries without results",
    )
    async def list_unanswered(_: Request, __: Nothing) -> Response:
        """List the queries that found nothing, with what their callers used soon afterwards."""
        return await pool.run(lambda: answer(unanswered_of(service)))

    return operations.routes
