"""``Vector.SearchSkills`` and ``Vector.VectorUpdate``: semantic search in a sandbox's skills."""

from collections.abc import Mapping
from typing import Any

import msgspec

from repertory.backend import Backend
from repertory.errors import ModelError, RepertoryError, UsageError
from repertory.functions.function import Function


def _search(backend: Backend, arguments: Mapping[str, Any]) -> str:
    return msgspec.json.encode(backend.similar_skills(arguments["query"])).decode()


def _update(backend: Backend, arguments: Mapping[str, Any]) -> str:
    backend.update_vector(arguments["filepath"])
    return "OK"


def _one_string(name: str, description: str) -> dict[str, Any]:
    """The JSON Schema of exactly one argument, a string."""
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": description}},
        "required": [name],
        "additionalProperties": False,
    }


SEARCH_SKILLS = Function(
    name="Vector.SearchSkills",
    title="Search skill files",
    description=(
        "Find skill files by meaning. Returns a JSON list of objects with the path of a file, "
        "relative to the sandbox, and its score, the cosine similarity with the query from 0.5 "
        'to 1; best first, "[]" if none is similar enough.'
    ),
    parameters=_one_string("query", "What the skill should do, in plain words."),
    run=_search,
)

VECTOR_UPDATE = Function(
    name="Vector.VectorUpdate",
    title="Index a skill file",
    description=(
        "Read a file of the sandbox and index it, so that a search of skill files finds it; an "
        'earlier entry of the file is replaced. Returns "OK".'
    ),
    parameters=_one_string("filepath", "The path of the file, relative to the sandbox, with '/'."),
    action="update",
    run=_update,
)


def search_skills(backend: Backend, query: str) -> str:
    """Call ``Vector.SearchSkills`` as its contract specifies.

    Returns:
        The JSON list, or an error message if the query could not be embedded.

    Raises:
        UsageError: The query is not a string or is too long.
        StoreError: The vectors cannot be read.
    """
    try:
        found: str = SEARCH_SKILLS.call(backend, {"query": query})
    except ModelError as error:
        return str(error)
    return found


def vector_update(backend: Backend, filepath: str) -> str:
    """Call ``Vector.VectorUpdate`` as its contract specifies.

    Returns:
        ``OK``, or an error message if the file was not indexed.

    Raises:
        UsageError: The path is not a string.
    """
    if not isinstance(filepath, str):
        raise UsageError("Vector.VectorUpdate: filepath is not a string; give the path of a file.")
    try:
        done: str = VECTOR_UPDATE.call(backend, {"filepath": filepath})
    except RepertoryError as error:
        return str(error)
    return done
