"""An answer for Anthropic's Messages API: a ``tool_result`` and the tools to declare."""

from collections.abc import Collection, Mapping
from typing import Any

from repertory.catalogue.item import Item, Kind
from repertory.formats import phrases
from repertory.formats.tools import tool_spec
from repertory.search.answer import Answer


def anthropic(
    answer: Answer, items: Mapping[str, Item], declared: Collection[str] | None = None
) -> dict[str, Any]:
    """Return ``content`` for a ``tool_result`` and the ``definitions`` of the tools found.

    The API rejects a request that refers to an undeclared tool. So a client either declares the
    definitions in the same request, or passes the names it has declared, and other tools are only
    counted. ``items`` contains the complete tools by id, as far as available.
    """
    content: list[dict[str, str]] = []
    definitions: list[dict[str, Any]] = []
    undeclared = 0
    for hit in answer.hits:
        if hit.kind is not Kind.TOOL:
            content.append(_text(phrases.described(hit)))
            continue
        tool = tool_spec(hit, items)
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
        content.append(_text(phrases.nothing(answer)))
    if answer.degraded:
        content.append(_text(phrases.degraded(answer)))
    content += map(_text, phrases.notices(answer))
    return {"content": content, "definitions": definitions}


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
