"""An example of a call, as a model would begin one: what must be given, and nothing else."""

from collections.abc import Mapping

from repertory.catalogue.item import Item
from repertory.typescript.module import Module
from repertory.typescript.references import References, listed
from repertory.typescript.words import key, quoted

DEEPEST = 4  # levels of nesting
LONGEST = 200  # characters of a value that the schema gives
_BLANKS = {
    "string": '"…"',
    "integer": "1",
    "number": "1",
    "boolean": "true",
    "null": "null",
    "array": "[]",
}


def example(tool: Item, module: Module) -> str:
    """A few lines that call a tool of a module, which is beside them as ``tools.ts``."""
    given = _value(tool.input_schema, References(tool.input_schema), 0)
    arguments = "" if given == "{}" else given
    return (
        'import { tools } from "./tools.ts";\n\n'
        f"const result = await {module.methods[tool.id]}({arguments});\n"
        "console.log(result);\n"
    )


def _value(schema: object, references: References, depth: int) -> str:
    """An expression for a value that a simple schema allows."""
    if not isinstance(schema, Mapping) or depth > DEEPEST:
        return "{}"
    known = [schema[word] for word in ("const", "default") if word in schema]
    known += [*listed(schema.get("enum")), *listed(schema.get("examples"))]
    if known and len(shown := quoted(known[0])) <= LONGEST:
        return shown
    parts = [one for word in ("anyOf", "oneOf", "allOf") for one in listed(schema.get(word))]
    if (pointer := references.pointer(schema.get("$ref"))) is not None:
        parts.insert(0, references.at(pointer))
    if parts:
        return _value(parts[0], references, depth + 1)
    kind = schema.get("type")
    simple = _BLANKS.get(str(listed(kind)[0] if listed(kind) else kind))
    return simple or _object(schema, references, depth)


def _object(schema: Mapping[str, object], references: References, depth: int) -> str:
    given = schema.get("properties")
    properties = given if isinstance(given, Mapping) else {}
    fields = [
        f"{key(name)}: {_value(properties.get(name), references, depth + 1)}"
        for name in listed(schema.get("required"))
        if isinstance(name, str)
    ]
    return f"{{ {', '.join(fields)} }}" if fields else "{}"
