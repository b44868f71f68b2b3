"""The formats of an answer and their renderers."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from repertory.catalogue.item import Item
from repertory.formats.anthropic import anthropic
from repertory.formats.markdown import markdown
from repertory.formats.mcp import mcp
from repertory.formats.openai import openai
from repertory.formats.tools import whole_tools
from repertory.formats.types import types_markdown
from repertory.search.answer import Answer


class Format(StrEnum):
    """The format of an answer."""

    JSON = "json"
    TYPES = "types"
    MARKDOWN = "markdown"
    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    MCP = "mcp"


class FormatOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of single formats, given by the caller.

    Attributes:
        gateway: The URL of the server that calls tools, for ``types``.
        declared: The names of the tools declared to the model, for ``anthropic``; None allows all.
        call_id: The id of the model's call, for ``openai``.
    """

    gateway: str = ""
    declared: frozenset[str] | None = None
    call_id: str | None = None


Rendered = dict[str, Any] | str  # JSON, or Markdown

_RENDERERS: dict[Format, Callable[[Answer, Mapping[str, Item], FormatOptions], Rendered]] = {
    Format.JSON: lambda answer, *_: msgspec.to_builtins(answer),
    Format.TYPES: lambda answer, items, options: types_markdown(answer, items, options.gateway),
    Format.MARKDOWN: lambda answer, *_: markdown(answer),
    Format.ANTHROPIC: lambda answer, items, options: anthropic(answer, items, options.declared),
    Format.OPENAI: lambda answer, items, options: openai(answer, items, options.call_id),
    Format.MCP: lambda answer, items, _: mcp([answer], items),
}
_WITH_TOOLS = {Format.TYPES, Format.ANTHROPIC, Format.OPENAI, Format.MCP}


def render(
    form: Format,
    answer: Answer,
    items: Callable[[Sequence[str]], Mapping[str, Item]],
    options: FormatOptions,
) -> Rendered:
    """Render an answer; the schemas of tools come from ``items``, see ``Backend.items``.

    While the store is unavailable, the hits are rendered without the schemas.
    """
    return _RENDERERS[form](
        answer, whole_tools([answer], items) if form in _WITH_TOOLS else {}, options
    )
