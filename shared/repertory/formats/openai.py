"""An answer for OpenAI's Responses API: the output of a client-executed tool search."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from repertory.catalogue.item import Item, Kind
from repertory.formats import phrases
from repertory.formats.openai_functions import function, short_function
from repertory.formats.tools import host_name, tool_spec
from repertory.search.answer import Answer, Hit

READER = "get_item"
MAX_UNABRIDGED = 3  # hits; others are shortened, because every later request carries all of them
NAMESPACE_SIZE = 9  # OpenAI recommends fewer than ten functions


def openai(answer: Answer, items: Mapping[str, Item], call_id: str | None = None) -> dict[str, Any]:
    """Return the ``tool_search_output`` item for the input of the next request.

    An additional function, ``get_item``, lists the skills and documents found in its description
    and takes the id of the one to read. The client answers its calls. ``items`` contains the
    complete tools by id, as far as available.
    """
    servers: dict[str, list[dict[str, Any]]] = {}
    for place, hit in enumerate(hit for hit in answer.hits if hit.kind is Kind.TOOL):
        made = (function if place < MAX_UNABRIDGED else short_function)(tool_spec(hit, items))
        servers.setdefault(hit.server, []).append(made)
    tools = [entry for server, found in servers.items() for entry in _grouped(server, found)]
    if texts := [hit for hit in answer.hits if hit.kind is not Kind.TOOL]:
        tools.append(_reader(texts))
    return {
        "type": "tool_search_output",
        "call_id": call_id,
        "execution": "client",
        "status": "completed",
        "tools": tools,
    }


def _grouped(server: str, functions: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Group a server's functions into namespaces; functions without a server stay ungrouped."""
    if not server:
        yield from functions
        return
    for start in range(0, len(functions), NAMESPACE_SIZE):
        more = f" {start // NAMESPACE_SIZE + 1}" if start else ""
        yield {
            "type": "namespace",
            "name": host_name(server + more),
            "description": f"Tools of the server {phrases.line(server)}",
            "tools": list(functions[start : start + NAMESPACE_SIZE]),
        }


def _reader(texts: Sequence[Hit]) -> dict[str, Any]:
    """The function that reads a skill or document; its description lists the best ones."""
    best = "\n\n".join(phrases.described(hit) for hit in texts[:MAX_UNABRIDGED])
    ids = {"type": "string", "enum": [hit.id for hit in texts]}
    return {
        "type": "function",
        "name": READER,
        "description": f"Read a skill or a document that fits the task.\n\n{best}",
        "parameters": {"type": "object", "properties": {"id": ids}, "required": ["id"]},
        "strict": False,
        "defer_loading": True,
    }
