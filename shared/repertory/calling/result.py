"""What a call of a tool gives back."""

from collections.abc import Mapping
from typing import Any

import msgspec

from repertory.text import clean, cut

LONGEST_WORDS = 2_000  # characters of what a tool says of its failure, where it is put in words


class CallResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a tool answered, as MCP has it.

    Attributes:
        content: The blocks of the answer: text, images, links.
        structured_content: The answer as data, where the tool gives it.
        is_error: Whether the tool itself says that it failed; ``content`` says why.
    """

    content: list[dict[str, Any]] = []
    structured_content: Any = None
    is_error: bool = False

    def as_json(self) -> dict[str, Any]:
        """The result as MCP writes it: structured content only where there is some."""
        structured = {"structuredContent": self.structured_content}
        return {
            "content": self.content,
            **(structured if self.structured_content is not None else {}),
            "isError": self.is_error,
        }

    @property
    def words(self) -> str:
        """All text of the answer, as far as it is not too long."""
        texts = "\n".join(str(block["text"]) for block in self.content if "text" in block)
        return cut(clean(texts).strip(), LONGEST_WORDS)


def result_of(answer: Mapping[str, Any]) -> CallResult:
    """The result that a server answered with, already known to have the form of one."""
    return CallResult(
        content=answer.get("content", []),
        structured_content=answer.get("structuredContent"),
        is_error=bool(answer.get("isError")),
    )
