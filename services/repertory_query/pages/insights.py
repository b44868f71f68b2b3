"""The page of the usage insights."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from repertory.insights import insights_of
from repertory.keys import Scope
from repertory.usage.wire import ItemFinding
from repertory_query.backend.pool import Pool
from repertory_query.backend.service import Service
from repertory_query.pages.page import PageRoute, page
from repertory_query.records.actions import Action

PATH = "/status/insights"
FIRST = 8  # shown of each list before it is expanded


def routes(service: Service, pool: Pool) -> list[BaseRoute]:
    """The route, which needs the scope ``admin``."""

    async def show(request: Request) -> Response:
        """Show the insights report."""
        found = await pool.run(lambda: insights_of(service))
        return page(request, "insights.html", found=found, first=FIRST, by_advice=by_advice)

    return [PageRoute("GET", PATH, show, action=Action("insights"), scope=Scope.ADMIN)]


def by_advice(found: Iterable[ItemFinding]) -> Iterator[tuple[str, list[ItemFinding]]]:
    """Consecutive findings with the same advice, grouped so that it is shown once."""
    return ((advice, list(some)) for advice, some in groupby(found, key=lambda one: one.advice))
