"""What the editors of the syntaxes share."""

from collections.abc import Mapping
from typing import Any, TypeAlias

Keys: TypeAlias = tuple[str, ...]  # the keys from the top of a document to an entry
Value: TypeAlias = Mapping[str, Any]


class EditError(ValueError):
    """Why a text cannot be read or edited.

    Attributes:
        line: The line from 1, if known.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def nested(keys: Keys, value: Value) -> Value:
    """The value within one mapping for each key."""
    for key in reversed(keys):
        value = {key: value}
    return value


def line_at(text: str, at: int) -> int:
    """The number of the line of a place, from 1."""
    return text.count("\n", 0, at) + 1


def newline_of(text: str) -> str:
    """How the first line of a text ends."""
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"
