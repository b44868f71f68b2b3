"""A skill as the text of a ``SKILL.md``, generated from the indexed item.

Every process writes the same bytes for the same item, whatever its disk holds. YAML 1.1 and 1.2
readers parse the front matter identically, because any value that is not plain words is JSON.
"""

import json
import re
from typing import Any

from repertory.catalogue.item import Item
from repertory.catalogue.policy import set_fields
from repertory.catalogue.skill_format import (
    MAX_COMPATIBILITY_LENGTH,
    MAX_DESCRIPTION_LENGTH,
    is_skill_name,
)
from repertory.sources.reading import fields

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9 ,.'()/-]*(?<![ ,])")
_TEXTS = frozenset({"license", "compatibility", "allowed-tools"})
_SPECIAL = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")  # YAML readers refuse or fold


def front_matter(item: Item) -> dict[str, Any]:
    """The fields of a skill: those of its author, and its policies.

    Fields of the format are converted to the types it requires: texts, or for ``metadata`` texts
    by name. A strict reader that finds another type refuses the skill and all skills beside it.
    """
    said_apart = fields.when_to_use(item.extra)
    description = item.description.removesuffix(said_apart).rstrip() or item.description
    found = {"name": item.name, "description": description, **item.extra}
    nested = fields.tags({"metadata": item.extra.get("metadata")})
    own = [tag for tag in item.tags if tag not in nested]
    found |= {"tags": own} if own else {}
    decided = set_fields(item.policy)
    found |= {key: [*one] if isinstance(one, tuple) else one for key, one in decided.items()}
    for key in _TEXTS & found.keys():
        found[key] = _text(found[key])
    if isinstance(metadata := found.get("metadata"), dict):
        found["metadata"] = {key: _text(value) for key, value in metadata.items()}
    return {key: value for key, value in found.items() if value is not None}


def skill_text(item: Item) -> str:
    """The text of a skill's ``SKILL.md``."""
    lines = [f"{_scalar(key)}: {_value(value)}" for key, value in front_matter(item).items()]
    return "\n".join(["---", *lines, "---", "", item.body])


def defect(item: Item) -> str:
    """Why hosts of the Agent Skills format may refuse a skill; empty if they accept it.

    The format's reference validator accepts names in any script; MCP's conformance suite does not.
    """
    if not (is_skill_name(item.name) and item.name.isascii()):
        name = repr(item.name[:100])
        return f"its name {name} is not lower-case letters of ASCII, digits and single hyphens"
    shown = front_matter(item)
    if not 0 < len(shown["description"]) <= MAX_DESCRIPTION_LENGTH:
        return f"its description does not have 1 to {MAX_DESCRIPTION_LENGTH:,} characters"
    if not 0 < len(shown.get("compatibility", " ")) <= MAX_COMPATIBILITY_LENGTH:
        return f"its compatibility does not have 1 to {MAX_COMPATIBILITY_LENGTH} characters"
    if not isinstance(shown.get("metadata", {}), dict):
        return "its metadata are not values by name"
    return ""


def _text(value: object) -> str | None:
    """A value as text: a list becomes words, other values JSON."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return " ".join(value)
    return json.dumps(value, ensure_ascii=False)


def _value(value: object) -> str:
    if isinstance(value, str):
        return _scalar(value)
    return _json(value)


def _scalar(text: str) -> str:
    is_plain = _PLAIN.fullmatch(text) is not None and text.lower() not in _SPECIAL
    return text if is_plain else _json(text)


def _json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
