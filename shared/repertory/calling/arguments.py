"""Validation of a call's arguments before they are sent."""

import json
from collections.abc import Mapping
from typing import Any

from repertory.calling.faults import faults
from repertory.catalogue.item import Item
from repertory.errors import ArgumentsError

MAX_BYTES = 1_000_000  # bytes of JSON
MAX_DEPTH = 64  # nesting levels; JSON encoders only fail at much greater depths


def validate_arguments(arguments: Mapping[str, Any], tool: Item) -> dict[str, Any]:
    """Return the arguments as plain JSON if they match the tool's schema.

    Raises:
        ArgumentsError: The arguments are not JSON, are too large or do not match.
    """
    plain = as_json(arguments)
    if wrong := faults(plain, tool.input_schema or {}):
        raise ArgumentsError(
            f"The arguments do not fit the tool {tool.id}, so nothing was sent to its server: "
            f"{'; '.join(wrong)}."
        )
    return plain


def as_json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments as plain JSON.

    Raises:
        ArgumentsError: The arguments are not JSON, are too large or are nested too deeply.
    """
    try:
        text = json.dumps(dict(arguments), allow_nan=False, ensure_ascii=False).encode()
        plain: dict[str, Any] = json.loads(text)
    except (TypeError, ValueError) as error:
        raise ArgumentsError(
            "The arguments cannot be written as JSON; send finite numbers, whole characters, lists "
            "and mappings only."
        ) from error
    except RecursionError as error:
        raise _too_deep() from error
    if len(text) > MAX_BYTES:
        raise ArgumentsError(f"The arguments have more than {MAX_BYTES:,} bytes; send less.")
    if _is_deep(plain, MAX_DEPTH):
        raise _too_deep()
    return plain


def _is_deep(value: object, levels: int) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return False
    return levels == 0 or any(_is_deep(one, levels - 1) for one in value)


def _too_deep() -> ArgumentsError:
    return ArgumentsError(
        f"The arguments are nested more than {MAX_DEPTH} levels deep; nest them less."
    )
