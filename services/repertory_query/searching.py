"""``/search``: one query, or many at once."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Request, Response
from fastapi import Query as Parameter

from repertory.catalogue.item import Kind
from repertory.formats.table import Format, Host, Rendered, render
from repertory.index.vectors import Filter
from repertory.search.answer import Answer, Mode
from repertory.search.engine import SearchEngine
from repertory.search.query import Query, Weights, query_of
from repertory.search.render import as_json
from repertory.settings import Values
from repertory_query import host_schemas, schemas
from repertory_query.cache import AnswerCache
from repertory_query.metrics import Metrics
from repertory_query.pool import Pool
from repertory_query.service import Service

MODE = "Repertory-Mode"
TOGETHER = 8  # queries of one request that are searched at once: others have a share, too

Filters = Annotated[list[str], Parameter(max_length=schemas.MOST_VALUES)]
Kinds = Annotated[list[Kind], Parameter(max_length=schemas.MOST_VALUES)]

MOST_DECLARED = 1_000
FORMAT = (
    "Whom the answer is for: `json` as below; `markdown` to read; `types`, a TypeScript module of "
    "the tools; `mcp`, the result of a tool; `anthropic`, the content of a `tool_result` and the "
    "definitions of its tools; `openai`, a `tool_search_output`. There, skills and documents are "
    "told of by a function `get_item`, whose `id` the client answers with `GET /items/{id}`; "
    "`kind=tool` leaves them out."
)
DECLARED = (
    "With `format=anthropic`: the names of the tools that the request declares. No other is "
    "referred to, since an unknown one would fail the request. Without any, all that are found are."
)
CALL_ID = "With `format=openai`: the `call_id` of the model's tool search call."

Found = (
    schemas.Answer
    | host_schemas.AnthropicAnswer
    | host_schemas.OpenAIAnswer
    | host_schemas.McpAnswer
)
_MARKDOWN: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/markdown": {"schema": {"type": "string"}}}}
}


class _Told(msgspec.Struct, rename="camel"):
    """What is remembered of an answer."""

    total_results: int
    mode: Mode


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
        began = time.perf_counter()
        if known := self._cache.get(engine, query):
            self._metrics.cached()
            self._note(query, known, began)
            return known
        answer, mode, degraded = await self._pool.run(lambda: _search(engine, query))
        self._metrics.search(mode)
        self._note(query, answer, began)
        if not degraded:  # what is missing may be back in a moment
            self._cache.put(engine, query, answer)
        return answer

    def _note(self, query: Query, answer: bytes, began: float) -> None:
        told = msgspec.json.decode(answer, type=_Told)
        seconds = time.perf_counter() - began
        self._service.recent.note(query.text, told.total_results, told.mode, seconds)

    async def render(self, query: Query, form: Format, host: Host) -> Response:
        """The answer to a query in a format, made anew; it raises what ``answer`` does."""

        def search() -> tuple[Rendered, Answer]:
            answer = self._service.search(query)
            return render(form, answer, self._service.items, host), answer

        found, answer = await self._pool.run(search)
        self._metrics.search(answer.mode.value)
        headers = {MODE: answer.mode.value}  # most hosts have no place for it
        if isinstance(found, str):
            return Response(found, headers=headers, media_type="text/markdown")
        return Response(msgspec.json.encode(found), headers=headers, media_type="application/json")

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

    asked = Depends(asked_with(defaults))

    @routes.get("/search", response_model=Found, responses=_MARKDOWN, summary="Search")
    async def search(
        request: Request,
        query: Annotated[Query, asked],
        form: Annotated[Format, Parameter(alias="format", description=FORMAT)] = Format.JSON,
        declared: Annotated[
            list[str], Parameter(description=DECLARED, max_length=MOST_DECLARED)
        ] = [],  # noqa: B006 - FastAPI's way to say that there need be none
        call_id: Annotated[str | None, Parameter(description=CALL_ID, max_length=200)] = None,
    ) -> Response:
        """Find the items that fit a query best, each with its confidence and a reason."""
        if form is Format.JSON:
            return Response(await searches.answer(query), media_type="application/json")
        host = Host(
            gateway=str(request.base_url).rstrip("/"),
            declared=frozenset(declared) if declared else None,
            call_id=call_id,
        )
        return await searches.render(query, form, host)

    @routes.post("/search", response_model=schemas.Answers, summary="Search for many at once")
    async def search_many(body: schemas.Queries) -> Response:
        """Answer up to a hundred queries, in their order. One that is wrong refuses them all."""
        queries = [
            query_of(
                defaults,
                one.q,
                limit=one.limit,
                threshold=one.threshold,
                alpha=one.alpha,
                name_weight=one.name_weight,
                section_weight=one.section_weight,
                kinds=one.kinds,
                sources=one.sources,
                servers=one.servers,
                tags=one.tags,
            )
            for one in body.queries
        ]
        answers = b",".join(await searches.answers(queries))
        return Response(b'{"answers":[' + answers + b"]}", media_type="application/json")

    return routes


def asked_with(defaults: Values) -> Callable[..., Awaitable[Query]]:
    """What reads a search from the parameters of an address.

    Args:
        defaults: The settings that hold for what they do not say.
    """

    async def asked(  # noqa: PLR0913, PLR0917 - one for each parameter
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
        name_weight: Annotated[float, Parameter(ge=0, le=1)] = defaults.name_weight,
        section_weight: Annotated[float, Parameter(ge=0, le=1)] = defaults.section_weight,
        kind: Kinds = [],  # noqa: B006 - as above
        source: Filters = [],  # noqa: B006 - as above
        server: Filters = [],  # noqa: B006 - as above
        tag: Filters = [],  # noqa: B006 - as above
    ) -> Query:
        return Query(
            text=q,
            limit=limit,
            threshold=threshold,
            weights=Weights(alpha=alpha, name_weight=name_weight, section_weight=section_weight),
            where=filtered(kind, source, server, tag),
        )

    return asked


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
