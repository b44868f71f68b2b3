"""Validation of JSON Schemas, with a fast path for plain ones, which nearly all are."""

from collections.abc import Callable
from typing import Any

from repertory.text import cut

_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
# Drafts whose meta-schemas agree on every keyword of ``_PLAIN``.
_DRAFTS = frozenset(
    {
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema",
    }
)


def schema_defect(schema: dict[str, Any]) -> str | None:
    """Return the defect of an invalid JSON Schema with its JSON path; None for a valid one.

    The schema names its draft; the default is 2020-12. References are not followed, and patterns
    are not compiled: their syntax is not Python's.

    Args:
        schema: Plain JSON of bounded depth.
    """
    if _is_plain(schema):
        return None
    if not isinstance(schema.get("$schema", ""), str):
        return "$.$schema is not text"
    from jsonschema import Draft202012Validator, SchemaError, validators  # noqa: PLC0415 - slow

    validator = validators.validator_for(schema, default=Draft202012Validator)
    try:
        validator.check_schema(schema, format_checker=None)  # type: ignore[call-arg]  # stubs lack it
    except SchemaError as exc:
        return f"{exc.json_path}: {cut(exc.message, 200)}"
    except RecursionError:
        return "$ is nested too deeply"
    return None


def _is_plain(schema: object) -> bool:
    """Whether every keyword is a common one with a valid value; if not, the slow check decides.

    The slow check by the meta-schema takes two milliseconds for each tool.
    """
    if isinstance(schema, bool):
        return True
    if not isinstance(schema, dict):
        return False
    return all(
        key not in _RARE if (check := _PLAIN.get(key)) is None else check(value)
        for key, value in schema.items()
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_type(value: object) -> bool:
    if isinstance(value, list):
        return bool(value) and _are_names(value) and _TYPES.issuperset(value)
    return isinstance(value, str) and value in _TYPES


def _are_names(value: object) -> bool:
    """Whether this is a list of distinct strings."""
    return (
        isinstance(value, list)
        and all(isinstance(name, str) for name in value)
        and len(set(value)) == len(value)
    )


def _are_schemas(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_plain, value))


def _are_named_schemas(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_plain, value.values()))


def _is_known_draft(value: object) -> bool:
    return isinstance(value, str) and value.removesuffix("#") in _DRAFTS


def _is_anything(_value: object) -> bool:
    return True


_PLAIN: dict[str, Callable[[object], bool]] = {
    "$schema": _is_known_draft,
    "$ref": _is_text,
    "$comment": _is_text,
    "$defs": _are_named_schemas,
    "definitions": _are_named_schemas,
    "title": _is_text,
    "description": _is_text,
    "default": _is_anything,
    "examples": _is_list,
    "deprecated": _is_flag,
    "readOnly": _is_flag,
    "writeOnly": _is_flag,
    "type": _is_type,
    "enum": _is_list,
    "const": _is_anything,
    "format": _is_text,
    "pattern": _is_text,
    "minLength": _is_count,
    "maxLength": _is_count,
    "minimum": _is_number,
    "maximum": _is_number,
    "exclusiveMinimum": _is_number,
    "exclusiveMaximum": _is_number,
    "items": _is_plain,
    "prefixItems": _are_schemas,
    "minItems": _is_count,
    "maxItems": _is_count,
    "uniqueItems": _is_flag,
    "properties": _are_named_schemas,
    "additionalProperties": _is_plain,
    "propertyNames": _is_plain,
    "minProperties": _is_count,
    "maxProperties": _is_count,
    "required": _are_names,
    "anyOf": _are_schemas,
    "oneOf": _are_schemas,
    "allOf": _are_schemas,
    "not": _is_plain,
    "if": _is_plain,
    "then": _is_plain,
    "else": _is_plain,
}
# The other keywords of the drafts above; a key in neither table may have any value.
_RARE = frozenset(
    {"$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef"}
    | {"$vocabulary", "contentEncoding", "contentMediaType", "contentSchema", "multipleOf"}
    | {"contains", "minContains", "maxContains", "additionalItems", "unevaluatedItems"}
    | {"dependencies", "dependentRequired", "dependentSchemas", "patternProperties"}
    | {"unevaluatedProperties"}
)
