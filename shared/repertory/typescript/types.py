"""TypeScript's unions, intersections and literal types as text."""

import math
from collections.abc import Iterable, Mapping
from itertools import chain

from repertory.typescript.syntax import key, quoted

MAX_DEPTH = 32  # levels of nesting
MAX_MEMBERS = 1_000  # of a union
MAX_TUPLE_LENGTH = 100  # elements
MAX_LITERAL_LENGTH = 1_000  # characters

# A type is the distinct members of its union; ``never`` has none.
Type = tuple[str, ...]
UNKNOWN: Type = ("unknown",)
NEVER: Type = ()
ANY_OBJECT: Type = ("{ [key: string]: unknown }",)


def text(members: Type) -> str:
    """The text of a type."""
    return " | ".join(members) or "never"


def operand(members: Type) -> str:
    """The text of a type as an operand, in parentheses if necessary."""
    return f"({text(members)})" if len(members) > 1 else text(members)


def union(types: Iterable[Type]) -> Type:
    """The union of some types; ``unknown`` if it has too many members."""
    members = tuple(dict.fromkeys(chain.from_iterable(types)))
    return UNKNOWN if "unknown" in members or len(members) > MAX_MEMBERS else members


def intersection(types: Iterable[Type]) -> Type:
    """The intersection of one or more types."""
    parts = list(dict.fromkeys(types))
    if len(parts) == 1:
        return parts[0]
    return NEVER if NEVER in parts else (f"({' & '.join(map(operand, parts))})",)


def literal(value: object, depth: int = 0) -> Type:  # noqa: PLR0911 - one for each type
    """The literal type of a JSON value, widened if it is too large."""
    if isinstance(value, str):
        return (quoted(value) if len(value) <= MAX_LITERAL_LENGTH else "string",)
    if value is None or isinstance(value, bool):
        return ("null" if value is None else str(value).lower(),)
    if isinstance(value, int | float):
        is_exact = math.isfinite(value) if isinstance(value, float) else abs(value) < 1 << 53
        return (repr(value) if is_exact else "number",)
    if depth == MAX_DEPTH:
        return UNKNOWN
    if isinstance(value, list):
        if len(value) > MAX_TUPLE_LENGTH:
            return ("unknown[]",)
        return (f"[{', '.join(text(literal(one, depth + 1)) for one in value)}]",)
    if isinstance(value, Mapping) and value:
        fields = (f"{key(name)}: {text(literal(one, depth + 1))}" for name, one in value.items())
        return (f"{{ {', '.join(fields)} }}",)
    return ("{ [key: string]: never }",)
