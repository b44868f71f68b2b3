"""``search``: exact and fuzzy search in the project's files."""

from collections.abc import Mapping
from typing import Any

import msgspec

from repertory.backend import Backend
from repertory.errors import RepertoryError, UsageError
from repertory.functions.function import Function
from repertory.project_search.query import (
    EMPTY_QUERY,
    MAX_RESULTS,
    ProjectQuery,
    SearchType,
)


class _Search(Function, frozen=True, kw_only=True):
    """Reports a missing query with the contract's message for an empty one."""

    def call(self, backend: Backend, arguments: object) -> Any:  # noqa: ANN401 - plain JSON
        if isinstance(arguments, Mapping) and arguments.get("searchQuery") is None:
            raise UsageError(EMPTY_QUERY)
        return super().call(backend, arguments)


def _search(backend: Backend, arguments: Mapping[str, Any]) -> dict[str, Any]:
    given = dict(arguments)
    if "maxResults" in given:  # the contract's type is number
        given["maxResults"] = int(max(-MAX_RESULTS, min(given["maxResults"], MAX_RESULTS)))
    try:
        query = msgspec.convert(given, ProjectQuery)
    except msgspec.ValidationError as error:  # an integer too large for a float
        raise UsageError("threshold is out of range; it must be from 0 to 1.") from error
    answer = backend.search_project(query)
    plain: dict[str, Any] = msgspec.to_builtins(answer)
    return plain


SEARCH = _Search(
    name="search",
    title="Search project files",
    description="Search through all project files using exact or fuzzy matching",
    parameters={
        "type": "object",
        "properties": {
            "searchQuery": {
                "type": "string",
                "description": "The text to search for",
            },
            "searchType": {
                "type": "string",
                "description": "Type of content to search in",
                "enum": [one.value for one in SearchType],
                "default": "all",
            },
            "fuzzySearch": {
                "type": "boolean",
                "description": "Enable fuzzy search for typo tolerance and approximate matching",
                "default": False,
            },
            "maxResults": {
                "type": "number",
                "description": "Maximum number of results to return",
                "default": 20,
            },
            "threshold": {
                "type": "number",
                "description": (
                    "Fuzzy search sensitivity (0.0 = exact match, 1.0 = match anything)"
                ),
                "default": 0.3,
            },
        },
        "required": ["searchQuery"],
    },
    returns={
        "type": "object",
        "properties": {
            "success": {"type": "boolean"},
            "content": {"type": "string"},
            "totalResults": {"type": "integer", "minimum": 0},
        },
        "required": ["success", "content", "totalResults"],
        "additionalProperties": False,
    },
    error_is_result=True,
    run=_search,
)


def search_project(backend: Backend, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Call ``search`` as its contract specifies.

    Returns:
        ``{"success", "content", "totalResults"}``, or ``{"error": message}``.
    """
    try:
        found: dict[str, Any] = SEARCH.call(backend, arguments)
    except RepertoryError as error:
        return {"error": str(error)}
    return found
