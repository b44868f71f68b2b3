"""The fields of front matter or a manifest, read leniently."""

from typing import Any

from repertory.sources.reading.policy import KEYS, parts_of
from repertory.text import one_line

# These have their own attributes in an item.
_NAMED = KEYS | {"name", "description", "tags", "keywords"}


def text_field(fields: dict[str, Any], key: str) -> str:
    """Return a field as one line of text; empty if it is missing or not a single value."""
    value = fields.get(key)
    if value is None or isinstance(value, bool | list | dict):
        return ""
    return one_line(str(value))


def when_to_use(fields: dict[str, Any]) -> str:
    """When to use a skill, by its author; hosts show this after the description.

    It may be in the metadata, and a list of occasions.
    """
    metadata = fields.get("metadata")
    places = [fields, metadata] if isinstance(metadata, dict) else [fields]
    for value in (place.get(key) for place in places for key in ("when_to_use", "when-to-use")):
        occasions = value if isinstance(value, list) else [value]
        if text := one_line("; ".join(one for one in occasions if isinstance(one, str))):
            return text
    return ""


def is_true(value: object) -> bool:
    """Whether a value means yes, as a YAML boolean or as a word."""
    return str(value).strip().lower() in {"true", "yes", "on", "1"}


def hidden_by(fields: dict[str, Any]) -> str:
    """How an author hides a skill, as a clause with "it" as its subject; empty if not hidden."""
    if is_true(fields.get("disable-model-invocation")):
        return "it has `disable-model-invocation: true`, so that only people use it"
    metadata = fields.get("metadata")
    is_internal = isinstance(metadata, dict) and is_true(metadata.get("internal"))
    return "it has `internal: true` in its `metadata`" if is_internal else ""


def tags(fields: dict[str, Any]) -> tuple[str, ...]:
    """Return the tags and keywords, metadata included, from lists or comma-separated text."""
    metadata = fields.get("metadata")
    places = [fields, metadata] if isinstance(metadata, dict) else [fields]
    found: set[str] = set()
    for value in (place.get(key) for place in places for key in ("tags", "keywords")):
        words = parts_of(value) if isinstance(value, str) else value
        if isinstance(words, list):
            found.update(one_line(word) for word in words if isinstance(word, str))
    return tuple(sorted(found - {""}))


def extra(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields for which an item has no attribute of its own."""
    return {key: value for key, value in fields.items() if key not in _NAMED}
