"""Converts the tools of a server to items, one by one, so that a bad one never affects the rest."""

import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

import msgspec

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.safety import claims
from repertory.sources.reading.json_schema import mended
from repertory.sources.reading.structured import is_fit, plain_object
from repertory.sources.source import Problem, error, warning
from repertory.text import UNFIT, clean, normalized, one_line

MAX_TOOLS = 10_000  # per server
MAX_NAME_LENGTH = 128
MAX_DESCRIPTION_LENGTH = 20_000
MAX_SCHEMA_SIZE = 1 << 19  # bytes of JSON
MAX_EXTRA_SIZE = 1 << 16  # bytes of JSON

_NAMED = frozenset({"name", "description", "inputSchema", "outputSchema"})
_GIVEN_NAME = "nameAsGiven"
_SCHEMA_ALIASES = ("input_schema", "parameters")  # Anthropic's and OpenAI's inputSchema


def tool_id(server: str, tool: str) -> str:
    """Return the id of a server's tool."""
    return f"{server}__{tool}"


def takes(server: str, tool: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Whether globs match a server's tool, by its name or its id. An empty ``include`` matches all.

    Names match in any Unicode normalization.
    """
    names = [normalized("NFC", name) for name in (tool, tool_id(server, tool))]

    def match(globs: Sequence[str]) -> bool:
        return any(fnmatchcase(name, normalized("NFC", glob)) for name in names for glob in globs)

    return (not include or match(include)) and not match(exclude)


def given_name(tool: Item) -> str:
    """Return the tool's original name, used to call it; the item's name may have been cleaned."""
    given = tool.extra.get(_GIVEN_NAME)
    return json.loads(given) if isinstance(given, str) else tool.name


def as_mcp(raw: object) -> object:
    """Convert a tool from the form of Anthropic's or OpenAI's APIs to that of MCP."""
    if not isinstance(raw, Mapping):
        return raw
    function = raw.get("function")
    if raw.get("type") == "function":
        inner = function if isinstance(function, Mapping) else raw
        raw = {key: value for key, value in inner.items() if key != "type"}
    for alias in _SCHEMA_ALIASES:
        if "inputSchema" not in raw and isinstance(raw.get(alias), Mapping):
            others = {key: value for key, value in raw.items() if key != alias}
            return {**others, "inputSchema": raw[alias]}
    return raw


def tool_items(
    server: str, source: str, raw_tools: Sequence[object], origin: str
) -> tuple[list[Item], list[Problem]]:
    """Convert the tools of a ``tools/list`` answer to items, one by one.

    Only the name is required. A bad keyword of a schema, or a bad schema, is dropped and the tool
    kept. If two tools have the same name, the first is kept. Other fields (title, annotations, …)
    go to ``extra``; some annotations become tags.

    Args:
        server: The server's name.
        source: The source's name.
        raw_tools: The tools as untrusted JSON values.
        origin: The file or server they come from, for problems.

    Returns:
        The items in the order of the list, with unique ids, and the problems.
    """
    items: dict[str, Item] = {}
    problems: list[Problem] = []
    for number, raw in enumerate(islice(raw_tools, MAX_TOOLS), 1):
        item, found = _tool_item(server, source, as_mcp(raw), origin, number)
        problems += found
        if item and items.setdefault(item.id, item) is not item:
            message = f"The server {server} lists {item.name!r} twice; the first is kept."
            problems.append(warning(origin, message, item=item.id))
    if len(raw_tools) > MAX_TOOLS:
        message = (
            f"The server {server} lists {len(raw_tools):,} tools; those after the first "
            f"{MAX_TOOLS:,} were left out."
        )
        problems.append(error(origin, message))
    return list(items.values()), problems


def _tool_item(
    server: str, source: str, raw: object, origin: str, number: int
) -> tuple[Item | None, list[Problem]]:
    """Return the item of one tool, None if it has no usable name, and the problems."""
    given = raw.get("name") if isinstance(raw, Mapping) else None
    name = one_line(given) if isinstance(given, str) else ""
    if not isinstance(raw, Mapping) or not 0 < len(name) <= MAX_NAME_LENGTH:
        message = (
            f"Tool {number} of the server {server} has no name of 1 to {MAX_NAME_LENGTH} "
            "characters and was left out."
        )
        return None, [error(origin, message)]
    item_id = tool_id(server, name)
    description, messages = _description(raw, is_clean_name=name == given)
    schemas: dict[str, dict[str, Any] | None] = {"inputSchema": None, "outputSchema": None}
    for key in schemas:
        schema, defect = _schema(raw[key]) if key in raw else (None, "")
        schemas[key] = schema
        if defect:
            lost = "its invalid keywords were" if schema else "it was"
            messages.append(f"has an invalid {key}, so {lost} left out: {defect}.")
    others = {key: value for key, value in raw.items() if key not in _NAMED}
    extra, defect = _bounded(others, MAX_EXTRA_SIZE)
    if defect:
        messages.append(f"has further fields that were left out: {defect}.")
    parts = (*(raw[key] for key, schema in schemas.items() if schema), others if extra else None)
    if not is_fit(parts):
        messages.append(f"has {UNFIT} in its schemas or further fields; they were left out.")
    extra.pop(_GIVEN_NAME, None)
    if name != given:
        extra[_GIVEN_NAME] = json.dumps(given)  # escaped, so that it is printable
    item = Item(
        id=item_id,
        kind=Kind.TOOL,
        name=name,
        source=source,
        description=description,
        server=server,
        path=origin,
        tags=claims(raw.get("annotations")),
        input_schema=schemas["inputSchema"],
        output_schema=schemas["outputSchema"],
        extra=extra,
    )
    return item, [warning(origin, f"The tool {name} {text}", item=item_id) for text in messages]


def _description(raw: Mapping[Any, Any], *, is_clean_name: bool) -> tuple[str, list[str]]:
    """The description of a tool, and the defects of it and of the name."""
    messages = []
    description = raw.get("description") or ""
    if not isinstance(description, str):
        messages.append("has a description that is not text; it was left out.")
        description = ""
    if not (is_clean_name and is_fit(description)):
        messages.append(f"has {UNFIT} in its name or description; they were left out.")
    description = clean(description)
    if len(description) > MAX_DESCRIPTION_LENGTH:
        messages.append(f"has a description of {len(description):,} characters; it was cut.")
        description = description[:MAX_DESCRIPTION_LENGTH]
    return description.strip(), messages


def _schema(raw: object) -> tuple[dict[str, Any] | None, str]:
    """Return a schema as plain JSON, None if it is unusable, and its defect."""
    if not isinstance(raw, Mapping):
        return None, "it is not an object"
    schema, defect = _bounded(raw, MAX_SCHEMA_SIZE)
    if defect:
        return None, defect
    return mended(schema)


def _bounded(raw: Mapping[Any, Any], limit: int) -> tuple[dict[str, Any], str]:
    """Return a mapping as plain JSON, or an empty one and the limit it exceeds."""
    try:
        value = plain_object(raw)
    except ValueError as exc:
        return {}, str(exc)
    size = len(msgspec.json.encode(value))
    return ({}, f"{size:,} bytes are over the limit of {limit:,}") if size > limit else (value, "")
