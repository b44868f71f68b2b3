"""The resources of the MCP server: skills and their files, documents, and tools."""

import base64
import mimetypes

import msgspec
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, BlobResourceContents, Resource, TextResourceContents

from repertory.backend import Backend
from repertory.catalogue.item import Item, Kind
from repertory.catalogue.skill_format import SKILL_FILE
from repertory.errors import UnknownItemError
from repertory.formats.mcp import MEDIA_TYPES
from repertory.formats.uris import id_of, is_misplaced, uri_of
from repertory.index.vectors import Filter
from repertory.text import cut, one_line
from repertory_query.mcp.item_uris import skill_at
from repertory_query.mcp.reading import text_of

PAGE_SIZE = 100  # resources per answer
MAX_DESCRIPTION_LENGTH = 400  # characters


def skills_after(backend: Backend, after: str) -> tuple[list[Resource], str | None]:
    """The skills with ids after this one, as resources, and the next cursor."""
    page, cursor = page_after(backend, after, PAGE_SIZE)
    resources = [
        Resource(
            uri=uri_of(item),
            name=one_line(item.name),
            description=cut(one_line(item.description), MAX_DESCRIPTION_LENGTH),
            mime_type=MEDIA_TYPES[item.kind],
        )
        for item in page
    ]
    return resources, cursor


def page_after(backend: Backend, after: str, size: int) -> tuple[list[Item], str | None]:
    """The skills with ids after this one, and the cursor of the next page.

    A cursor is the last id, so that changes between two pages cause no repeated or skipped skills.
    """
    found, _ = backend.page(Filter(kinds=(Kind.SKILL,)), size + 1, after=after)
    page = [entry.id for entry in found[:size]]
    cursor = _cursor(page[-1]) if len(found) > size else None
    items = backend.items(page)
    # A nested skill may have the same URI that its outer skill has because of its name.
    inner = {f"{one.id}/{one.name}": one.id for one in items.values() if is_misplaced(one)}
    for item_id in backend.items([*inner]) if inner else ():
        del items[inner[item_id]]
    return list(items.values()), cursor


def read(backend: Backend, uri: str) -> TextResourceContents | BlobResourceContents:
    """The content of a resource: text if it is UTF-8, else Base64.

    Raises:
        UnknownItemError: There is no such resource.
    """
    if (item_id := id_of(uri)) is not None:
        item = backend.item(item_id)
        if (item.id, item.kind) != (item_id, uri.partition(":")[0]):
            raise UnknownItemError(f"{item_id[:200]!r} is {uri_of(item)}.")
        media_type = MEDIA_TYPES.get(item.kind, "application/json")
        return TextResourceContents(uri=uri, mime_type=media_type, text=text_of(item))
    skill, place = skill_at(backend, uri)
    if place == SKILL_FILE:
        text = text_of(backend.item(skill.id))  # reading a single item counts as a use
        return TextResourceContents(uri=uri, mime_type=MEDIA_TYPES[Kind.SKILL], text=text)
    data = backend.skill_file(skill.id, place)
    guessed = mimetypes.guess_type(place, strict=False)[0]
    try:
        return TextResourceContents(uri=uri, mime_type=guessed or "text/plain", text=data.decode())
    except UnicodeDecodeError:
        return BlobResourceContents(
            uri=uri,
            mime_type=guessed or "application/octet-stream",
            blob=base64.b64encode(data).decode(),
        )


def after_of(cursor: str | None) -> str:
    """The id after which the page of a cursor begins."""
    if cursor is None:
        return ""
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(cursor), type=str)
    except ValueError as error:
        raise unknown_cursor() from error


def unknown_cursor() -> MCPError:
    """The error for a cursor that this server did not return."""
    return MCPError(INVALID_PARAMS, "The cursor is not from this server; list from the beginning.")


def _cursor(last: str) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(last)).decode()
