"""Editorial policy: people's decisions about an item, which change its rank in searches."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from repertory.text import one_line

MAX_PHRASES = 20  # limit for the pins of an item, and for its aliases
MAX_PHRASE_LENGTH = 128  # characters
MAX_TEXT_LENGTH = 2_000  # characters
MAX_AUTHOR_BOOST = 0.25  # limit for authors, who are not trusted

FIELDS = ("pin", "boost", "aliases", "deprecated_by", "when_not_to_use")


class Policy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The decisions about one item.

    Attributes:
        pin: Phrases; a query that contains all words of one ranks the item first.
        boost: -1…1; raises or lowers the item's confidence wherever it is found.
        aliases: Other names that find the item like its own.
        deprecated_by: The id or the name of the item to use instead, which ranks above it.
        when_not_to_use: A warning in words; a query about it lowers the item.
        is_vouched: Whether the pins come from the configuration, which gives them more effect.
    """

    pin: tuple[str, ...] = ()
    boost: float = 0.0
    aliases: tuple[str, ...] = ()
    deprecated_by: str = ""
    when_not_to_use: str = ""
    is_vouched: bool = False


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """The decision of a configuration about some items.

    Attributes:
        item: The id or the name of an item, or a pattern of either with ``*``, ``?`` and ``[…]``.
        changes: The fields of the policy that it sets; the others are unchanged.
        place: Where it is written, for messages.
        file: The configuration that it is written in.
        within: The folder of a discovered configuration that is not trusted; otherwise empty. Such
            a rule applies only to items of that folder, with no more effect than their authors.
    """

    item: str
    changes: Mapping[str, Any]
    place: str
    file: str = ""
    within: str = ""


def set_fields(policy: Policy | None) -> dict[str, Any]:
    """The fields that a policy sets, for people and models."""
    given = {field: getattr(policy, field) for field in FIELDS} if policy else {}
    return {field: value for field, value in given.items() if value}


def apply_rules(policy: Policy | None, rules: Iterable[Rule]) -> Policy | None:
    """Apply rules to a policy; later ones override fields of earlier ones. None if none is set."""
    result = policy or Policy()
    for rule in rules:
        result = msgspec.structs.replace(result, **rule.changes)
        if "pin" in rule.changes:
            is_vouched = bool(result.pin) and not rule.within
            result = msgspec.structs.replace(result, is_vouched=is_vouched)
        if rule.within and "boost" in rule.changes:
            result = msgspec.structs.replace(result, boost=min(result.boost, MAX_AUTHOR_BOOST))
    return None if result == Policy() else result


def is_bounded(rule: Rule) -> bool:
    """Whether a rule has less effect than written, because its file is not trusted."""
    boost = rule.changes.get("boost", 0.0)
    return bool(rule.within and (rule.changes.get("pin") or boost > MAX_AUTHOR_BOOST))


def defect(field: str, value: object) -> str:
    """The requirement that an invalid value fails, as the end of a message; empty if valid."""
    if field in ("pin", "aliases"):
        good = (
            isinstance(value, list)
            and len(value) <= MAX_PHRASES
            and all(_is_phrase(one) for one in value)
        )
        wanted = f"a list of at most {MAX_PHRASES} phrases of 1 to {MAX_PHRASE_LENGTH} characters"
    elif field == "boost":
        good = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 1
        wanted = "a number from -1 to 1"
    else:
        good = isinstance(value, str) and len(value) <= MAX_TEXT_LENGTH
        wanted = f"a text of at most {MAX_TEXT_LENGTH:,} characters"
    return "" if good else wanted


def as_field(value: Any) -> Any:  # noqa: ANN401 - of any field
    """Convert a valid value to the form a policy holds: clean text, tuples and floats."""
    if isinstance(value, str):
        return one_line(value)
    return tuple(map(one_line, value)) if isinstance(value, list) else float(value)


def _is_phrase(value: object) -> bool:
    if not isinstance(value, str) or len(value) > MAX_PHRASE_LENGTH:
        return False
    return any(character.isalnum() for character in value)
