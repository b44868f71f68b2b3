"""The parameters of search tools, with as few words as a model needs.

Every conversation pays for them. Limits are checked here, to save tokens in the schema.
"""

from collections.abc import Mapping
from typing import Any

from repertory.catalogue.item import Kind
from repertory.errors import UsageError
from repertory.search.query import Query, query_of
from repertory.values import MAX_LIMIT, Values
from repertory.wire import MAX_VALUES

MAX_QUERIES = 10  # per search


def parameters(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    """The JSON Schema of an object with these properties and no others."""
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def string(description: str) -> dict[str, Any]:
    """The JSON Schema of a text."""
    return {"type": "string", "description": description}


def strings(description: str = "", **items: object) -> dict[str, Any]:
    """The JSON Schema of several texts."""
    schema = {"type": "array", "items": {"type": "string", **items}}
    return {**schema, "description": description} if description else schema


def search_properties(values: Values) -> dict[str, Any]:
    """The properties of a search, except its text; their defaults come from ``values``."""
    return {
        "limit": {"type": "integer", "default": values.limit},
        "threshold": {"type": "number", "default": values.threshold},
        "kinds": strings(enum=[kind.value for kind in Kind]),
        "sources": strings(),
        "servers": strings(),
        "tags": strings(),
    }


def queries_of(values: Values, arguments: Mapping[str, Any]) -> list[Query]:
    """The searches for ``query`` and ``queries`` with the other arguments, each text once.

    Raises:
        UsageError: There is no text, or there are too many, or one is invalid.
    """
    texts = [arguments["query"]] if "query" in arguments else []
    texts += arguments.get("queries", [])
    if not texts:
        raise UsageError("search: query must be given.")
    given = {name: arguments[name] for name in search_properties(values) if name in arguments}
    bounds = {"queries": MAX_QUERIES, **dict.fromkeys(given, MAX_VALUES)}
    for name, bound in bounds.items():
        value = arguments.get(name)
        if isinstance(value, list) and len(value) > bound:
            raise UsageError(f"{name} must hold {bound} texts or fewer.")
    if "limit" in given:
        given["limit"] = int(given["limit"])  # in JSON Schema, 5.0 is an integer
        if given["limit"] > MAX_LIMIT:
            raise UsageError(f"limit must be {MAX_LIMIT} or less.")
    return [query_of(values, text, **given) for text in dict.fromkeys(texts)]
