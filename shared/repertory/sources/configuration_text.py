"""The text of a configuration file, read and checked by what changes a part of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from repertory.errors import ConfigurationError
from repertory.sources.reading import toml

BY_HAND = "edit the file by hand"


def parsed(text: str) -> dict[str, Any]:
    """What a text says; a mark of its encoding is no part of it.

    Raises:
        TomlError: It is not TOML.
    """
    return toml.parse(without_mark(text))


def without_mark(text: str) -> str:
    """A text without the mark of its encoding, with which some editors begin a file."""
    return text.removeprefix("\ufeff")


def is_toml(text: str) -> bool:
    """Whether a text can be read."""
    try:
        parsed(text)
    except toml.TomlError:
        return False
    return True


def checked(text: str, before: str, key: str, tables: Sequence[Mapping[str, Any]]) -> str:
    """The changed text, if it says what it said before, apart from the tables of one key.

    Args:
        text: The changed text.
        before: The text as it was.
        key: The key.
        tables: Its tables now; it is left out without any.

    Raises:
        ConfigurationError: It does not.
    """
    expected = {**parsed(before), key: [*tables]}
    if not tables:
        del expected[key]
    if not is_toml(text) or parsed(text) != expected:
        raise ConfigurationError(
            f"The configuration file cannot be changed without losing something; {BY_HAND}."
        )
    return text
