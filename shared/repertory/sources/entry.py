"""What a configuration says of one source, checked: its options, its name, its path."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repertory.errors import ConfigurationError
from repertory.text import is_clean

LONGEST_NAME = 100


def check_options(entry: Mapping[str, Any], *known: str) -> None:
    """Refuse an entry with an option that its type of source does not have.

    Raises:
        ConfigurationError: An option is unknown; the message names it and those there are.
    """
    for option in entry:
        if option not in {"type", *known}:
            raise ConfigurationError(
                f"A source of type {entry.get('type')!r} has no option {option!r}; "
                f"it has {', '.join(known)}."
            )


def checked_name(name: object) -> str:
    """A source's name, which starts the ids of its items and so must not hold a slash.

    Raises:
        ConfigurationError: It is not such a name.
    """
    good = isinstance(name, str) and name.strip() == name and 0 < len(name) <= LONGEST_NAME
    if not isinstance(name, str) or not good or "/" in name or not is_clean(name):
        raise ConfigurationError(
            f"The source name {name!r} cannot be used; give one of 1 to {LONGEST_NAME} characters "
            "without a slash."
        )
    return name


def source_path(entry: Mapping[str, Any], base: Path) -> Path:
    """The path of an entry, ``~`` expanded, absolute; a relative one starts from a folder.

    Raises:
        ConfigurationError: There is none, or it cannot be a path.
    """
    path = entry.get("path")
    if not isinstance(path, str) or not path.strip() or not is_clean(path):
        raise ConfigurationError(
            f"A source of type {entry.get('type')!r} needs a `path`, and {path!r} is none; "
            "name the folder to read."
        )
    try:
        return base.absolute() / Path(path).expanduser()
    except RuntimeError as exc:
        raise ConfigurationError(f"The path {path!r} names a home that is unknown.") from exc
