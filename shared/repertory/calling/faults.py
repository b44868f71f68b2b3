"""Validation errors as short sentences that quote the schema, never the value."""

import itertools
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from repertory.text import cut, one_line

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

MAX_FAULTS = 5
MAX_QUOTE_LENGTH = 100  # characters


def faults(value: object, schema: Mapping[str, Any]) -> list[str]:
    """Return up to ``MAX_FAULTS`` errors, each naming the part it concerns.

    If the schema is invalid or the check times out, the errors found so far are returned; the
    server validates the call as well.
    """
    # Imported here because loading jsonschema takes longer than a search.
    from repertory.calling.validation import closest, schema_errors  # noqa: PLC0415 - see above

    found: dict[str, None] = {}  # an ordered set
    try:
        for error in itertools.islice(schema_errors(value, schema), MAX_FAULTS):
            found[_type_fault(error) or _in_words(closest(error))] = None
    # Catch everything: an invalid schema (dangling references, cycles, unknown types) can make
    # the library raise any exception, and our own time limit raises one as well.
    except Exception:  # noqa: S110 - see above
        pass
    return list(found)


def _in_words(error: "ValidationError") -> str:
    """Describe an error without quoting the value, which may be large or secret."""
    place = _place(error.absolute_path)
    wanted: Any = error.validator_value
    keyword = str(error.validator)
    if keyword == "required" and isinstance(error.instance, dict):
        missing = [name for name in wanted if name not in error.instance]
        places = [_place([*error.absolute_path, name]) for name in missing[:MAX_FAULTS]]
        return f"{', '.join(places)} must be given"
    if keyword == "type":
        several = wanted if isinstance(wanted, list) else [wanted]
        return f"{place} must be {' or '.join(map(str, several))}"
    phrase = _PHRASES.get(keyword, "does not fit the schema's `{keyword}`")
    quote = cut(one_line(json.dumps(wanted, ensure_ascii=False)), MAX_QUOTE_LENGTH)
    return f"{place} {phrase.format(quote, keyword=keyword)}"


_PHRASES = {
    "None": "is not allowed by the schema",  # the schema is False
    "additionalProperties": "is not in the schema",
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
    "uniqueItems": "must not have duplicates",
    "anyOf": "must have one of the forms that the schema gives",
    "oneOf": "must have exactly one of the forms that the schema gives",
}


def _type_fault(error: "ValidationError") -> str:
    """Describe a value whose type fits none of the alternatives; empty for other errors."""
    parts = error.context or ()
    if not parts or any(part.validator != "type" or part.path for part in parts):
        return ""
    types = dict.fromkeys(str(part.validator_value) for part in parts)
    return f"{_place(error.absolute_path)} must be {' or '.join(types)}"


def _place(path: Iterable[str | int]) -> str:
    """Format a path: ``filter.tags[2]``."""
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return cut(one_line(place.removeprefix(".")), MAX_QUOTE_LENGTH) or "the whole"
