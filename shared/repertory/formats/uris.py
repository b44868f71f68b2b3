"""The URIs of items as MCP resources, as in MCP's skills extension.

``skill://team/key-rotation/SKILL.md`` is the skill ``team/key-rotation``, and
``skill://team/key-rotation/references/api.md`` is a file beside it. The extension requires a
skill's folder to have the skill's name; if the last part of the id differs, the name is appended.
The URIs of documents and tools are ``document://`` or ``tool://`` and the id.
"""

import re
from urllib.parse import quote, unquote

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.skill_format import SKILL_FILE, is_skill_name
from repertory.search.answer import Hit

MAX_PARTS = 64  # of the path of a skill's file

_URI = re.compile(r"(skill|document|tool)://(.*)")


def uri_of(found: Item | Hit) -> str:
    """The unique URI of an item."""
    if found.kind is not Kind.SKILL:
        return f"{found.kind}://{quote(found.id)}"
    return f"{folder_of(found)}/{SKILL_FILE}"


def folder_of(skill: Item | Hit) -> str:
    """The URI of a skill's folder, without a trailing slash."""
    return f"{Kind.SKILL}://{quote(skill.id)}" + (
        f"/{quote(skill.name)}" if is_misplaced(skill) else ""
    )


def is_misplaced(skill: Item | Hit) -> bool:
    """Whether a skill's name is valid but differs from the last part of its id."""
    return is_skill_name(skill.name) and skill.id.rpartition("/")[2] != skill.name


def id_of(uri: str) -> str | None:
    """The id in the URI of a tool or a document, whether or not it exists; None for other URIs."""
    match = _URI.fullmatch(uri)
    return _decoded(match[2]) if match and match[1] != Kind.SKILL else None


def is_of_skill(uri: str) -> bool:
    """Whether a URI has the form of a skill's file, whether or not the file exists."""
    return uri.startswith(f"{Kind.SKILL}://")


def places_of(uri: str) -> list[tuple[str, str]]:
    """All splits of a skill file's URI into a skill's id and the file's place, longest id first.

    The caller must check whether the skill exists and whether the place begins with its name.
    """
    match = _URI.fullmatch(uri)
    path = _decoded(match[2]) if match and match[1] == Kind.SKILL else None
    parts = path.split("/")[: MAX_PARTS + 1] if path else []
    if len(parts) > MAX_PARTS:
        return []
    return [("/".join(parts[:at]), "/".join(parts[at:])) for at in range(len(parts) - 1, 0, -1)]


def _decoded(quoted: str) -> str | None:
    try:
        return unquote(quoted, errors="strict")
    except UnicodeDecodeError:
        return None
