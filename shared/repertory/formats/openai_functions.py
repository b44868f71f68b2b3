"""A tool as an OpenAI function, complete or shortened."""

from collections.abc import Iterator
from typing import Any

import msgspec

from repertory.formats.tools import ToolSpec, object_schema
from repertory.text import cut

MAX_FUNCTION_LENGTH = 1_500  # characters of JSON

_PROSE = frozenset({"$comment", "default", "deprecated", "description", "examples", "title"})
_NAMED = frozenset({"$defs", "definitions", "patternProperties", "properties"})
_VALUES = frozenset({"const", "enum"})


def function(tool: ToolSpec) -> dict[str, Any]:
    """The complete function."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,
        "defer_loading": True,
    }


def short_function(tool: ToolSpec) -> dict[str, Any]:
    """Shorten the text and the parameters until the function fits ``MAX_FUNCTION_LENGTH``."""
    for shorter in _shorter(tool):
        found = function(shorter)
        if len(msgspec.json.encode(found).decode()) <= MAX_FUNCTION_LENGTH:
            break
    return found


def _shorter(tool: ToolSpec) -> Iterator[ToolSpec]:
    """Yield ever shorter versions; the last one always fits."""
    yield tool
    bare = _bare(tool.parameters)
    named = {"type": "object", "properties": {name: {} for name in bare["properties"]}}
    shapes = (tool.parameters, bare, named, object_schema({}))
    for text in (cut(tool.text, 400), cut(tool.text, 100)):
        for shape in shapes:
            yield msgspec.structs.replace(tool, text=text, parameters=shape)


def _bare(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """A schema without prose and defaults, keeping parameters that are named like keywords."""
    if isinstance(schema, list):
        return [_bare(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {}
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, dict):
            kept[key] = {name: _bare(one) for name, one in value.items()}
        elif key not in _PROSE:
            kept[key] = value if key in _VALUES else _bare(value)
    return kept
