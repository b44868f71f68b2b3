"""An answer for Anthropic's Messages API: what a ``tool_result`` holds, and what to declare."""

from collections.abc import Collection, Mapping
from typing import Any

from repertory.catalogue.item import Item, Kind
from repertory.formats import words
from repertory.formats.tools import tool_of
from repertory.search.answer import Answer


def anthropic(
    answer: Answer, items: Mapping[str, Item], declared: Collection[str] | None = None
) -> dict[str, Any]:
    """``content`` for a ``tool_result``, and the ``definitions`` of the tools that were found.

    The API refuses a whole request that refers to a tool which it does not declare, so a client
    either declares the definitions in that same request, or says what it has declared.

    Args:
        answer: The answer.
        items: The whole of the tools in it, as far as they can be had.
        declared: The names that the client declared; tools of other names are only counted. None
            refers to all.
    """
    content: list[dict[str, str]] = []
    definitions: list[dict[str, Any]] = []
    undeclared = 0
    for hit in answer.hits:
        if hit.kind is not Kind.TOOL:
            content.append(_text(words.described(hit)))
            continue
        tool = tool_of(hit, items)
        definitions.append(
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.parameters,
                "defer_loading": True,
            }
        )
        if declared is None or tool.name in declared:
            content.append({"type": "tool_reference", "tool_name": tool.name})
        else:
            undeclared += 1
    if undeclared:
        fit = "tool fits, but is" if undeclared == 1 else "tools fit, but are"
        content.append(_text(f"{undeclared} more {fit} not declared in this request."))
    if not answer.hits:
        content.append(_text(words.nothing(answer)))
    if answer.degraded:
        content.append(_text(words.degraded(answer)))
    return {"content": content, "definitions": definitions}


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
