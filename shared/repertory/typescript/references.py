"""Limits on the types that follow references."""

from collections.abc import Mapping

from repertory.catalogue.schemas import Pointer, References, as_list
from repertory.typescript.types import MAX_DEPTH, MAX_MEMBERS

TOO_WIDE = MAX_MEMBERS + 1


class TypeReferences(References):
    """The references within the schema ``root``, as types."""

    def __init__(self, root: object) -> None:
        super().__init__(root)
        self._parts: dict[Pointer, set[Pointer]] = {}
        self._widths: dict[Pointer, int] = {}

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
