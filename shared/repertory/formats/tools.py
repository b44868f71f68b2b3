"""A tool in the form that model APIs accept; one invalid tool makes them reject the request."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from repertory.catalogue.item import KEY_BYTES, Item, item_key
from repertory.search.answer import Hit
from repertory.text import clean, one_line

ID_LINE = "Tool id: "
MAX_NAME_LENGTH = 64

_BRANCHES = ("allOf", "anyOf", "oneOf")
_REFUSED = {*_BRANCHES, "enum", "not"}  # at the top of a schema
_DIGITS = 10  # of the digest in a name: 40 bits; only names with the same start can collide
_NAME = re.compile(rf"[a-zA-Z0-9_-]{{1,{MAX_NAME_LENGTH}}}")
_PARAMETER = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's declaration to a host.

    Attributes:
        name: See ``host_name``.
        id: The tool's id, on one line.
        text: The author's description.
        parameters: The schema of its arguments; see ``object_schema``.
    """

    name: str
    id: str
    text: str
    parameters: dict[str, Any]

    @property
    def description(self) -> str:
        """The author's description; the last line has the id to call it by."""
        return f"{self.text}\n\n{ID_LINE}{self.id}".lstrip()


def tool_spec(hit: Hit, items: Mapping[str, Item]) -> ToolSpec:
    """Describe a tool by its item, or by the hit alone if the item is unavailable."""
    item = items.get(hit.id)
    return ToolSpec(
        name=host_name(hit.id),
        id=one_line(hit.id),
        text=clean((item and item.description) or hit.description),
        parameters=object_schema((item and item.input_schema) or {}),
    )


def host_name(item_id: str) -> str:
    """Return a tool name that every host accepts, always the same for an id.

    Returns:
        The id if it is 1 to 64 letters, digits, underscores and hyphens, else its valid part and a
        digest.
    """
    if _NAME.fullmatch(item_id):
        return item_id
    start = re.sub(r"[^a-zA-Z0-9_-]+", "_", item_id)[: MAX_NAME_LENGTH - _DIGITS - 1]
    digits = f"{item_key(item_id):0{2 * KEY_BYTES}x}"[:_DIGITS]
    return f"{start}_{digits}"


def object_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a schema to the form that model APIs accept: an object without top-level branches.

    The parameters of all branches are merged; those with invalid names are dropped. Calls are
    still validated against the original schema.
    """
    parameters, required = merged(schema)
    fitting = {name: value for name, value in parameters.items() if _PARAMETER.fullmatch(name)}
    allowed = {key: value for key, value in schema.items() if key not in _REFUSED}
    allowed |= {"type": "object", "properties": fitting}
    allowed.pop("required", None)
    if kept := [name for name in required if name in fitting]:
        allowed["required"] = kept
    return allowed


def merged(schema: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The parameters of a schema and its branches, by name, and which of them are required."""
    parameters: dict[str, Any] = {}
    required: list[Any] = []
    for part, always in _parts(schema):
        if isinstance(given := part.get("properties"), Mapping):
            parameters |= {name: given[name] for name in given if name not in parameters}
        if always and isinstance(names := part.get("required"), list):
            required += names
    return parameters, [name for name in parameters if name in required]


def _parts(schema: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """Yield a schema and its branches, each with whether it always applies."""
    yield schema, True
    for keyword in _BRANCHES:
        branches = schema.get(keyword)
        for branch in branches if isinstance(branches, list) else ():
            if isinstance(branch, Mapping):
                yield branch, keyword == "allOf"
