"""Answers as the result of an MCP tool.

Results contain only text, which every host passes to its model. Structured content would repeat it,
because the specification asks for the same content as text, too.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from repertory.catalogue.item import Item, Kind
from repertory.formats.compact import compact
from repertory.formats.phrases import line
from repertory.formats.uris import uri_of
from repertory.search.answer import Answer, Hit
from repertory.wire import Answers

MEDIA_TYPES = {Kind.SKILL: "text/markdown", Kind.DOCUMENT: "text/plain"}


def mcp(answers: Sequence[Answer], tools: Mapping[str, Item]) -> dict[str, Any]:
    """Return a ``CallToolResult`` with one line per hit; see ``compact``."""
    return _result([_text(compact(answers, tools))])


def mcp_detail(answers: Sequence[Answer], needs: Sequence[str] = ()) -> dict[str, Any]:
    """Return a ``CallToolResult`` with all details: the HTTP API's JSON, and links to texts.

    Args:
        answers: The answers.
        needs: The needs of the skills among the hits, one line each.
    """
    whole: Answer | Answers = answers[0] if len(answers) == 1 else Answers(answers=[*answers])
    links = {hit.id: _link(hit) for one in answers for hit in one.hits if hit.kind in MEDIA_TYPES}
    said = [_text("\n".join(needs))] if needs else []
    return _result([_text(msgspec.json.encode(whole).decode()), *links.values(), *said])


def _result(content: list[dict[str, Any]]) -> dict[str, Any]:
    return {"resultType": "complete", "content": content, "isError": False}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _link(hit: Hit) -> dict[str, Any]:
    return {
        "type": "resource_link",
        "uri": uri_of(hit),
        "name": line(hit.name),
        "mimeType": MEDIA_TYPES[hit.kind],
    }
