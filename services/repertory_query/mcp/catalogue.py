"""The toolset of the catalogue: ``search``, ``get`` and ``call``."""

from collections.abc import Mapping
from typing import Any

import msgspec
from mcp_types import CallToolResult, TextContent

from repertory.backend import Backend
from repertory.catalogue.item import Item, Kind
from repertory.catalogue.policy import Policy, set_fields
from repertory.catalogue.views import Section, split_at_headings
from repertory.errors import UsageError
from repertory.formats.mcp import mcp
from repertory.functions.function import Function
from repertory.search.answer import Answer
from repertory.search.query import query_of
from repertory.text import cut, one_line
from repertory.values import Threshold, Values
from repertory.wire import MAX_VALUES, MaxLimit
from repertory_query.mcp.tool import Tool, in_words
from repertory_query.mcp.work import Work

CALL = "call"
MAX_TEXT_LENGTH = 60_000  # characters of one answer, some 15,000 tokens
MAX_HEADINGS = 60  # in a message

_INSTRUCTIONS = (
    "Find the skills, tools and documents that help with a task, a question or a name; search "
    "before you start on anything that may have been solved here. Say the task in plain words; "
    "misspelt names are found as well. The best come first, each with a reason and a "
    "confidence from 0 to 1; its square is the probability that the item helps. Then read what "
    "fits with `get`."
)


def catalogue(values: Values) -> tuple[Tool, ...]:
    """The tools.

    Args:
        values: The settings for missing arguments of a search.
    """
    search = Function(
        name="search",
        title="Search skills, tools and documents",
        description=_INSTRUCTIONS,
        parameters=_parameters(
            {
                "query": _string("What you look for: a task, a question, some words, or a name."),
                "limit": msgspec.json.schema(MaxLimit) | {"default": values.limit},
                "threshold": msgspec.json.schema(Threshold) | {"default": values.threshold},
                "kinds": _several("Only these kinds.", {"enum": [kind.value for kind in Kind]}),
                "sources": _several("Only items of these sources."),
                "servers": _several("Only the tools of these MCP servers."),
                "tags": _several("Only items with one of these tags."),
            },
            "query",
        ),
        returns=_answer_schema(),
        run=lambda backend, arguments: _search(backend, arguments, values),
    )
    return (
        Tool(function=search, work=Work.SEARCH, tells_contents=True),
        Tool(function=_GET),
        Tool(function=_CALL, work=Work.CALL, open_world=True),
    )


def text_of(item: Item) -> str:
    """A skill's or a document's text as a file; a tool's schema as JSON."""
    if item.kind is Kind.TOOL:
        return msgspec.json.format(msgspec.json.encode(_tool(item))).decode()
    if item.kind is Kind.DOCUMENT:
        return item.body or item.description
    fields = {"name": item.name, "description": item.description, **item.extra}
    front = msgspec.yaml.encode(fields | set_fields(item.policy)).decode()
    return f"---\n{front}---\n\n{item.body}"


def _search(backend: Backend, arguments: Mapping[str, Any], values: Values) -> CallToolResult:
    given = dict(arguments)
    if "limit" in given:
        given["limit"] = int(given["limit"])  # JSON Schema takes 5.0 for an integer
    query = query_of(values, given.pop("query"), **given)
    return CallToolResult.model_validate(mcp(backend.search(query)))


def _answer_schema() -> dict[str, Any]:
    _, parts = msgspec.json.schema_components([Answer], ref_template="#/$defs/{name}")
    parts["Answer"]["properties"]["results"].pop("examples")
    return {**parts.pop("Answer"), "$defs": parts}


def _get(backend: Backend, arguments: Mapping[str, Any]) -> CallToolResult:
    item = backend.item(arguments["id"])
    section = arguments.get("section")
    if section is not None:
        return in_words(_fitting(_section(item, section), item))
    if item.kind is Kind.TOOL:
        return CallToolResult(
            content=[TextContent(text=text_of(item))], structured_content=_tool(item)
        )
    head = f"{item.kind.title()} {item.id}" + (f", file {item.path}" if item.path else "")
    return in_words(f"{one_line(head)}\n\n{_fitting(text_of(item), item)}")


def _tool(item: Item) -> dict[str, Any]:
    return {
        **item.extra,
        **msgspec.to_builtins(item.policy or Policy()),
        "id": item.id,
        "name": item.name,
        "server": item.server,
        "description": item.description,
        "inputSchema": item.input_schema,
        "outputSchema": item.output_schema,
    }


def _section(item: Item, heading: str) -> str:
    """The part of a text under a heading, with those of lower levels below it."""
    sections = [section for section in split_at_headings(item.body) if section.heading]
    wanted = heading.lstrip("# ").strip().casefold()
    for number, section in enumerate(sections):
        if section.title.casefold() == wanted:
            deeper = [section]
            for other in sections[number + 1 :]:
                if _level(other) <= _level(section):
                    break
                deeper.append(other)
            return "\n\n".join(f"{one.heading}\n\n{one.text}".rstrip() for one in deeper)
    there = _headings(sections)
    raise UsageError(
        f"{item.id} has no section {heading[:200]!r}; it has {there}."
        if there
        else f"{item.id} has no sections; ask for it whole."
    )


def _fitting(text: str, item: Item) -> str:
    """A text as far as it fits one answer, and how to read on where it does not."""
    if len(text) <= MAX_TEXT_LENGTH:
        return text
    sections = _headings([one for one in split_at_headings(item.body) if one.heading])
    rest = f"; ask for a section of it: {sections}" if sections else ""
    return f"{cut(text, MAX_TEXT_LENGTH)}\n\n[Cut after {MAX_TEXT_LENGTH:,} characters{rest}.]"


def _headings(sections: list[Section]) -> str:
    titles = dict.fromkeys(cut(one_line(section.title), 100) for section in sections)
    more = ["…"] if len(titles) > MAX_HEADINGS else []
    return ", ".join([*map(repr, list(titles)[:MAX_HEADINGS]), *more])


def _level(section: Section) -> int:
    return len(section.heading) - len(section.heading.lstrip("#"))


def _call(backend: Backend, arguments: Mapping[str, Any]) -> CallToolResult:
    result = backend.call(arguments["tool"], arguments.get("arguments", {}))
    return CallToolResult.model_validate(msgspec.to_builtins(result))


def _parameters(properties: dict[str, Any], required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [required],
        "additionalProperties": False,
    }


def _string(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _several(description: str, bounds: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "array",
        "items": {"type": "string", **(bounds or {})},
        "maxItems": MAX_VALUES,
        "description": description,
    }


_GET = Function(
    name="get",
    title="Read a skill, a tool or a document",
    description=(
        "Read what a search found: the whole text of a skill or a document, or one section of it; "
        "of a tool, what it does and the JSON Schema of its arguments. Read a skill before you "
        "follow it, and a tool's schema before you call it."
    ),
    parameters=_parameters(
        {
            "id": _string("The id of the item, as the search gave it."),
            "section": _string(
                "The heading of the section to read, as in `matchedIn`; leave it out for all."
            ),
        },
        "id",
    ),
    run=_get,
)

_CALL = Function(
    name=CALL,
    title="Call a tool",
    description=(
        "Call a tool that a search found, with arguments that fit its schema, which `get` shows. "
        "Its MCP server does what it does, and its answer is passed on as it is."
    ),
    parameters=_parameters(
        {
            "tool": _string("The id of the tool, `server__tool`."),
            "arguments": {
                "type": "object",
                "description": "The arguments of the tool; leave them out where it takes none.",
            },
        },
        "tool",
    ),
    writes=True,
    run=_call,
)
