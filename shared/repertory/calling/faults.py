"""What of a value does not fit the JSON Schema of a tool, in words."""

import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any

from jsonschema.exceptions import ValidationError, best_match

from repertory.calling.bounded import errors
from repertory.text import cut, one_line

MOST_FAULTS = 5  # told at once
LONGEST_PART = 100  # characters of a schema, or of a name, that are quoted


def faults(value: object, schema: Mapping[str, Any]) -> list[str]:
    """The first things about a value that are wrong, each naming the part that it is about.

    A schema that cannot be applied, or not in time, is left to the server, which checks as well:
    what was found until then counts, and where that is nothing, the value fits.
    """
    found: dict[str, None] = {}  # in their order, each once
    try:
        for error in itertools.islice(errors(value, schema), MOST_FAULTS):
            found[_in_words(error)] = None
    # A boundary: what a schema that is not as it should be makes the library raise is an open set:
    # references that lead nowhere, circles, unknown types, our own limit of time.
    except Exception:  # noqa: S110 - see above
        pass
    return list(found)


def _in_words(error: ValidationError) -> str:
    """What is wrong with which part; never the part itself, which may be large or secret."""
    place = _place(error.absolute_path)
    if types := _types(error.context or ()):
        return f"{place} must be {types}"
    error = best_match([error]) or error  # of several forms, the one that was nearly met
    place = _place(error.absolute_path)
    wanted: Any = error.validator_value
    keyword = str(error.validator)
    if keyword == "required" and isinstance(error.instance, dict):
        missing = [name for name in wanted if name not in error.instance]
        places = [_place([*error.absolute_path, name]) for name in missing[:MOST_FAULTS]]
        return f"{', '.join(places)} must be given"
    if keyword == "type":
        several = wanted if isinstance(wanted, list) else [wanted]
        return f"{place} must be {' or '.join(map(str, several))}"
    said = _SAID.get(keyword, "does not fit the schema's `{keyword}`")
    return f"{place} {said.format(_quoted(wanted), keyword=keyword)}"


_SAID = {
    "None": "holds what the schema does not allow",  # it is False there, wherever that is
    "additionalProperties": "is not known to the schema",
    "enum": "must be one of {}",
    "const": "must be {}",
    "pattern": "must match the pattern {}",
    "minimum": "must be {} or more",
    "maximum": "must be {} or less",
    "exclusiveMinimum": "must be more than {}",
    "exclusiveMaximum": "must be less than {}",
    "multipleOf": "must be a multiple of {}",
    "minLength": "must have {} characters or more",
    "maxLength": "must have {} characters or less",
    "minItems": "must have {} items or more",
    "maxItems": "must have {} items or less",
    "minProperties": "must have {} members or more",
    "maxProperties": "must have {} members or less",
    "uniqueItems": "must not hold anything twice",
    "anyOf": "must have one of the forms that the schema gives",
    "oneOf": "must have exactly one of the forms that the schema gives",
}


def _types(context: Iterable[ValidationError]) -> str:
    """The types of a value that may be of one of several, where only its type is wrong."""
    parts = list(context)
    if any(part.validator != "type" or part.path for part in parts):
        return ""
    return " or ".join(dict.fromkeys(str(part.validator_value) for part in parts))


def _place(path: Iterable[str | int]) -> str:
    """Where something is: ``filter.tags[2]``."""
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return cut(one_line(place.removeprefix(".")), LONGEST_PART) or "the whole"


def _quoted(value: object) -> str:
    return cut(one_line(json.dumps(value, ensure_ascii=False)), LONGEST_PART)
