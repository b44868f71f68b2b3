"""The page of the usage insights."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from repertory.insights import insights_of
from repertory.keys import Scope
from repertory_query.access import require
from repertory_query.pages.page import page
from repertory_query.pool import Pool
from repertory_query.service import Service

PATH = "/status/insights"


def routes(service: Service, pool: Pool) -> list[BaseRoute]:
    """The route, which needs the scope ``admin``."""

    async def show(request: Request) -> Response:
        """Show what the usage says about the catalogue."""
        require(request.state.caller, Scope.ADMIN)
        return await pool.run(lambda: page(request, "insights.html", found=insights_of(service)))

    return [Route(PATH, show)]
