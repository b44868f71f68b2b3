"""Validation of JSON Schemas, with a fast path for plain ones, as most are."""

import contextlib
from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Any, Literal

import msgspec

from repertory.text import cut

MAX_DEFECTS = 200  # per schema; a schema with as many is left out

# Drafts whose meta-schemas agree on every common keyword.
_Draft = Literal[
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2020-12/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2019-09/schema#",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-07/schema#",
]
_Type = Literal["array", "boolean", "integer", "null", "number", "object", "string"]
_Count = Annotated[int, msgspec.Meta(ge=0)]
_Schema = "bool | _Plain"
_Schemas = "Annotated[list[bool | _Plain], msgspec.Meta(min_length=1)]"
_NamedSchemas = "dict[str, bool | _Plain]"

_COMMON: dict[str, Any] = {
    **dict.fromkeys(("$ref", "$comment", "title", "description", "format", "pattern"), str),
    **dict.fromkeys(("deprecated", "readOnly", "writeOnly", "uniqueItems"), bool),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _Count),
    **dict.fromkeys(("minProperties", "maxProperties"), _Count),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), int | float),
    **dict.fromkeys(("enum", "examples"), list[Any]),
    **dict.fromkeys(("items", "additionalProperties", "propertyNames"), _Schema),
    **dict.fromkeys(("not", "if", "then", "else"), _Schema),
    **dict.fromkeys(("prefixItems", "anyOf", "oneOf", "allOf"), _Schemas),
    **dict.fromkeys(("$defs", "definitions", "properties"), _NamedSchemas),
    "$schema": _Draft,
    "type": _Type | Annotated[list[_Type], msgspec.Meta(min_length=1)],
    "required": list[str],
}
# The other keywords of the drafts above; a keyword in neither table may have any value.
_RARE = (
    *("$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef"),
    *("$vocabulary", "contentEncoding", "contentMediaType", "contentSchema", "multipleOf"),
    *("contains", "minContains", "maxContains", "additionalItems", "unevaluatedItems"),
    *("dependencies", "dependentRequired", "dependentSchemas", "patternProperties"),
    "unevaluatedProperties",
)
_KEYWORDS = _COMMON | dict.fromkeys(_RARE, msgspec.UnsetType)  # no value converts to this type


def _reject_repeated_names(plain: Any) -> None:  # noqa: ANN401 - of a class made below
    for names in (plain.type_, plain.required_):
        if isinstance(names, list) and len(set(names)) < len(names):
            raise ValueError("a name is repeated")


# Made from the table, because a keyword such as ``$ref`` or ``if`` cannot name an attribute.
_FIELDS = {f"{keyword.lstrip('$')}_": keyword for keyword in _KEYWORDS}
_Plain = msgspec.defstruct(
    "_Plain",
    [(field, _KEYWORDS[keyword], msgspec.UNSET) for field, keyword in _FIELDS.items()],
    rename=_FIELDS,
    namespace={"__post_init__": _reject_repeated_names},
    module=__name__,
)


def mended(schema: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Return a JSON Schema without its invalid keywords, and its worst defect with its JSON path.

    The defect of a valid schema is empty. The schema is plain JSON of bounded depth. Its
    ``$schema`` names its draft; the default is 2020-12. References are not followed, and patterns
    are not compiled, because their syntax is not Python's.

    Typical defects are ``"required": null``, ``"required": true`` for one property, and types of a
    programming language. The result is None if no valid keyword is left.
    """
    # Validation against the meta-schema takes two milliseconds for each tool.
    if _is_plain(schema):
        return schema, ""
    if not isinstance(schema.get("$schema", ""), str):
        return None, "$.$schema is not text"
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - slow
    from jsonschema.exceptions import best_match  # noqa: PLC0415 - slow

    draft = validators.validator_for(schema, default=Draft202012Validator)
    try:
        found = list(islice(draft(draft.META_SCHEMA).iter_errors(schema), MAX_DEFECTS))
        worst = best_match(found)
    except RecursionError:
        return None, "$ is nested too deeply"
    if worst is None:
        return schema, ""
    kept: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(schema))
    for one in found:
        _remove(kept, list(one.absolute_path))
    defect = f"{worst.json_path}: {cut(worst.message, 200)}"
    is_valid = len(found) < MAX_DEFECTS and (
        _is_plain(kept) or not any(draft(draft.META_SCHEMA).iter_errors(kept))
    )
    return (kept if kept and is_valid else None), defect


def _is_plain(schema: dict[str, Any]) -> bool:
    with contextlib.suppress(msgspec.ValidationError):
        msgspec.convert(schema, _Plain)
        return True
    return False


def _remove(schema: dict[str, Any], path: Sequence[str | int]) -> None:
    """Remove the keyword or property at a path, or the innermost one that contains the path."""
    found: Any = schema
    owner: dict[str, Any] = {}
    keyword = ""
    for step in path:
        if isinstance(found, dict):
            owner, keyword = found, str(step)
        try:
            found = found[step]
        except (KeyError, IndexError, TypeError):
            return  # it was removed before
    owner.pop(keyword, None)
