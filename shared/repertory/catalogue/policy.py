"""Editorial policy: what people decide about an item, whatever a search finds of it."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

MOST_PHRASES = 20  # pins of an item, and aliases
LONGEST_PHRASE = 128  # characters
LONGEST_TEXT = 2_000  # characters

FIELDS = ("pin", "boost", "aliases", "deprecated_by", "when_not_to_use")


class Policy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is decided about one item.

    Attributes:
        pin: Phrases; a query that holds all the words of one puts the item first.
        boost: -1…1; raises or lowers the item's confidence wherever it is found.
        aliases: Other names, by which it is found as by its own.
        deprecated_by: The id or the name of the item to use instead, which comes before it.
        when_not_to_use: What it is not for, in words; a query about that lowers it.
        is_vouched: Whether the configuration gave the pins, which lets them do more.
    """

    pin: tuple[str, ...] = ()
    boost: float = 0.0
    aliases: tuple[str, ...] = ()
    deprecated_by: str = ""
    when_not_to_use: str = ""
    is_vouched: bool = False


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What a configuration decides about some items.

    Attributes:
        item: The id or the name of an item, or a pattern of either with ``*``, ``?`` and ``[…]``.
        changes: The fields of the policy that it sets; the others stay.
        place: Where it is written, for people.
    """

    item: str
    changes: Mapping[str, Any]
    place: str


def told(policy: Policy | None) -> dict[str, Any]:
    """What a policy says, by field, for people and models."""
    given = {field: getattr(policy, field) for field in FIELDS} if policy else {}
    return {field: value for field, value in given.items() if value}


def decided(policy: Policy | None, rules: Iterable[Rule]) -> Policy | None:
    """A policy after rules, of which later ones win field by field; None where nothing is left."""
    result = policy or Policy()
    for rule in rules:
        result = msgspec.structs.replace(result, **rule.changes)
        if "pin" in rule.changes:
            result = msgspec.structs.replace(result, is_vouched=bool(result.pin))
    return None if result == Policy() else result


def defect(field: str, value: object) -> str:
    """What the value of a field must be and is not, for the end of a sentence; else empty."""
    if field in ("pin", "aliases"):
        good = (
            isinstance(value, list)
            and len(value) <= MOST_PHRASES
            and all(_is_phrase(one) for one in value)
        )
        wanted = f"a list of at most {MOST_PHRASES} phrases of 1 to {LONGEST_PHRASE} characters"
    elif field == "boost":
        good = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 1
        wanted = "a number from -1 to 1"
    else:
        good = isinstance(value, str) and len(value) <= LONGEST_TEXT
        wanted = f"a text of at most {LONGEST_TEXT:,} characters"
    return "" if good else wanted


def _is_phrase(value: object) -> bool:
    if not isinstance(value, str) or len(value) > LONGEST_PHRASE:
        return False
    return any(character.isalnum() for character in value)
