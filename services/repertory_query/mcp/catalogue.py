"""The toolset of the catalogue: ``search``, ``get`` and ``call``."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from mcp_types import CallToolResult

from repertory.backend import Backend
from repertory.catalogue.item import Item, Kind
from repertory.catalogue.policy import set_fields
from repertory.catalogue.views import Section, split_at_headings
from repertory.errors import StoreError, UnknownItemError, UsageError
from repertory.formats.items import whole_tools
from repertory.formats.linked import link_lines
from repertory.formats.mcp import mcp, mcp_detail
from repertory.formats.skill_text import skill_text
from repertory.functions.function import Function
from repertory.notices import about_text
from repertory.search.answer import Answer
from repertory.text import cut, one_line
from repertory.values import Values
from repertory_query.mcp.parameters import of_search, parameters, queries_of, string, strings
from repertory_query.mcp.tool import Tool, in_words
from repertory_query.mcp.work import Work

CALL = "call"
MAX_TEXT_LENGTH = 60_000  # characters of one answer, some 15,000 tokens
MAX_LINKED = 10  # skills of one search whose tools are looked up
MAX_HEADINGS = 60  # in a message


def catalogue(defaults: Callable[[], Values]) -> tuple[Tool, ...]:
    """The tools; every conversation pays for their definitions.

    Args:
        defaults: Returns the settings for missing arguments of a search.
    """

    def asked() -> dict[str, Any]:
        return parameters(
            {
                "query": string("A task in plain words, or a name."),
                "queries": strings("Several at once."),
                **of_search(defaults()),
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
        parameters=asked(),
        run=lambda backend, arguments: _search(backend, arguments, defaults()),
    )
    return (
        Tool(function=search, work=Work.SEARCH, tells_contents=True, parameters_now=asked),
        Tool(function=_GET),
        Tool(function=_CALL, work=Work.CALL, open_world=True),
    )


def text_of(item: Item) -> str:
    """A skill's or a document's text as a file; a tool's schema as JSON."""
    if item.kind is Kind.TOOL:
        return msgspec.json.encode(_tool(item)).decode()
    if item.kind is Kind.DOCUMENT:
        return item.body or item.description
    return skill_text(item)


def _search(backend: Backend, arguments: Mapping[str, Any], values: Values) -> CallToolResult:
    queries = queries_of(values, arguments)
    answers = [backend.search(query) for query in queries]
    found = (
        mcp_detail(answers, _links(backend, answers))
        if arguments.get("detail")
        else mcp(answers, whole_tools(answers, backend.items))
    )
    return CallToolResult.model_validate(found)


def _get(backend: Backend, arguments: Mapping[str, Any]) -> CallToolResult:
    item = backend.item(arguments["id"])
    section = arguments.get("section")
    if section is not None:
        return in_words(_fitting(_section(item, section), item))
    links = backend.links(item.id)
    if item.kind is Kind.TOOL:
        return in_words(msgspec.json.encode(_tool(item, links.needed_by)).decode())
    head = f"{item.kind.title()} {item.id}" + (f", file {item.path}" if item.path else "")
    heads = [one_line(head), *link_lines(links, backend.items)]
    if notice := about_text(item, backend.stats().problems):
        heads.append(notice)
    return in_words("\n".join(heads) + f"\n\n{_fitting(text_of(item), item)}")


def _links(backend: Backend, answers: Sequence[Answer]) -> list[str]:
    """The tools that the skills among the best hits need, as far as they can be read now."""
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


def _tool(item: Item, needed_by: Sequence[str] = ()) -> dict[str, Any]:
    fields = {
        **item.extra,
        **set_fields(item.policy),
        "id": item.id,
        "name": item.name,
        "server": item.server,
        "description": item.description,
        "inputSchema": item.input_schema,
        "outputSchema": item.output_schema,
        "neededBy": needed_by,
    }
    return {name: value for name, value in fields.items() if value not in (None, "", (), [], {})}


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
    found = msgspec.to_builtins(result)
    data = found["structuredContent"]
    if data is not None and not found["content"]:  # many hosts show their models the text alone
        found["content"] = [{"type": "text", "text": msgspec.json.encode(data).decode()}]
    if not isinstance(data, dict | None):  # most versions of the protocol allow an object alone
        found["structuredContent"] = None
    return CallToolResult.model_validate(found)


_GET = Function(
    name="get",
    title="Read an item",
    description="Read a skill or a document, before you follow it, or a tool's schema.",
    parameters=parameters(
        {
            "id": {"type": "string"},
            "section": string("Only what this heading holds."),
        },
        "id",
    ),
    action="read",
    subject="id",
    run=_get,
)

_CALL = Function(
    name=CALL,
    title="Call a tool",
    description="Call a tool that a search found.",
    parameters=parameters({"tool": string("Its id."), "arguments": {"type": "object"}}, "tool"),
    action="call",
    subject="tool",
    run=_call,
)
