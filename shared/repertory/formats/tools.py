"""Tools in the form that model APIs accept; a single invalid tool fails the whole request."""

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from repertory.catalogue.item import KEY_BYTES, Item, Kind, item_key
from repertory.catalogue.schemas import References, as_list
from repertory.errors import StoreError
from repertory.search.answer import Answer, Hit
from repertory.text import clean, cut, one_line

ID_LINE = "Tool id: "
MAX_NAME_LENGTH = 64
MAX_FURTHER_LENGTH = 200  # characters

_BRANCHES = ("allOf", "anyOf", "oneOf")
_REFUSED = {*_BRANCHES, "$ref", "enum", "not"}  # at the top of a schema
_DIGITS = 10  # of the digest in a name: 40 bits; only names with the same start can collide
_NAME = re.compile(rf"[a-zA-Z0-9_-]{{1,{MAX_NAME_LENGTH}}}")
_PARAMETER = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's declaration to a host.

    Attributes:
        name: See ``host_name``.
        id: The tool's id, on one line.
        text: The author's description.
        further: A line with the parameters whose names model APIs refuse; empty if none.
        parameters: The schema of its arguments; see ``object_schema``.
    """

    name: str
    id: str
    text: str
    further: str = ""
    parameters: dict[str, Any]

    @property
    def description(self) -> str:
        """The author's description, followed by further parameters and the id to call it by."""
        return "\n\n".join(filter(None, (self.text, self.further, f"{ID_LINE}{self.id}")))


def tool_spec(hit: Hit, items: Mapping[str, Item]) -> ToolSpec:
    """Describe a tool by its item, or by the hit alone if the item is unavailable."""
    item = items.get(hit.id)
    schema = (item and item.input_schema) or {}
    return ToolSpec(
        name=host_name(hit.id),
        id=one_line(hit.id),
        text=clean((item and item.description) or hit.description),
        further=_further(schema),
        parameters=object_schema(schema),
    )


def whole_tools(
    answers: Iterable[Answer], items: Callable[[Sequence[str]], Mapping[str, Item]]
) -> Mapping[str, Item]:
    """The tools among the hits, by id; empty while the store is unavailable.

    ``items`` is ``Backend.items``.
    """
    hits = [hit for answer in answers for hit in answer.hits if hit.kind is Kind.TOOL]
    if hits:
        with suppress(StoreError):
            return items([*dict.fromkeys(hit.id for hit in hits)])
    return {}


def host_name(item_id: str) -> str:
    """Return a tool name that every host accepts; the same id always gives the same name.

    Returns:
        The id if it consists of 1 to 64 letters, digits, underscores and hyphens, else its start
        with other characters replaced, and a digest.
    """
    if _NAME.fullmatch(item_id):
        return item_id
    start = re.sub(r"[^a-zA-Z0-9_-]+", "_", item_id)[: MAX_NAME_LENGTH - _DIGITS - 1]
    digits = f"{item_key(item_id):0{2 * KEY_BYTES}x}"[:_DIGITS]
    return f"{start}_{digits}"


def object_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a schema to the form that model APIs accept: an object without top-level branches.

    The parameters of all branches and references are merged. Those with invalid names are dropped,
    but a call may still give them. Calls are validated against the original schema.
    """
    parameters, required = merged(schema)
    fitting = {name: value for name, value in parameters.items() if _PARAMETER.fullmatch(name)}
    refused = _REFUSED if len(fitting) == len(parameters) else _REFUSED | {"additionalProperties"}
    allowed = {key: value for key, value in schema.items() if key not in refused}
    allowed |= {"type": "object", "properties": fitting}
    allowed.pop("required", None)
    if kept := [name for name in required if name in fitting]:
        allowed["required"] = kept
    return allowed


def _further(schema: Mapping[str, Any]) -> str:
    """A line with the parameters that ``object_schema`` drops, since models can still give them."""
    parameters, required = merged(schema)
    needed = set(required)
    names = [
        json.dumps(name, ensure_ascii=False) + (" (required)" if name in needed else "")
        for name in parameters
        if not _PARAMETER.fullmatch(name)
    ]
    line = one_line(f"It also takes {', '.join(names)}.")
    return cut(line, MAX_FURTHER_LENGTH) if names else ""


def merged(schema: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The parameters of a schema, by name, and the names of the required ones.

    Parameters of its branches and of referenced schemas are included.
    """
    parameters: dict[str, Any] = {}
    required: set[str] = set()
    for part, always in _parts(schema):
        if isinstance(given := part.get("properties"), Mapping):
            parameters |= {name: given[name] for name in given if name not in parameters}
        if always:
            required |= {name for name in as_list(part.get("required")) if isinstance(name, str)}
    return parameters, [name for name in parameters if name in required]


def _parts(schema: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """Yield a schema, its branches and references, each with whether it always applies."""
    references = References(schema)
    waiting: deque[tuple[object, bool]] = deque([(schema, True)])
    seen: set[tuple[int, bool]] = set()
    while waiting:
        part, always = waiting.popleft()
        if not isinstance(part, Mapping) or (id(part), always) in seen:
            continue
        seen.add((id(part), always))
        yield part, always
        if (pointer := references.pointer(part.get("$ref"))) is not None:
            waiting.append((references.at(pointer), always))
        for keyword in _BRANCHES:
            is_certain = always and keyword == "allOf"
            waiting += [(branch, is_certain) for branch in as_list(part.get(keyword))]
