"""The result of a tool call."""

from collections.abc import Mapping
from typing import Any

import msgspec

from repertory.text import clean, cut

MAX_TEXT_LENGTH = 2_000  # characters


class CallResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A tool's result in MCP's format.

    Attributes:
        content: Blocks of text, images and links.
        structured_content: The result as data, if the tool provides it.
        is_error: Whether the tool reports that it failed; ``content`` says why.
    """

    content: list[dict[str, Any]] = []
    structured_content: Any = None
    is_error: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the result as MCP JSON, without structured content if it is None."""
        plain = msgspec.to_builtins(self)
        return {name: value for name, value in plain.items() if value is not None}

    @property
    def words(self) -> str:
        """All text blocks, cut to ``MAX_TEXT_LENGTH``."""
        texts = "\n".join(str(block["text"]) for block in self.content if "text" in block)
        return cut(clean(texts).strip(), MAX_TEXT_LENGTH)


def result_of(answer: Mapping[str, Any]) -> CallResult:
    """Convert a server's answer, which must already be a valid MCP result."""
    return CallResult(
        content=answer.get("content", []),
        structured_content=answer.get("structuredContent"),
        is_error=bool(answer.get("isError")),
    )
