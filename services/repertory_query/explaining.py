"""``/explain``: why a search shows an item, or why not."""

from typing import Annotated

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from repertory.search.explanation import Explanation
from repertory.settings import Values
from repertory_query.api import Operations, answer
from repertory_query.pool import Pool
from repertory_query.searching import Parameters
from repertory_query.service import Service
from repertory_query.visible import visible_to


class ItemParameters(Parameters, frozen=True, kw_only=True, rename="camel"):
    """A search, and one item."""

    item: Annotated[str, Meta(description="The item's id, or its name if that is unique.")]


def routes(service: Service, pool: Pool, defaults: Values) -> list[BaseRoute]:
    """The route.

    Args:
        service: The server.
        pool: The threads of searches.
        defaults: The settings for missing parameters.
    """
    operations = Operations("search")

    @operations.get("/explain", ItemParameters, returns=Explanation, summary="Explain a result")
    async def explain(request: Request, given: ItemParameters) -> Response:
        """Explain why a search shows an item, or why it does not, and what would show it."""
        query, backend = given.query(defaults), visible_to(request.state.caller, service)
        return answer(await pool.run(lambda: backend.explain(query, given.item)))

    return operations.routes
