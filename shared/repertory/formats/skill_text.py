"""A skill as the text of a ``SKILL.md``, made from what is indexed.

Every process writes the same bytes for the same item, whatever its disk holds. The front matter is
YAML that all readers of YAML 1.1 and 1.2 read alike: a value that is not plain words is JSON.
"""

import json
import re
from typing import Any

from repertory.catalogue.item import Item
from repertory.catalogue.policy import set_fields
from repertory.catalogue.skill_format import MAX_DESCRIPTION_LENGTH, is_skill_name
from repertory.sources.reading import fields

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9 ,.'()/-]*(?<![ ,])")
_SPECIAL = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")  # a YAML reader refuses or folds


def front_matter(item: Item) -> dict[str, Any]:
    """The fields of a skill: its author's, and the policies that were decided about it."""
    found = {"name": item.name, "description": item.description, **item.extra}
    nested = fields.tags({"metadata": item.extra.get("metadata")})
    own = [tag for tag in item.tags if tag not in nested]
    return found | ({"tags": own} if own else {}) | set_fields(item.policy)


def skill_text(item: Item) -> str:
    """The text of a skill's ``SKILL.md``."""
    lines = [f"{_scalar(key)}: {_value(value)}" for key, value in front_matter(item).items()]
    return "\n".join(["---", *lines, "---", "", item.body])


def defect(item: Item) -> str:
    """Why the Agent Skills format does not allow a skill; empty if it does."""
    if not is_skill_name(item.name):
        return f"its name {item.name[:100]!r} is not lower-case letters, digits and single hyphens"
    if not 0 < len(item.description) <= MAX_DESCRIPTION_LENGTH:
        return f"its description does not have 1 to {MAX_DESCRIPTION_LENGTH:,} characters"
    return ""


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
