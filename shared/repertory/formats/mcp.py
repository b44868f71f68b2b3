"""An answer as the result of an MCP tool."""

from typing import Any

import msgspec

from repertory.catalogue.item import Kind
from repertory.formats.phrases import line
from repertory.formats.uris import uri_of
from repertory.search.answer import Answer, Hit

MEDIA_TYPES = {Kind.SKILL: "text/markdown", Kind.DOCUMENT: "text/plain"}


def mcp(answer: Answer) -> dict[str, Any]:
    """Return a ``CallToolResult``: the answer as data and as text, with links to its texts."""
    structured = msgspec.to_builtins(answer)
    text = {"type": "text", "text": msgspec.json.encode(structured).decode()}
    links = [_link(hit) for hit in answer.hits if hit.kind in MEDIA_TYPES]
    return {
        "resultType": "complete",
        "content": [text, *links],
        "structuredContent": structured,
        "isError": False,
    }


def _link(hit: Hit) -> dict[str, str]:
    return {
        "type": "resource_link",
        "uri": uri_of(hit),
        "name": line(hit.name),
        "description": line(hit.description),
        "mimeType": MEDIA_TYPES[hit.kind],
    }
