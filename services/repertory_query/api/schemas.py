"""The schemas of the OpenAPI document, made precise for client generators."""

import inspect
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec.inspect import StructType, multi_type_info

Schema = dict[str, Any]

REF = "#/components/schemas/{name}"

_OF_ANY = {"default", "description"}  # the keys of a schema that allows any JSON


def components_of(taken: Iterable[Any], returned: Iterable[Any]) -> dict[str, Schema]:
    """The schemas of all types that the operations take or return, by name.

    All fields of returned types are required, unless the type omits fields with default values.

    Args:
        taken: The types of requests.
        returned: The types of answers.
    """
    taken, returned = list(taken), list(returned)
    _, found = msgspec.json.schema_components([*taken, *returned], ref_template=REF)
    in_requests, in_answers = set(_structs(taken)), set(_structs(returned))
    for kind in in_requests | in_answers:
        if schema := found.get(kind.__name__):  # types with equal names get longer ones
            _document(kind, schema)
            if kind not in in_requests and not kind.__struct_config__.omit_defaults:
                _complete(schema)
    return {name: _explicit(schema) for name, schema in found.items()}


def with_names(schema: Schema, components: dict[str, Schema]) -> Schema:
    """The same schema, with references to its titled parts, which become components."""
    if "anyOf" in schema:
        schema = {**schema, "anyOf": [with_names(one, components) for one in schema["anyOf"]]}
    if name := schema.get("title"):
        components[name] = _explicit(schema)
        return {"$ref": REF.format(name=name)}
    explicit: Schema = _explicit(schema)
    return explicit


def _structs(kinds: Iterable[Any]) -> Iterator[type[msgspec.Struct]]:
    """The structs among some types, and all structs within them."""
    seen: set[int] = set()
    waiting: list[Any] = list(multi_type_info(kinds))  # they describe types, and are structs
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting += node
        # The descriptions are msgspec's own structs.
        elif isinstance(node, msgspec.Struct) and id(node) not in seen:
            seen.add(id(node))
            if isinstance(node, StructType):
                yield node.cls
            waiting += (getattr(node, name) for name in node.__struct_fields__)


def _document(kind: type[msgspec.Struct], schema: Schema) -> None:
    """Move the descriptions of attributes from the docstring to the fields."""
    text, _, attributes = inspect.cleandoc(kind.__doc__ or "").partition("\n\nAttributes:\n")
    schema["description"] = text
    encoded = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    for names, description in _attributes(attributes):
        for name in names.split(", "):
            field = schema["properties"].get(encoded.get(name, name))
            if field is not None:
                field.setdefault("description", description)


def _attributes(section: str) -> Iterator[tuple[str, str]]:
    """The names and the description of each entry; a more indented line continues the entry."""
    entry = ""
    for line in [*section.splitlines(), ""]:
        if line.startswith(" " * 8):
            entry += f" {line.strip()}"
            continue
        if entry:
            names, _, description = entry.partition(": ")
            yield names, description
        entry = line.strip()


def _complete(schema: Schema) -> None:
    """Require every field, because answers have all fields, except fields that allow any JSON."""
    fields = schema["properties"]
    schema["required"] = [name for name, field in fields.items() if field.keys() - _OF_ANY]
    for field in fields.values():
        field.pop("default", None)


def _explicit(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """The same schema, with facts that some client generators do not infer.

    An object without described fields may have any fields. An enumeration of strings is a string.
    A nullable value has the description of its other type.
    """
    if isinstance(schema, list):
        return [_explicit(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _explicit(part) for name, part in schema.items()}
    if found.get("type") == "object" and not {"properties", "additionalProperties"} & {*found}:
        found["additionalProperties"] = True
    if isinstance(values := found.get("enum"), list) and all(
        isinstance(one, str) for one in values
    ):
        found["type"] = "string"
    match found.get("anyOf"):
        case [{"description": description} as value, {"type": "null"}]:
            del value["description"]
            found = {"description": description} | found
    if "default" in found and found["default"] is None:
        del found["default"]
    return found
