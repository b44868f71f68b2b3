"""References within a JSON Schema, and limits on the types that follow them."""

from collections.abc import Mapping
from urllib.parse import unquote

from repertory.typescript.types import MAX_DEPTH, MAX_MEMBERS

# The parts of a JSON pointer.
Pointer = tuple[str, ...]

TOO_WIDE = MAX_MEMBERS + 1


class References:
    """The references within the schema ``root``."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._parts: dict[Pointer, set[Pointer]] = {}
        self._widths: dict[Pointer, int] = {}

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

    def join(self, whole: Pointer, part: Pointer) -> bool:
        """Record that a type contains another; False if that would make a type contain itself.

        Compilers cannot resolve such a type.
        """
        found, waiting = {part}, [part]
        while waiting:
            new = self._parts.get(waiting.pop(), set()) - found
            found |= new
            waiting += new
        if whole in found:
            return False
        self._parts.setdefault(whole, set()).add(part)
        return True

    def width(self, schema: object, depth: int = 0) -> int:
        """The maximum number of members of a schema's type, with intersections expanded.

        Compilers expand an intersection of unions and fail at 100,000 members.

        Returns:
            At most ``TOO_WIDE``, which stands for more than ``MAX_MEMBERS`` or unknown.
        """
        if not isinstance(schema, Mapping):
            return 1
        if depth > MAX_DEPTH:
            return TOO_WIDE

        def widths(keyword: str) -> list[int]:
            return [self.width(one, depth + 1) for one in as_list(schema.get(keyword))]

        factors = [len(as_list(schema.get("type"))), len(as_list(schema.get("enum")))]
        factors += [sum(widths("anyOf")), sum(widths("oneOf")), *widths("allOf")]
        if (pointer := self.pointer(schema.get("$ref"))) is not None:
            if pointer not in self._widths:
                self._widths[pointer] = TOO_WIDE  # if the reference leads back here
                self._widths[pointer] = self.width(self.at(pointer), depth + 1)
            factors.append(self._widths[pointer])
        product = 1
        for factor in factors:
            product = min(product * max(factor, 1), TOO_WIDE)
        return product


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
