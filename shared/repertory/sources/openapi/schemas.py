"""Converts schemas of an OpenAPI document to JSON Schema 2020-12, self-contained and bounded."""

import re
from collections import deque
from collections.abc import Mapping
from typing import Any

from repertory.sources.openapi.document import BrokenError, Document
from repertory.text import cut

MAX_LENGTH = 32_000  # characters of names and texts of one schema
MAX_TOTAL = 64_000_000  # the same of all schemas of a document
MAX_DEPTH = 24  # levels of nesting, without following references
MAX_DESCRIPTION_LENGTH = 1_000  # characters of the description of one parameter

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_PLAIN = frozenset(
    (
        *("type", "format", "title", "default", "const", "multipleOf", "pattern", "required"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"),
        *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "enum"),
        *("contentEncoding", "contentMediaType", "dependentRequired", "deprecated"),
    )
)
_BOUNDS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
_ONE = frozenset(("items", "additionalProperties", "propertyNames", "contains", "not"))
_SEVERAL = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_NAMED = frozenset(("properties", "patternProperties", "dependentSchemas"))


class Schemas:
    """Converts schemas of one document.

    Args:
        document: The document.
        hidden: The mark of properties to leave out: ``readOnly`` in requests, ``writeOnly`` in
            responses.

    Attributes:
        left: The remaining budget of characters for all schemas.
    """

    def __init__(self, document: Document, hidden: str) -> None:
        self.document = document
        self.hidden = hidden
        self.left = MAX_TOTAL

    def builder(self, most: int = MAX_LENGTH) -> "Builder":
        """A builder for one schema with at most ``most`` characters."""
        return Builder(self, min(most, self.left))


class Builder:
    """Converts parts of one schema, and collects the schemas that they refer to.

    Attributes:
        is_cut: Whether it was too large or too deeply nested. The cut parts accept any value.
        broken: A description of the first broken reference; empty without one.
    """

    def __init__(self, schemas: Schemas, limit: int) -> None:
        self._schemas = schemas
        self._left = limit
        self._names: dict[str, str] = {}  # by reference
        self._waiting: deque[str] = deque()
        self.is_cut = False
        self.broken = ""

    def convert(self, schema: object, depth: int = 0) -> Any:  # noqa: ANN401 - an object or a bool
        """Convert a schema. An invalid one accepts any value."""
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            return {}
        if depth > MAX_DEPTH or self._left <= 0:
            self.is_cut = True
            return {}
        if isinstance(reference := schema.get("$ref"), str):
            return self._reference(reference, schema)
        converted = ((word, self._keyword(word, value, depth)) for word, value in schema.items())
        found = {word: value for word, value in converted if value is not None}
        self._without_hidden(schema, found)
        return _modern(schema, found)

    def definitions(self) -> dict[str, Any]:
        """All schemas that the converted ones refer to, directly or not, by name in ``$defs``."""
        found: dict[str, Any] = {}
        while self._waiting:
            reference = self._waiting.popleft()
            try:
                found[self._names[reference]] = self.convert(self._schemas.document.at(reference))
            except BrokenError as error:
                self.broken = self.broken or str(error)
                found[self._names[reference]] = {}
        return found

    def _keyword(self, keyword: str, value: object, depth: int) -> Any:  # noqa: ANN401 - any JSON
        """The converted value of a keyword; None to leave it out."""
        if keyword in _PLAIN or keyword == "description":
            found = _plain(keyword, value)
            self._use(len(keyword) + _length(found))
            return found
        if keyword in _ONE and isinstance(value, Mapping | bool):
            return self.convert(value, depth + 1)
        if keyword in _SEVERAL and isinstance(value, list) and value:
            return [self.convert(one, depth + 1) for one in value]
        if keyword in _NAMED and isinstance(value, Mapping):
            return self._named(value, depth)
        return None

    def _reference(self, reference: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        if reference not in self._names:
            start = _NOT_IN_NAMES.sub("_", reference.rpartition("/")[2])[:80] or "schema"
            taken, name = set(self._names.values()), start
            count = len(taken)
            while name in taken:
                name, count = f"{start}_{count}", count + 1
            self._names[reference] = name
            self._waiting.append(reference)
        name = self._names[reference]
        self._use(len(name) + 20)
        found = {"$ref": f"#/$defs/{name}"}
        if isinstance(about := schema.get("description"), str):
            found["description"] = cut(about.strip(), MAX_DESCRIPTION_LENGTH)
            self._use(len(found["description"]))
        return found

    def _named(self, schemas: Mapping[str, Any], depth: int) -> dict[str, Any]:
        found = {}
        for name, inner in schemas.items():
            if isinstance(inner, Mapping) and inner.get(self._schemas.hidden) is True:
                continue
            self._use(len(name) + 5)
            found[name] = self.convert(inner, depth + 1)
        return found

    def _without_hidden(self, schema: Mapping[str, Any], found: dict[str, Any]) -> None:
        """Remove properties that were left out from ``required``."""
        required, properties = found.get("required"), schema.get("properties")
        if isinstance(required, list) and isinstance(properties, Mapping):
            shown = found.get("properties", {})
            kept = [name for name in required if name in shown or name not in properties]
            found["required"] = kept
            if not kept:
                del found["required"]

    def _use(self, length: int) -> None:
        self._left -= length
        self._schemas.left -= length


def _plain(keyword: str, value: object) -> object:
    """The value of a keyword without schemas; None if it is invalid."""
    if keyword in _BOUNDS:
        return value if isinstance(value, int | float) else None  # integers over 64 bits are text
    if keyword == "required":
        names = value if isinstance(value, list) else []
        return list(dict.fromkeys(name for name in names if isinstance(name, str))) or None
    if keyword == "description":
        return cut(value.strip(), MAX_DESCRIPTION_LENGTH) if isinstance(value, str) else None
    return value


def _modern(schema: Mapping[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Replace keywords of OpenAPI 3.0: ``nullable``, and booleans for exclusive bounds."""
    for bound, exclusive in (
        ("minimum", "exclusiveMinimum"),
        ("maximum", "exclusiveMaximum"),
    ):
        if isinstance(found.get(exclusive), bool):
            is_exclusive = found.pop(exclusive)
            if is_exclusive and bound in found:
                found[exclusive] = found.pop(bound)
    if schema.get("nullable") is not True:
        return found
    if isinstance(found.get("enum"), list) and None not in found["enum"]:
        found["enum"] = [*found["enum"], None]
    if isinstance(kind := found.get("type"), str):
        found["type"] = [kind, "null"]
    elif "type" not in found and "enum" not in found and found:
        remarks = ("description", "title")
        about: dict[str, Any] = {key: found.pop(key) for key in remarks if key in found}
        return {**about, "anyOf": [found, {"type": "null"}]}
    return found


def _length(value: object) -> int:
    """The approximate length as JSON of a value of bounded depth."""
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, Mapping):
        return sum(len(str(key)) + _length(inner) + 2 for key, inner in value.items())
    if isinstance(value, list):
        return sum(_length(inner) + 2 for inner in value)
    return 5
