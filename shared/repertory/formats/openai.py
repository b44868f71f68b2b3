"""An answer for OpenAI's Responses API: the output of a tool search that the client executes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from repertory.catalogue.item import Item, Kind
from repertory.formats import words
from repertory.formats.names import host_name
from repertory.formats.openai_functions import function, short_function
from repertory.formats.tools import tool_of
from repertory.search.answer import Answer, Hit

READER = "get_item"
FULL = 3  # what is loaded travels with every later request, so the others are shortened
MOST_TOGETHER = 9  # fewer than ten functions in a namespace are recommended


def openai(answer: Answer, items: Mapping[str, Item], call_id: str | None = None) -> dict[str, Any]:
    """The ``tool_search_output`` item, ready for the next request's input.

    Skills and documents are no tools. Where some were found, one more function, ``get_item``, tells
    the model of them and takes the id of the one to read; the client answers it with that item.

    Args:
        answer: The answer.
        items: The whole of the tools in it, as far as they can be had.
        call_id: The id of the model's call.
    """
    servers: dict[str, list[dict[str, Any]]] = {}
    for place, hit in enumerate(hit for hit in answer.hits if hit.kind is Kind.TOOL):
        made = (function if place < FULL else short_function)(tool_of(hit, items))
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
    """The functions of a server in namespaces; those of no server as they are."""
    if not server:
        yield from functions
        return
    for start in range(0, len(functions), MOST_TOGETHER):
        more = f" {start // MOST_TOGETHER + 1}" if start else ""
        yield {
            "type": "namespace",
            "name": host_name(server + more),
            "description": f"Tools of the server {words.line(server)}",
            "tools": list(functions[start : start + MOST_TOGETHER]),
        }


def _reader(texts: Sequence[Hit]) -> dict[str, Any]:
    """The function that tells of skills and documents, the best of them in words."""
    told = "\n\n".join(words.described(hit) for hit in texts[:FULL])
    ids = {"type": "string", "enum": [hit.id for hit in texts]}
    return {
        "type": "function",
        "name": READER,
        "description": f"Read a skill or a document that fits the task.\n\n{told}",
        "parameters": {"type": "object", "properties": {"id": ids}, "required": ["id"]},
        "strict": False,
        "defer_loading": True,
    }
