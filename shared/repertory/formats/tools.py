"""A tool as model APIs take it: one that they would refuse makes them refuse the whole request."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from repertory.catalogue.item import Item
from repertory.formats.names import host_name
from repertory.search.answer import Hit
from repertory.text import clean, one_line

ID_LINE = "Tool id: "

_BRANCHES = ("allOf", "anyOf", "oneOf")
_REFUSED = {*_BRANCHES, "enum", "not"}  # at the top of a schema
_PARAMETER = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """What a host needs of a tool.

    Attributes:
        name: See ``host_name``.
        id: The tool's id, on one line.
        text: What its author says of it.
        parameters: The schema of its arguments; see ``object_schema``.
    """

    name: str
    id: str
    text: str
    parameters: dict[str, Any]

    @property
    def description(self) -> str:
        """What its author says, and the id to call it by in the last line."""
        return f"{self.text}\n\n{ID_LINE}{self.id}".lstrip()


def tool_of(hit: Hit, items: Mapping[str, Item]) -> Tool:
    """The tool that was found, from what the hit tells where the whole item is not there."""
    item = items.get(hit.id)
    return Tool(
        name=host_name(hit.id),
        id=one_line(hit.id),
        text=clean((item and item.description) or hit.description),
        parameters=object_schema((item and item.input_schema) or {}),
    )


def object_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of arguments as model APIs allow it: an object, with nothing combined at its top.

    The parameters of all branches are listed instead; those whose names are not allowed are left
    out. The server of the tool checks what it is called with by the schema itself.
    """
    parameters: dict[str, Any] = {}
    required: list[Any] = []
    for part, always in _parts(schema):
        if isinstance(given := part.get("properties"), Mapping):
            parameters |= {name: given[name] for name in given if name not in parameters}
        if always and isinstance(names := part.get("required"), list):
            required += names
    fitting = {name: value for name, value in parameters.items() if _PARAMETER.fullmatch(name)}
    allowed = {key: value for key, value in schema.items() if key not in _REFUSED}
    allowed |= {"type": "object", "properties": fitting}
    allowed.pop("required", None)
    if kept := [name for name in fitting if name in required]:
        allowed["required"] = kept
    return allowed


def _parts(schema: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """A schema and its branches, each with whether it always holds."""
    yield schema, True
    for keyword in _BRANCHES:
        branches = schema.get(keyword)
        for branch in branches if isinstance(branches, list) else ():
            if isinstance(branch, Mapping):
                yield branch, keyword == "allOf"
