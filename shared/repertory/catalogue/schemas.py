"""Parts of the JSON Schemas of tools: references within a schema, lists and descriptions."""

from collections.abc import Mapping
from urllib.parse import unquote

# The parts of a JSON pointer.
Pointer = tuple[str, ...]


class References:
    """The references within the schema ``root``."""

    def __init__(self, root: object) -> None:
        self._root = root

    def pointer(self, reference: object) -> Pointer | None:
        """The target of a ``$ref``; None if it is not a schema within the root."""
        if not isinstance(reference, str) or reference[:2] not in ("#", "#/"):
            return None
        parts = unquote(reference).split("/")[1:]
        pointer = tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)
        return pointer if isinstance(self.at(pointer), Mapping | bool) else None

    def at(self, pointer: Pointer) -> object:
        """The value at a pointer; None if it is missing."""
        found = self._root
        for part in pointer:
            if isinstance(found, Mapping):
                found = found.get(part)
            elif isinstance(found, list) and part.isdecimal() and int(part[:9]) < len(found):
                found = found[int(part[:9])]
            else:
                return None
        return found


def as_list(value: object) -> list[object]:
    """The value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


def description_of(schema: object) -> str:
    """The description of a part of a schema, or of its only described alternative; else empty.

    Pydantic writes ``Annotated[str, Field(description="A name")] | None`` in the second way.
    """
    if not isinstance(schema, Mapping):
        return ""
    if isinstance(own := schema.get("description"), str):
        return own
    options = as_list(schema.get("anyOf")) or as_list(schema.get("oneOf"))
    described = (one.get("description") for one in options if isinstance(one, Mapping))
    found = [one for one in described if isinstance(one, str)]
    return found[0] if len(found) == 1 else ""
