"""Where the references of a JSON Schema lead, and which of them types could not follow."""

from collections.abc import Mapping
from urllib.parse import unquote

from repertory.typescript.types import DEEPEST, MOST_MEMBERS

# Where in its root a schema is: the parts of a JSON pointer.
Pointer = tuple[str, ...]

TOO_WIDE = MOST_MEMBERS + 1


class References:
    """The references within a schema.

    Args:
        root: The schema.
    """

    def __init__(self, root: object) -> None:
        self._root = root
        self._parts: dict[Pointer, set[Pointer]] = {}
        self._widths: dict[Pointer, int] = {}

    def pointer(self, reference: object) -> Pointer | None:
        """Where a ``$ref`` leads; None for one that leads to no schema, or out of the root."""
        if not isinstance(reference, str) or reference[:2] not in ("#", "#/"):
            return None
        parts = unquote(reference).split("/")[1:]
        pointer = tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)
        return pointer if isinstance(self.at(pointer), Mapping | bool) else None

    def at(self, pointer: Pointer) -> object:
        """What a pointer leads to; None for nothing."""
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
        """Make a type a part of another, unless that one is a part of it already.

        A type that were a part of itself could never be worked out.
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
        """The most members that the union of a schema's type can have, multiplied out.

        Compilers do multiply an intersection of unions out, and give up at a hundred thousand.

        Returns:
            ``TOO_WIDE`` for more than ``MOST_MEMBERS``, and where it is too deep to tell.
        """
        if not isinstance(schema, Mapping):
            return 1
        if depth > DEEPEST:
            return TOO_WIDE

        def widths(keyword: str) -> list[int]:
            return [self.width(one, depth + 1) for one in listed(schema.get(keyword))]

        factors = [len(listed(schema.get("type"))), len(listed(schema.get("enum")))]
        factors += [sum(widths("anyOf")), sum(widths("oneOf")), *widths("allOf")]
        if (pointer := self.pointer(schema.get("$ref"))) is not None:
            if pointer not in self._widths:
                self._widths[pointer] = TOO_WIDE  # for whoever comes here on the way
                self._widths[pointer] = self.width(self.at(pointer), depth + 1)
            factors.append(self._widths[pointer])
        product = 1
        for factor in factors:
            product = min(product * max(factor, 1), TOO_WIDE)
        return product


def listed(value: object) -> list[object]:
    """A value that is a list; an empty one for any other."""
    return value if isinstance(value, list) else []
