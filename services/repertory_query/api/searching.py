"""``/search``, for one or several queries, and ``/explain``: why a search shows an item or not."""

from collections.abc import Callable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from repertory.formats.rendering import Format, FormatOptions
from repertory.index.vectors import Filter
from repertory.search.answer import Answer
from repertory.search.explanation import Explanation
from repertory.search.query import Query, filter_of, query_of
from repertory.values import Values
from repertory.wire import (
    Answers,
    Kinds,
    Search,
    Searches,
    Servers,
    Sources,
    Tags,
    Text,
)
from repertory_query.access.callers import Access
from repertory_query.api.operations import Operations, answer
from repertory_query.api.requests import JSON
from repertory_query.api.schemas import Schema
from repertory_query.backend.answering import AnsweredSearches
from repertory_query.records.actions import Action, AuditedRoute

MAX_DECLARED = 1_000
MODE = "Repertory-Mode"  # a header
_SINGULAR = {"kinds": "kind", "sources": "source", "servers": "server", "tags": "tag"}


class Filters(msgspec.Struct, frozen=True, kw_only=True, rename=_SINGULAR):
    """The filters among query parameters; each may be repeated."""

    kinds: Kinds = ()
    sources: Sources = ()
    servers: Servers = ()
    tags: Tags = ()


class Parameters(Search, frozen=True, kw_only=True, rename=_SINGULAR):
    """A search by query parameters; each filter may be repeated."""

    q: Annotated[Text, Meta(examples=["change our API credentials with no outage", "read_fil"])]
    kinds: Kinds = ()
    sources: Sources = ()
    servers: Servers = ()
    tags: Tags = ()


class FormatParameters(Parameters, frozen=True, kw_only=True, rename="camel"):
    """A search and the format of its answer."""

    format: Annotated[
        Format,
        Meta(
            description="`json` as described; `markdown` to read; `types`, a TypeScript module of "
            "the tools; `mcp`, the result of an MCP tool; `anthropic`, the content of a "
            "`tool_result` and the definitions of its tools; `openai`, a `tool_search_output`. For "
            "skills and documents, `anthropic` has texts with their ids, and `openai` a function "
            "`get_item`, whose calls the client answers with `GET /v1/items/{id}`; `kind=tool` "
            "leaves them out."
        ),
    ] = Format.JSON
    declared: Annotated[
        tuple[str, ...],
        Meta(
            max_length=MAX_DECLARED,
            description="With `format=anthropic`: the names of the tools that the request "
            "declares. The answer refers only to these, because a reference to an unknown tool "
            "fails the request. Without any names, it refers to all found tools.",
        ),
    ] = ()
    call_id: Annotated[
        Annotated[str, Meta(max_length=200)] | None,
        Meta(description="With `format=openai`: the `call_id` of the model's tool search call."),
    ] = None


class ItemParameters(Parameters, frozen=True, kw_only=True, rename="camel"):
    """A search, and one item."""

    item: Annotated[str, Meta(description="The item's id, or its name if that is unique.")]


def where_of(given: Filters | Search) -> Filter:
    """The filter of a request."""
    return filter_of(
        kinds=given.kinds, sources=given.sources, servers=given.servers, tags=given.tags
    )


def query_from(given: Search, defaults: Values) -> Query:
    """The query of a request.

    Raises:
        UsageError: The text is blank or too long.
    """
    fields = {name: getattr(given, name) for name in Search.__struct_fields__}
    return query_of(defaults, fields.pop("q"), **fields)


def routes(
    searches: AnsweredSearches, defaults: Callable[[], Values], access: Access
) -> list[AuditedRoute]:
    """The routes.

    Args:
        searches: Answers the queries.
        defaults: Returns the settings for missing parameters.
        access: Knows the URL of this server.
    """
    operations = Operations("search")

    @operations.get(
        "/search",
        FormatParameters,
        returns=Answer,
        content=_FORMATS,
        action=Action("search", has_text=True),
        summary="Search",
    )
    async def search(request: Request, given: FormatParameters) -> Response:
        """Find the best items for a query, each with its confidence and a reason."""
        query, caller = query_from(given, defaults()), request.state.caller
        if given.format is Format.JSON:
            found = await searches.answer(query, caller)
            return Response(found.content, media_type=JSON)
        options = FormatOptions(
            gateway=access.url(request),
            declared=frozenset(given.declared) if given.declared else None,
            call_id=given.call_id,
        )
        rendered, mode = await searches.rendered(query, caller, given.format, options)
        headers = {MODE: mode.value}  # most formats have no field for it
        if isinstance(rendered, str):
            return Response(rendered, headers=headers, media_type="text/markdown")
        return Response(msgspec.json.encode(rendered), headers=headers, media_type=JSON)

    @operations.post(
        "/search",
        Searches,
        returns=Answers,
        action=Action("search", has_text=True),
        summary="Search for many at once",
    )
    async def search_many(request: Request, given: Searches) -> Response:
        """Answer up to a hundred queries, in order. If one is invalid, all are refused."""
        queries = [query_from(one, defaults()) for one in given.queries]
        found = await searches.answers(queries, request.state.caller)
        content = b",".join(one.content for one in found)
        return Response(b'{"answers":[' + content + b"]}", media_type=JSON)

    @operations.get(
        "/explain",
        ItemParameters,
        returns=Explanation,
        action=Action("explain", "item", has_text=True),
        summary="Explain a result",
    )
    async def explain(request: Request, given: ItemParameters) -> Response:
        """Explain why a search shows an item or not, and what would make it appear."""
        query = query_from(given, defaults())
        return answer(await searches.explanation(query, given.item, request.state.caller))

    return operations.routes


def _object(form: Format, **properties: Schema) -> Schema:
    return {
        "title": f"{form.title()}Answer",
        "type": "object",
        "description": f"With `format={form}`, as defined by its vendor.",
        "properties": properties,
        "required": list(properties),
    }


_LIST: Schema = {"type": "array", "items": {"type": "object"}}
_FORMATS: Mapping[str, Schema] = {  # by media type; many client generators read only the first
    JSON: {
        "anyOf": [
            _object(
                Format.MCP,
                content=_LIST,
                isError={"const": False},
            ),
            _object(Format.ANTHROPIC, content=_LIST, definitions=_LIST),
            _object(
                Format.OPENAI,
                type={"const": "tool_search_output"},
                call_id={"type": ["string", "null"]},
                tools=_LIST,
            ),
        ]
    },
    "text/markdown": {
        "type": "string",
        "description": "With `format=markdown`, and with `format=types`: a table and a module.",
    },
}
