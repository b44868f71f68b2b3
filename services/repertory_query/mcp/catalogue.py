"""The catalogue toolset: ``search``, ``get`` and ``call``."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from mcp_types import CallToolResult

from repertory.backend import Backend
from repertory.catalogue.item import Kind
from repertory.errors import StoreError, UnknownItemError
from repertory.formats.linked import link_lines
from repertory.formats.mcp import mcp, mcp_detail
from repertory.formats.tools import whole_tools
from repertory.functions.function import Function
from repertory.search.answer import Answer
from repertory.values import Values
from repertory_query.backend.pool import Work
from repertory_query.mcp.parameters import (
    parameters,
    queries_of,
    search_properties,
    string,
    strings,
)
from repertory_query.mcp.reading import GET
from repertory_query.mcp.tool import Tool

CALL = "call"
MAX_LINKED = 10  # skills per search whose tools are looked up


def catalogue(defaults: Callable[[], Values]) -> tuple[Tool, ...]:
    """The tools, with short definitions, because every conversation pays for them.

    Args:
        defaults: Returns the settings for missing arguments of a search.
    """

    def parameters_now() -> dict[str, Any]:
        return parameters(
            {
                "query": string("A task in plain words, or a name."),
                "queries": strings("Several at once."),
                **search_properties(defaults()),
                "detail": {"type": "boolean", "description": "With evidence, as JSON."},
            },
        )

    search = Function(
        name="search",
        title="Search",
        description=(
            "Find skills, tools and documents for a task, a question or a name; search before you "
            "start on a task. The best come first, with a confidence from 0 to 1, tools with their "
            "parameters."
        ),
        parameters=parameters_now(),
        run=lambda backend, arguments: _search(backend, arguments, defaults()),
    )
    return (
        Tool(function=search, work=Work.SEARCH, tells_contents=True, parameters_now=parameters_now),
        Tool(function=GET),
        Tool(function=_CALL, work=Work.CALL),
    )


def _search(backend: Backend, arguments: Mapping[str, Any], values: Values) -> CallToolResult:
    queries = queries_of(values, arguments)
    answers = [backend.search(query) for query in queries]
    found = (
        mcp_detail(answers, _links(backend, answers))
        if arguments.get("detail")
        else mcp(answers, whole_tools(answers, backend.items))
    )
    return CallToolResult.model_validate(found)


def _links(backend: Backend, answers: Sequence[Answer]) -> list[str]:
    """The tools needed by the skills among the best hits, if they can be read now."""
    skills = dict.fromkeys(hit.id for one in answers for hit in one.hits if hit.kind is Kind.SKILL)
    lines: list[str] = []
    for skill in [*skills][:MAX_LINKED]:
        try:
            lines += link_lines(backend.links(skill), backend.items, skill)
        except UnknownItemError:  # it was just deleted
            continue
        except StoreError:
            break
    return lines


def _call(backend: Backend, arguments: Mapping[str, Any]) -> CallToolResult:
    result = backend.call(arguments["tool"], arguments.get("arguments", {}))
    found = msgspec.to_builtins(result)
    data = found["structuredContent"]
    if data is not None and not found["content"]:  # many hosts show only the text to their models
        found["content"] = [{"type": "text", "text": msgspec.json.encode(data).decode()}]
    if not isinstance(data, dict | None):  # most protocol versions allow only an object
        found["structuredContent"] = None
    return CallToolResult.model_validate(found)


_CALL = Function(
    name=CALL,
    title="Call a tool",
    description="Call a tool that a search found.",
    parameters=parameters({"tool": string("Its id."), "arguments": {"type": "object"}}, "tool"),
    action="call",
    subject="tool",
    run=_call,
)
