"""``/search``: one query, or many at once."""

import asyncio
from collections.abc import Sequence
from typing import Annotated

import msgspec
from fastapi import APIRouter, Response
from fastapi import Query as Parameter

from repertory.catalogue.item import Kind
from repertory.index.vectors import Filter
from repertory.search.answer import Query
from repertory.search.engine import SearchEngine
from repertory.search.render import as_json
from repertory.settings import Values
from repertory_query import schemas
from repertory_query.cache import AnswerCache
from repertory_query.metrics import Metrics
from repertory_query.pool import Pool
from repertory_query.service import Service

TOGETHER = 8  # queries of one request that are searched at once: others have a share, too

Filters = Annotated[list[str], Parameter(max_length=schemas.MOST_VALUES)]
Kinds = Annotated[list[Kind], Parameter(max_length=schemas.MOST_VALUES)]


class Searches:
    """Answers queries: from the cache, else on a thread."""

    def __init__(self, service: Service, pool: Pool, metrics: Metrics) -> None:
        self._service = service
        self._pool = pool
        self._metrics = metrics
        self._cache = AnswerCache()

    async def answer(self, query: Query) -> bytes:
        """The answer to a query, as JSON.

        Raises:
            HTTPException: 503; too many searches wait.
            UsageError: The query cannot be answered.
            StoreError: Nothing can answer.
        """
        engine = self._service.engine
        if known := self._cache.get(engine, query):
            self._metrics.cached()
            return known
        answer, mode, degraded = await self._pool.run(lambda: _search(engine, query))
        self._metrics.search(mode)
        if not degraded:  # what is missing may be back in a moment
            self._cache.put(engine, query, answer)
        return answer

    async def answers(self, queries: Sequence[Query]) -> list[bytes]:
        """The answers to several queries, in their order; see ``answer``."""
        found: list[bytes] = []
        for start in range(0, len(queries), TOGETHER):
            some = queries[start : start + TOGETHER]
            found += await asyncio.gather(*map(self.answer, some))
        return found


def router(searches: Searches, defaults: Values) -> APIRouter:
    """The routes.

    Args:
        searches: Answers.
        defaults: The settings that hold for what a query does not say.
    """
    routes = APIRouter(tags=["search"])

    @routes.get("/search", response_model=schemas.Answer, summary="Search")
    async def search(
        q: Annotated[
            str,
            Parameter(
                description=schemas.QUERY,
                json_schema_extra=schemas.QUERY_BOUNDS,
                openapi_examples={
                    "a task": {"value": "change our API credentials with no outage"},
                    "a name, misspelt": {"value": "read_fil"},
                },
            ),
        ],
        limit: Annotated[int, Parameter(ge=1, le=schemas.MOST_HITS)] = defaults.limit,
        threshold: Annotated[float, Parameter(ge=0, le=1)] = defaults.threshold,
        alpha: Annotated[float, Parameter(ge=0, le=1)] = defaults.alpha,
        kind: Kinds = [],  # noqa: B006 - FastAPI's way to say that there need be none
        source: Filters = [],  # noqa: B006 - likewise
        server: Filters = [],  # noqa: B006 - likewise
        tag: Filters = [],  # noqa: B006 - likewise
    ) -> Response:
        """Find the items that fit a query best, each with its confidence and a reason."""
        query = Query(
            text=q,
            limit=limit,
            threshold=threshold,
            alpha=alpha,
            where=filtered(kind, source, server, tag),
        )
        return Response(await searches.answer(query), media_type="application/json")

    @routes.post("/search", response_model=schemas.Answers, summary="Search for many at once")
    async def search_many(body: schemas.Queries) -> Response:
        """Answer up to a hundred queries, in their order. One that is wrong refuses them all."""
        queries = [
            Query(
                text=one.q,
                limit=defaults.limit if one.limit is None else one.limit,
                threshold=defaults.threshold if one.threshold is None else one.threshold,
                alpha=defaults.alpha if one.alpha is None else one.alpha,
                where=filtered(one.kinds, one.sources, one.servers, one.tags),
            )
            for one in body.queries
        ]
        answers = b",".join(await searches.answers(queries))
        return Response(b'{"answers":[' + answers + b"]}", media_type="application/json")

    return routes


def filtered(
    kinds: Sequence[Kind], sources: Sequence[str], servers: Sequence[str], tags: Sequence[str]
) -> Filter:
    """The filter that a caller asks for."""
    return Filter(
        kinds=tuple(kind.value for kind in kinds),
        sources=tuple(sources),
        servers=tuple(servers),
        tags=tuple(tags),
    )


def _search(engine: SearchEngine, query: Query) -> tuple[bytes, str, bool]:
    """The answer as JSON, which arms gave it, and whether one of them is missing."""
    answer = engine.search(query)
    return msgspec.json.encode(as_json(answer)), answer.mode.value, bool(answer.degraded)
