"""``skill.discovery.search``: a search of the catalogue's skills by purpose."""

from collections.abc import Mapping
from typing import Any

from repertory.backend import Backend
from repertory.catalogue.item import Kind
from repertory.errors import NothingIndexedError
from repertory.functions.function import Function
from repertory.search.query import query_of
from repertory.values import Values

DEFAULT_LIMIT = 5
MAX_LIMIT = 100  # results

_TEXT = {"type": "string"}


def _search(backend: Backend, arguments: Mapping[str, Any]) -> dict[str, Any]:
    if not arguments["query"].strip():
        return {"results": []}
    query = query_of(
        Values(),
        arguments["query"],
        limit=int(arguments.get("limit", DEFAULT_LIMIT)),  # in JSON Schema, 5.0 is an integer
        threshold=0.0,
        kinds=[Kind.SKILL],
    )
    try:
        hits = backend.search(query).hits
    except NothingIndexedError:
        hits = []
    return {
        "results": [
            {
                "skill_id": hit.id,
                "name": hit.name,
                "description": hit.description,
                "score": hit.confidence,
            }
            for hit in hits
        ]
    }


SEARCH = Function(
    name="skill.discovery.search",
    title="Find skills",
    description=(
        "Find installed skills by meaning: say what you want to do, and get the skills that help "
        "with it, best first, each with a score from 0 to 1; its square is the probability that "
        "the skill helps."
    ),
    parameters={
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "What the skill should help with, in plain words.",
            },
            "limit": {
                "type": "integer",
                "description": "The maximum number of results.",
                "minimum": 1,
                "maximum": MAX_LIMIT,
                "default": DEFAULT_LIMIT,
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    returns={
        "type": "object",
        "properties": {
            "results": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "skill_id": _TEXT,
                        "name": _TEXT,
                        "description": _TEXT,
                        "score": {"type": "number", "minimum": 0, "maximum": 1},
                    },
                    "required": ["skill_id", "name", "description", "score"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["results"],
        "additionalProperties": False,
    },
    run=_search,
)
