"""Validation of configuration entries: their options, names and paths."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from repertory.errors import ConfigurationError
from repertory.system.paths import expanded
from repertory.text import is_clean, is_unicode

MAX_NAME_LENGTH = 100
_INTERNAL = "store"  # an option that only the program sets

T = TypeVar("T")


def check_options(entry: Mapping[str, Any], *known: str) -> None:
    """Reject an entry with an unknown option.

    Raises:
        ConfigurationError: An option is unknown; the message names it and the known ones.
    """
    for option in entry:
        if option not in {"type", *known}:
            options = ", ".join(one for one in known if one != _INTERNAL)
            raise ConfigurationError(
                f"A source of type {entry.get('type')!r} has no option {option!r}; "
                f"it has {options}."
            )


def options_of(entry: Mapping[str, Any], kind: type[T]) -> T:
    """Convert the options of an entry to a struct.

    Raises:
        ConfigurationError: An option is invalid.
    """
    try:
        return msgspec.convert(dict(entry), kind)
    except msgspec.ValidationError as exc:
        raise ConfigurationError(
            f"A source of type {entry.get('type')!r} is invalid: {exc}"
        ) from exc


def checked_name(name: object) -> str:
    """Validate a source's name. It starts the ids of its items, so it has no slash.

    Raises:
        ConfigurationError: The name is invalid.
    """
    if not (isinstance(name, str) and is_name(name)):
        raise ConfigurationError(
            f"The source name {name!r} cannot be used; give one of 1 to {MAX_NAME_LENGTH} "
            "characters without a slash."
        )
    return name


def is_name(name: str) -> bool:
    """Whether a source can have this name."""
    return (
        name.strip() == name
        and 0 < len(name) <= MAX_NAME_LENGTH
        and "/" not in name
        and is_clean(name)
    )


def name_from(text: str) -> str:
    """Derive a source's name from a text; empty if no character of it is usable."""
    return re.sub(r"[^\w.-]", "-", text).strip("-.")[:MAX_NAME_LENGTH]


def source_path(entry: Mapping[str, Any], base: Path) -> Path:
    """Return an entry's absolute path, ``~`` expanded, relative paths based on ``base``.

    Raises:
        ConfigurationError: The path is missing or invalid.
    """
    path = entry.get("path")
    if not isinstance(path, str) or not path.strip():
        raise ConfigurationError(
            f"A source of type {entry.get('type')!r} needs a `path`, not {path!r}; "
            "name the folder to read."
        )
    found = path_of(path, base)
    if not is_clean(path) or not is_unicode(str(found)):
        raise ConfigurationError(
            f"The path {str(found)!r} has characters that cannot be shown; rename it."
        )
    return found


def path_of(text: str, base: Path) -> Path:
    """Make a path absolute, with ``~`` expanded and relative paths based on ``base``.

    Raises:
        ConfigurationError: It has a zero byte, or names the home of an unknown user.
    """
    if "\0" in text:
        raise ConfigurationError(f"The path {text!r} has a zero byte; write it without.")
    return base.absolute() / expanded(text)


def check_paths(entry: Mapping[str, Any], base: Path) -> None:
    """Check each path of an entry of any type.

    Raises:
        ConfigurationError: A path is invalid; see ``path_of``.
    """
    for key in ("path", "config", "url"):
        value = entry.get(key)
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str):
                path_of(text, base)
