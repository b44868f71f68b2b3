"""TypeScript's types as text: unions, intersections, and those of single values."""

import math
from collections.abc import Iterable, Mapping
from itertools import chain

from repertory.typescript.words import key, quoted

DEEPEST = 32  # levels of nesting
MOST_MEMBERS = 1_000  # of a union
MOST_PLACES = 100  # of a tuple
LONGEST_LITERAL = 1_000  # characters

# A type is the members of its union, each once; ``never`` has none.
Type = tuple[str, ...]
UNKNOWN: Type = ("unknown",)
NEVER: Type = ()
ANY_OBJECT: Type = ("{ [key: string]: unknown }",)


def text(members: Type) -> str:
    """The text of a type."""
    return " | ".join(members) or "never"


def operand(members: Type) -> str:
    """The text of a type that an operator stands beside."""
    return f"({text(members)})" if len(members) > 1 else text(members)


def union(types: Iterable[Type]) -> Type:
    """The type of whatever is of one of the types."""
    members = tuple(dict.fromkeys(chain.from_iterable(types)))
    return UNKNOWN if "unknown" in members or len(members) > MOST_MEMBERS else members


def intersection(types: Iterable[Type]) -> Type:
    """The type of what is of all types; there is at least one."""
    parts = list(dict.fromkeys(types))
    if len(parts) == 1:
        return parts[0]
    return NEVER if NEVER in parts else (f"({' & '.join(map(operand, parts))})",)


def literal(value: object, depth: int = 0) -> Type:  # noqa: PLR0911 - one for each type
    """The type of one JSON value."""
    if isinstance(value, str):
        return (quoted(value) if len(value) <= LONGEST_LITERAL else "string",)
    if value is None or isinstance(value, bool):
        return ("null" if value is None else str(value).lower(),)
    if isinstance(value, int | float):
        is_exact = math.isfinite(value) if isinstance(value, float) else abs(value) < 1 << 53
        return (repr(value) if is_exact else "number",)
    if depth == DEEPEST:
        return UNKNOWN
    if isinstance(value, list):
        if len(value) > MOST_PLACES:
            return ("unknown[]",)
        return (f"[{', '.join(text(literal(one, depth + 1)) for one in value)}]",)
    if isinstance(value, Mapping) and value:
        fields = (f"{key(name)}: {text(literal(one, depth + 1))}" for name, one in value.items())
        return (f"{{ {', '.join(fields)} }}",)
    return ("{ [key: string]: never }",)
