"""What is suspicious about a change: rules that compare an item with the version before it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.passages import item_passages
from repertory.catalogue.safety import READ_ONLY
from repertory.review.suspicions import Finding, readings, shown, suspicions

MAX_NESTING = 10  # of parameters

# Orders to the model. Many honest texts have them, so only new ones of a tool count.
_ORDERS = re.compile(
    r"\b(?:you must|you should always|must always|always (?:call|use|run|send|include|pass|read)|"
    r"(?:call|use|run) this (?:tool )?(?:first|before)|before (?:using|calling) (?:this|any|other)|"
    r"important\s?:|do not ask|without asking|without confirmation|never ask)",
    re.IGNORECASE,
)


def suspicious_changes(item: Item, before: Item) -> list[Finding]:
    """What is suspicious about a change of an item, and was not there before.

    Args:
        item: The item as it is now.
        before: The version that was approved.
    """
    texts = set(item_passages(before))
    found = suspicions(item, known=texts)
    if item.kind is Kind.TOOL:
        found += _tool_changes(item, before, texts)
    return found


def _tool_changes(item: Item, before: Item, texts: set[str]) -> Iterator[Finding]:
    added = free_text(item.input_schema) - free_text(before.input_schema)
    if added:
        yield Finding(
            rule="new-free-text",
            message="It has a new parameter that takes any text, which can carry data away.",
            passage=shown(", ".join(sorted(added))),
        )
    if READ_ONLY in before.tags and READ_ONLY not in item.tags:
        yield Finding(
            rule="no-longer-read-only",
            message="Its server said that it changes nothing, and says so no longer.",
            passage="readOnlyHint",
        )
    if _request(before) and _request(item) != _request(before):
        yield Finding(
            rule="new-request",
            message="A call of it sends another request, or secrets to another place.",
            passage=shown(f"{_request(before)} → {_request(item)}"),
        )
    for passage in item_passages(item):
        if passage not in texts and any(map(_ORDERS.search, readings(passage))):
            yield Finding(
                rule="new-instructions",
                message="It gives the model new orders.",
                passage=shown(passage),
            )
            return


def _request(item: Item) -> str:
    """The method, the URL and the security of an operation over HTTP; empty for other tools."""
    http = item.extra.get("http")
    if not isinstance(http, Mapping):
        return ""
    security = msgspec.json.encode(http.get("security"), order="deterministic").decode()
    return f"{http.get('method')} {http.get('url')}{'' if security == 'null' else f' {security}'}"


def free_text(schema: Mapping[str, Any] | None, depth: int = MAX_NESTING) -> set[str]:
    """The paths of the parameters that take any text, such as ``options.note``."""
    found: set[str] = set()
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or not depth:
        return found
    for name, inner in properties.items():
        if not isinstance(inner, Mapping):
            continue
        if _takes_any_text(inner):
            found.add(str(name))
        items = inner.get("items")
        if isinstance(items, Mapping) and _takes_any_text(items):
            found.add(f"{name}[]")
        for part in (inner, items):
            found |= {f"{name}.{path}" for path in free_text(part, depth - 1)}
    return found


def _takes_any_text(schema: Mapping[str, Any]) -> bool:
    types = schema.get("type")
    of = types if isinstance(types, list) else [types]
    bounds = ("enum", "const", "format", "pattern", "$ref", "properties")
    return ("string" in of or types is None) and not any(bound in schema for bound in bounds)
