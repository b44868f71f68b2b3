"""Types and functions shared by the JSON, TOML and YAML editors."""

from collections.abc import Mapping
from typing import Any, TypeAlias

Keys: TypeAlias = tuple[str, ...]  # the keys from the top of a document to an entry
Value: TypeAlias = Mapping[str, Any]


class EditError(ValueError):
    """A text cannot be parsed or edited; the message says why.

    Attributes:
        line: The line number, from 1; None if unknown.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def nested(keys: Keys, value: Value) -> Value:
    """The value, wrapped in one mapping per key."""
    for key in reversed(keys):
        value = {key: value}
    return value


def line_at(text: str, at: int) -> int:
    """The line number of an offset, from 1."""
    return text.count("\n", 0, at) + 1


def newline_of(text: str) -> str:
    """The line break of a text: that of its first line."""
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"
