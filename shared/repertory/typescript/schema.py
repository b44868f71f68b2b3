"""The TypeScript types of a JSON Schema.

A type expresses what TypeScript can express simply. Everything else, and everything beyond the size
limits, is ``unknown``. Bounds, patterns and conditions are checked when the tool is called.
"""

import textwrap
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from repertory.catalogue.schemas import Pointer, as_list, description_of
from repertory.text import cut
from repertory.typescript.references import TOO_WIDE, TypeReferences
from repertory.typescript.syntax import IdentifierPool, comment, key, pascal
from repertory.typescript.types import (
    ANY_OBJECT,
    MAX_DEPTH,
    MAX_TUPLE_LENGTH,
    NEVER,
    UNKNOWN,
    Type,
    intersection,
    literal,
    operand,
    text,
    union,
)

MAX_DECLARED = 500  # types for one schema
MAX_TYPES_LENGTH = 500_000  # characters of a schema's types; nested types count again
MAX_DESCRIPTION_LENGTH = 500  # characters of a property's description

Json = Mapping[str, object]

_SIMPLE = {
    "string": "string",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "null": "null",
}


def declarations(name: str, schema: object, about: str, names: IdentifierPool) -> str:
    """Declare the type of a schema and the types of the schemas it refers to.

    Plain objects become interfaces, all other types become aliases.

    Args:
        name: The name of the type, already taken from ``names``.
        schema: The unvalidated schema; None for any object.
        about: The text of the comment before it.
        names: Provides names for the other types.
    """
    return comment(about) + _Writer(name, schema, names).written()


class _Owner(NamedTuple):
    """The declared type that contains a schema directly, without a property between."""

    pointer: Pointer
    in_tuple: bool = False


class _Writer:
    """Writes the types of one schema.

    The target of a ``$ref`` becomes a named type, so types can be recursive and a schema that is
    referenced a thousand times is written once.
    """

    def __init__(self, name: str, root: object, names: IdentifierPool) -> None:
        self._names = names
        self._references = TypeReferences(root)
        self._declared: dict[Pointer, str] = {(): name}
        self._waiting: deque[Pointer] = deque([()])  # declared but not yet written
        self._left = MAX_TYPES_LENGTH

    def written(self) -> str:
        types: list[str] = []
        while self._waiting:
            pointer = self._waiting.popleft()
            name, schema = self._declared[pointer], self._references.at(pointer)
            body = self._type(schema, _Owner(pointer), 0)
            if body == UNKNOWN and not pointer:  # arguments and results are objects
                body = ANY_OBJECT
            if len(body) == 1 and (body[0][0], body[0][-1]) == ("{", "}"):
                types.append(f"export interface {name} {body[0]}\n")
            else:
                types.append(f"export type {name} = {text(body)};\n")
        return "\n".join(types)

    def _type(self, schema: object, owner: _Owner | None, depth: int) -> Type:
        """The type of a schema, nested ``depth`` levels in a declared type.

        There is no owner below a property; see ``_Owner``.
        """
        if schema is False:
            return NEVER
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH or self._left < 0:
            return UNKNOWN
        if "const" in schema:
            found = literal(schema["const"])
        elif "enum" in schema:
            found = union(map(literal, as_list(schema["enum"])))
            if found == UNKNOWN:  # there are too many
                found = self._own(schema, owner, depth)
        else:
            found = self._composed(schema, owner, depth)
        if schema.get("nullable") is True:
            found = union([found, ("null",)])
        self._left -= sum(map(len, found))
        return found

    def _composed(self, schema: Json, owner: _Owner | None, depth: int) -> Type:
        """Combine a schema's own type with those of its reference and its branches."""

        def types(keyword: str) -> list[Type]:
            return [self._type(one, owner, depth + 1) for one in as_list(schema.get(keyword))]

        parts = [self._reference(schema.get("$ref"), owner), *types("allOf")]
        parts += [union(choice) for choice in (types("anyOf"), types("oneOf")) if choice]
        parts = [part for part in parts if part != UNKNOWN]
        if not parts or _is_of_an_object(schema) or _is_of_an_array(schema):
            parts.insert(0, self._own(schema, owner, depth))
        if len(parts) > 1 and self._references.width(schema) == TOO_WIDE:
            return UNKNOWN
        return intersection(parts)

    def _reference(self, reference: object, owner: _Owner | None) -> Type:
        """The name of the referenced type; ``unknown`` if it cannot be declared."""
        pointer = self._references.pointer(reference)
        if pointer is None:
            return UNKNOWN
        if pointer not in self._declared and len(self._declared) == MAX_DECLARED:
            return UNKNOWN
        if owner and not self._references.join(owner.pointer, pointer):
            return UNKNOWN
        if pointer not in self._declared:
            self._declared[pointer] = self._names.take(self._declared[()] + pascal(pointer[-1]))
            self._waiting.append(pointer)
        return (self._declared[pointer],)

    def _own(self, schema: Json, owner: _Owner | None, depth: int) -> Type:
        """The type of a schema without its reference and branches."""
        named = schema.get("type")
        kinds = [named] if isinstance(named, str) else as_list(named)
        if not kinds:
            kinds = ["object"] if _is_of_an_object(schema) else []
            kinds += ["array"] if _is_of_an_array(schema) else []
        return union(self._of_kind(kind, schema, owner, depth) for kind in kinds) or UNKNOWN

    def _of_kind(self, kind: object, schema: Json, owner: _Owner | None, depth: int) -> Type:
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, owner, depth)
        return (_SIMPLE.get(str(kind), "unknown"),)

    def _object(self, schema: Json, depth: int) -> Type:
        properties = _mapping(schema.get("properties"))
        listed = as_list(schema.get("required"))
        required = dict.fromkeys(one for one in listed if isinstance(one, str))
        lines = []
        for name in dict.fromkeys([*properties, *required]):
            inner = properties.get(name, True)  # a required property need not be described
            about = comment(cut(description_of(inner), MAX_DESCRIPTION_LENGTH))
            mark = "" if name in required else "?"
            lines.append(f"{about}{key(name)}{mark}: {text(self._type(inner, None, depth + 1))};")
        others = [*_mapping(schema.get("patternProperties")).values()]
        if (additional := schema.get("additionalProperties", False)) is not False:
            others.append(additional)
        if lines:
            if others:  # an index signature of their type would apply to the properties above, too
                lines.append("[key: string]: unknown;")
            return ("{\n" + textwrap.indent("\n".join(lines), "  ") + "\n}",)
        if others:
            value = union(self._type(one, None, depth + 1) for one in others)
        else:
            value = NEVER if schema.get("additionalProperties") is False else UNKNOWN
        return (f"{{ [key: string]: {text(value)} }}",)

    def _array(self, schema: Json, owner: _Owner | None, depth: int) -> Type:
        items, places = schema.get("items", True), as_list(schema.get("prefixItems"))
        if older := as_list(items):  # older drafts
            items, places = schema.get("additionalItems", True), older
        if len(places) > MAX_TUPLE_LENGTH:
            items, places = True, []
        most, least = schema.get("maxItems"), schema.get("minItems")
        if places and isinstance(most, int) and most <= len(places):
            items = False
        # Compilers resolve an array's element type lazily, but not within a tuple.
        within = owner._replace(in_tuple=True) if owner and (places or owner.in_tuple) else None
        rest = self._type(items, within, depth + 1)
        if not places:
            return (f"{operand(rest)}[]",)
        sure = least if isinstance(least, int) else 0
        elements = [
            operand(self._type(one, within, depth + 1)) + ("" if number < sure else "?")
            for number, one in enumerate(places)
        ]
        if rest:
            elements.append(f"...{operand(rest)}[]")
        return (f"[{', '.join(elements)}]",)


def _is_of_an_object(schema: Json) -> bool:
    words = ("properties", "patternProperties", "required", "additionalProperties")
    return any(schema.get(word) for word in words)


def _is_of_an_array(schema: Json) -> bool:
    return "items" in schema or "prefixItems" in schema


def _mapping(value: object) -> Json:
    return value if isinstance(value, Mapping) else {}
