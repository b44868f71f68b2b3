"""The URIs of items as resources of MCP, after the drafted skills extension.

``skill://team/key-rotation/SKILL.md`` is the skill ``team/key-rotation``; a document and a tool are
``document://`` and ``tool://`` with the id alone.
"""

import re
from urllib.parse import quote, unquote

from repertory.catalogue.item import Item, Kind
from repertory.search.answer import Hit

_URI = re.compile(r"skill://(.*)/SKILL\.md|(?:document|tool)://(.*)")


def uri_of(found: Item | Hit) -> str:
    """The URI of an item; no other item has the same."""
    end = "/SKILL.md" if found.kind is Kind.SKILL else ""
    return f"{found.kind}://{quote(found.id)}{end}"


def id_of(uri: str) -> str | None:
    """The id that a URI stands for, of an item that need not be there; None for other URIs."""
    match = _URI.fullmatch(uri)
    if match is None:
        return None
    try:
        return unquote(match[1] or match[2] or "", errors="strict")
    except UnicodeDecodeError:
        return None
