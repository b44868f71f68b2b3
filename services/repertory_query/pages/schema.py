"""A JSON Schema as a table of parameters; invalid schemas are accepted, too.

A table also shows bounds and defaults, which TypeScript types cannot express.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from repertory.catalogue.schemas import References, as_list, description_of

MAX_DEPTH = 4  # levels of nested parameters
MAX_ROWS = 300
MAX_ALTERNATIVES = 8  # shown for a type

_BOUNDS = {
    "minimum": "≥",
    "maximum": "≤",
    "minLength": "length ≥",
    "maxLength": "length ≤",
    "pattern": "like",
    "format": "format",
    "default": "default",
}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One parameter.

    Attributes:
        name: Its full path: ``options.depth``, ``files[].path``.
        rules: Its bounds and default.
    """

    name: str
    type: str
    required: bool
    description: str
    rules: str


def rows(schema: Mapping[str, Any]) -> list[Row]:
    """The parameters of a schema in order, each followed by the ones nested in it."""
    return list(islice(_rows(References(schema), schema, "", MAX_DEPTH), MAX_ROWS))


def _rows(
    references: References, schema: Mapping[str, Any], prefix: str, left: int
) -> Iterator[Row]:
    for row, part in parameters(references, schema, prefix) if left else ():
        yield row
        yield from _rows(references, part, f"{row.name}.", left - 1)
        items = _resolved(references, part.get("items"))
        yield from _rows(references, items, f"{row.name}[].", left - 1)


def parameters(
    references: References, schema: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[Row, Mapping[str, Any]]]:
    """The top-level parameters of a schema, each with its own schema."""
    properties = schema.get("properties")
    required = as_list(schema.get("required"))
    for name, value in properties.items() if isinstance(properties, Mapping) else ():
        part = _resolved(references, value)
        row = Row(
            name=f"{prefix}{name}",
            type=_type(references, part),
            required=name in required,
            description=description_of(part),
            rules=_rules(part),
        )
        yield row, part


def _rules(part: Mapping[str, Any]) -> str:
    """The bounds and the default of a part of a schema, in a few words."""
    return ", ".join(f"{word} {_text(part[key])}" for key, word in _BOUNDS.items() if key in part)


def _type(references: References, part: Mapping[str, Any], left: int = 2) -> str:
    """The allowed values of a part of a schema, in a few words."""
    values = [part["const"]] if "const" in part else part.get("enum")
    if isinstance(values, list):
        return _either([_text(value) for value in values])
    options = part.get("anyOf") or part.get("oneOf")
    if isinstance(options, list) and left:
        some = options[: MAX_ALTERNATIVES + 1]
        return _either([_type(references, _resolved(references, one), left - 1) for one in some])
    kind = part.get("type", "object" if "properties" in part else "any")
    if kind == "array" and left:
        of = _type(references, _resolved(references, part.get("items")), left - 1)
        return "array" if of == "any" else f"array of {of}"
    return _either([str(one)[:80] for one in (kind if isinstance(kind, list) else [kind])])


def _resolved(references: References, part: object) -> Mapping[str, Any]:
    """Follow the references of a subschema; {} if they lead to no object."""
    for _ in range(MAX_DEPTH):
        if not isinstance(part, Mapping):
            return {}
        pointer = references.pointer(part.get("$ref"))
        if pointer is None:
            return part
        part = references.at(pointer)
    return {}


def _either(options: list[str]) -> str:
    shown = list(dict.fromkeys(options))
    more = ["…"] if len(shown) > MAX_ALTERNATIVES else []
    return " | ".join([*shown[:MAX_ALTERNATIVES], *more])


def _text(value: object) -> str:
    """A value as JSON, truncated."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 80 else text[:79] + "…"
