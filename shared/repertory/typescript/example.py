"""An example call of a tool, with the required arguments only."""

from collections.abc import Mapping

from repertory.catalogue.item import Item
from repertory.catalogue.schemas import References, as_list
from repertory.typescript.module import Module
from repertory.typescript.syntax import key, quoted

MAX_DEPTH = 4  # levels of nesting
MAX_VALUE_LENGTH = 200  # characters of a value from the schema
_BLANKS = {
    "string": '"…"',
    "integer": "1",
    "number": "1",
    "boolean": "true",
    "null": "null",
    "array": "[]",
}


def example(tool: Item, module: Module) -> str:
    """Write a few lines that import a module as ``tools.ts`` and call one of its tools."""
    given = _value(tool.input_schema, References(tool.input_schema), 0)
    arguments = "" if given == "{}" else given
    return (
        'import { tools } from "./tools.ts";\n\n'
        f"const result = await {module.methods[tool.id]}({arguments});\n"
        "console.log(result);\n"
    )


def _value(schema: object, references: References, depth: int) -> str:
    """Write a value that is valid for most schemas."""
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return "{}"
    known = [schema[word] for word in ("const", "default") if word in schema]
    known += [*as_list(schema.get("enum")), *as_list(schema.get("examples"))]
    if known and len(shown := quoted(known[0])) <= MAX_VALUE_LENGTH:
        return shown
    parts = [one for word in ("anyOf", "oneOf", "allOf") for one in as_list(schema.get(word))]
    if (pointer := references.pointer(schema.get("$ref"))) is not None:
        parts.insert(0, references.at(pointer))
    if parts:
        return _value(parts[0], references, depth + 1)
    kind = schema.get("type")
    simple = _BLANKS.get(str(as_list(kind)[0] if as_list(kind) else kind))
    return simple or _object(schema, references, depth)


def _object(schema: Mapping[str, object], references: References, depth: int) -> str:
    given = schema.get("properties")
    properties = given if isinstance(given, Mapping) else {}
    fields = [
        f"{key(name)}: {_value(properties.get(name), references, depth + 1)}"
        for name in as_list(schema.get("required"))
        if isinstance(name, str)
    ]
    return f"{{ {', '.join(fields)} }}" if fields else "{}"
