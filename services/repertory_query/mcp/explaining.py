"""The toolset ``explain``. It is separate, because few conversations need it."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from repertory.backend import Backend
from repertory.functions.function import Function
from repertory.values import Values
from repertory_query.backend.pool import Work
from repertory_query.mcp.parameters import parameters, queries_of, search_properties, string
from repertory_query.mcp.tool import Tool


def explaining(defaults: Callable[[], Values]) -> tuple[Tool, ...]:
    """The tools.

    Args:
        defaults: Returns the settings for missing arguments of a search.
    """

    def parameters_now() -> dict[str, Any]:
        return parameters(
            {
                "query": string("The text of the search."),
                "item": string("The id of the item, or its name where no other item has it."),
                **search_properties(defaults()),
            },
            "query",
            "item",
        )

    def run(backend: Backend, arguments: Mapping[str, Any]) -> str:
        (query,) = queries_of(defaults(), arguments)
        return msgspec.json.encode(backend.explain(query, arguments["item"])).decode()

    function = Function(
        name="explain",
        title="Explain a result",
        description="Explain why a search shows an item or not, and what would show it, as JSON.",
        parameters=parameters_now(),
        action="explain",
        subject="item",
        run=run,
    )
    return (Tool(function=function, work=Work.SEARCH, parameters_now=parameters_now),)
