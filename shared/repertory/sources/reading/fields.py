"""What an author wrote of an item in front matter or a manifest, whatever shape it was given."""

from typing import Any

from repertory.sources.reading.policy import KEYS
from repertory.text import one_line

# These have a place of their own in an item.
_NAMED = KEYS | {"name", "description", "tags", "keywords"}


def text_field(fields: dict[str, Any], key: str) -> str:
    """A field as one line of text; empty where it is missing or not a single value."""
    value = fields.get(key)
    if value is None or isinstance(value, bool | list | dict):
        return ""
    return one_line(str(value))


def is_true(value: object) -> bool:
    """Whether an author said yes, be it as a YAML boolean or as a word."""
    return str(value).strip().lower() in {"true", "yes", "on", "1"}


def tags(fields: dict[str, Any]) -> tuple[str, ...]:
    """The tags and keywords of an item, its metadata's included: lists, or words with commas."""
    metadata = fields.get("metadata")
    places = [fields, metadata] if isinstance(metadata, dict) else [fields]
    found: set[str] = set()
    for value in (place.get(key) for place in places for key in ("tags", "keywords")):
        words = value.split(",") if isinstance(value, str) else value
        if isinstance(words, list):
            found.update(one_line(word) for word in words if isinstance(word, str))
    return tuple(sorted(found - {""}))


def extra(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that an item has no place of its own for."""
    return {key: value for key, value in fields.items() if key not in _NAMED}
