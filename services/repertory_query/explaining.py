"""``/explain``: why a search shows an item, or why not."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Response
from fastapi import Query as Parameter

from repertory.search.query import Query
from repertory.search.render import explanation_as_json
from repertory.settings import Values
from repertory_query import schemas
from repertory_query.pool import Pool
from repertory_query.searching import asked_with
from repertory_query.service import Service

ITEM = "The item's id, or its name where no other item has it."


def router(service: Service, pool: Pool, defaults: Values) -> APIRouter:
    """The route.

    Args:
        service: What is asked.
        pool: The threads of searches, which this is one of.
        defaults: The settings that hold for what a query does not say.
    """
    routes = APIRouter(tags=["search"])
    asked = Depends(asked_with(defaults))

    @routes.get("/explain", response_model=schemas.Explanation, summary="Explain a result")
    async def explain(
        query: Annotated[Query, asked],
        item: Annotated[str, Parameter(description=ITEM)],
    ) -> Response:
        """Tell why a search shows an item, or why it does not, and what would show it."""
        found = await pool.run(lambda: service.explain(query, item))
        content = msgspec.json.encode(explanation_as_json(found))
        return Response(content, media_type="application/json")

    return routes
