"""Shared by the adapters: texts for a model, the tools that a search finds, and calls of them."""

from collections.abc import Iterator
from typing import Any

import msgspec

from repertory.api import SearchOptions, Session
from repertory.calling.result import CallResult
from repertory.catalogue.item import Item, Kind
from repertory.errors import CallError, UsageError
from repertory.formats.compact import compact
from repertory.formats.signatures import signature
from repertory.formats.tools import ToolSpec, tool_spec
from repertory.search.answer import Answer, Hit
from repertory.search.query import texts_of
from repertory.text import cut

MAX_DESCRIPTION_LENGTH = 1_024  # characters, the limit of model APIs

_WITHOUT_SERVERS = ("tools", "corpus")  # the types of sources whose tools cannot be called

# Errors that a model can react to: it corrects its request or tries something else. All others are
# for the program.
FOR_THE_MODEL = (UsageError, CallError)


class AgentFunctions:
    """Functions for an agent that searches by itself; the docstrings are for the model."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def search_catalogue(self, query: str) -> str:
        """Find skills, tools and documents for a task, in the words of the task."""
        answer = self._session.search(query)
        return compact([answer], whole_items(self._session, answer, Kind.TOOL))

    def get_item(self, item_id: str) -> str:
        """Read a skill or a document before you follow it, or a tool's schema, by its id."""
        return text_of(self._session.item(item_id))

    def call_tool(self, tool_id: str, arguments: dict[str, Any] | None = None) -> str:
        """Call a tool that a search found, with arguments by its schema if it takes any."""
        result = self._session.call(tool_id, arguments)
        if result.is_error:
            raise CallError(words_of(result))
        return words_of(result)


def whole_items(session: Session, answer: Answer, *kinds: Kind) -> dict[str, Item]:
    """The items of an answer by id, without those removed in the meantime."""
    return session.items_by_id(hit.id for hit in answer.hits if not kinds or hit.kind in kinds)


def texts(session: Session, query: str, asked: SearchOptions) -> Iterator[tuple[Hit, str]]:
    """The hits of a search, each with the whole text of its item."""
    answer = session.search(query, **asked)
    items = whole_items(session, answer)
    for hit in answer.hits:
        yield hit, text_of(items[hit.id]) if hit.id in items else hit.description


def text_of(item: Item) -> str:
    """The text of a skill or a document, or the signature, description and schema of a tool."""
    if item.kind is not Kind.TOOL:
        return item.body or item.description
    return f"{signature(item.id, item)}\n\n{item.description}\n\n{as_json(item.input_schema or {})}"


def metadata_of(hit: Hit) -> dict[str, Any]:
    """The metadata that a framework keeps with a text."""
    return {
        "id": hit.id,
        "kind": hit.kind.value,
        "name": hit.name,
        "source": hit.source,
        "server": hit.server,
        "path": hit.path,
        "tags": list(hit.tags),
        "section": hit.matched_in,
        "confidence": hit.confidence,
        "reason": hit.reason,
    }


def found_tools(session: Session, query: str, asked: SearchOptions) -> Iterator[ToolSpec]:
    """The callable tools that a search finds, as declared to model APIs."""
    for_tools: SearchOptions = {**asked, "kinds": [Kind.TOOL.value]}
    states = session.sources()
    without = {one.name for one in states if one.type in _WITHOUT_SERVERS or one.awaits_trust}
    if without:
        named = texts_of("sources", asked.get("sources", ())) or [one.name for one in states]
        for_tools["sources"] = sources = [name for name in named if name not in without]
        if not sources:
            return
    answer = session.search(query, **for_tools)
    items = whole_items(session, answer)
    for hit in answer.hits:
        spec = tool_spec(hit, items)
        room = MAX_DESCRIPTION_LENGTH - len(f"\n\n{spec.further}")
        parts = (cut(spec.text or spec.id, room), spec.further)
        yield msgspec.structs.replace(spec, text="\n\n".join(filter(None, parts)))


def words_of(result: CallResult) -> str:
    """The result of a tool as text for a model: its texts, or its structured data without any.

    A resource without text is replaced by its URI, an image or a sound by its media type.
    """
    inner = ((block.get("resource"), block) for block in result.content)
    blocks = [one if isinstance(one, dict) else block for one, block in inner]
    if result.structured_content is not None and not any("text" in one for one in blocks):
        return as_json(result.structured_content)
    said = (one.get("text", one.get("uri", one.get("mimeType", ""))) for one in blocks)
    return "\n".join(map(str, said))


def as_json(value: object) -> str:
    """A value as JSON."""
    return msgspec.json.encode(value).decode()
