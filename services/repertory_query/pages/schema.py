"""A JSON Schema as a table of parameters, whatever its author wrote in it."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

DEEPEST = 4  # levels of parameters within parameters
MOST_ROWS = 300
MOST_WORDS = 8  # alternatives of a type that are named

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
        name: With the names of those that it is within: ``options.depth``, ``files[].path``.
        rules: What its type does not say: bounds, a default.
    """

    name: str
    type: str
    required: bool
    description: str
    rules: str


def rows(schema: Mapping[str, Any]) -> list[Row]:
    """The parameters that a schema describes, in its order, each before those within it."""
    return list(islice(_rows(schema, schema, "", DEEPEST), MOST_ROWS))


def _rows(
    root: Mapping[str, Any], schema: Mapping[str, Any], prefix: str, left: int
) -> Iterator[Row]:
    properties = schema.get("properties")
    if not left or not isinstance(properties, Mapping):
        return
    required = schema.get("required")
    for key, value in properties.items():
        part, name = _resolved(root, value), f"{prefix}{key}"
        description = part.get("description")
        yield Row(
            name=name,
            type=_type(root, part),
            required=isinstance(required, list) and key in required,
            description=description if isinstance(description, str) else "",
            rules=", ".join(
                f"{word} {_text(part[key])}" for key, word in _BOUNDS.items() if key in part
            ),
        )
        yield from _rows(root, part, f"{name}.", left - 1)
        yield from _rows(root, _resolved(root, part.get("items")), f"{name}[].", left - 1)


def _type(root: Mapping[str, Any], part: Mapping[str, Any], left: int = 2) -> str:
    """What values there may be, in a few words."""
    values = [part["const"]] if "const" in part else part.get("enum")
    if isinstance(values, list):
        return _either([_text(value) for value in values])
    options = part.get("anyOf") or part.get("oneOf")
    if isinstance(options, list) and left:
        some = options[: MOST_WORDS + 1]
        return _either([_type(root, _resolved(root, one), left - 1) for one in some])
    kind = part.get("type", "object" if "properties" in part else "any")
    if kind == "array" and left:
        of = _type(root, _resolved(root, part.get("items")), left - 1)
        return "array" if of == "any" else f"array of {of}"
    return _either([str(one)[:80] for one in (kind if isinstance(kind, list) else [kind])])


def _resolved(root: Mapping[str, Any], part: object) -> Mapping[str, Any]:
    """A part of a schema, or what it refers to within the same schema; {} for what is none."""
    for _ in range(DEEPEST):
        if not isinstance(part, Mapping):
            return {}
        reference = part.get("$ref")
        if not isinstance(reference, str) or not re.match("#(/|$)", reference):
            return part
        target: object = root
        for step in reference.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            target = target.get(name) if isinstance(target, Mapping) else None
        part = target
    return {}


def _either(options: list[str]) -> str:
    shown = list(dict.fromkeys(options))
    return " | ".join([*shown[:MOST_WORDS], *(["…"] if len(shown) > MOST_WORDS else [])])


def _text(value: object) -> str:
    """A value as JSON, cut short."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 80 else text[:79] + "…"
