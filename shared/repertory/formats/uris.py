"""The URIs of items as MCP resources, as in the draft of MCP's skills extension.

``skill://team/key-rotation/SKILL.md`` is the skill ``team/key-rotation``; documents and tools are
``document://`` and ``tool://`` and the id.
"""

import re
from urllib.parse import quote, unquote

from repertory.catalogue.item import Item, Kind
from repertory.search.answer import Hit

_URI = re.compile(r"skill://(.*)/SKILL\.md|(?:document|tool)://(.*)")


def uri_of(found: Item | Hit) -> str:
    """The unique URI of an item."""
    end = "/SKILL.md" if found.kind is Kind.SKILL else ""
    return f"{found.kind}://{quote(found.id)}{end}"


def id_of(uri: str) -> str | None:
    """The id in a URI, whether or not the item exists; None for other URIs."""
    match = _URI.fullmatch(uri)
    if match is None:
        return None
    try:
        return unquote(match[1] or match[2] or "", errors="strict")
    except UnicodeDecodeError:
        return None
