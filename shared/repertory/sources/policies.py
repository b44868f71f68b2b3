"""The ``[[policy]]`` tables of a configuration, and their application to items."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from fnmatch import translate
from typing import Any

import msgspec

from repertory.catalogue.item import Item
from repertory.catalogue.policy import FIELDS, Rule, apply_rules, defect
from repertory.errors import ConfigurationError
from repertory.sources.reading.policy import as_field

MAX_RULES = 1_000
_SIGNS = frozenset("*?[")


class Applied(msgspec.Struct, frozen=True):
    """What came of some rules.

    Attributes:
        unused: The rules that match no item.
        withheld: The rules that match an item that they may not change.
    """

    unused: list[Rule]
    withheld: list[Rule]


def rules(tables: object, file: str, within: str = "") -> tuple[Rule, ...]:
    """Parse the ``policy`` of a configuration file.

    Args:
        tables: The value.
        file: The file, for messages.
        within: See ``Rule``.

    Raises:
        ConfigurationError: A table is invalid; the message names the file, the table and the key.
    """
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ConfigurationError(
            f"{file}: `policy` is not a list of tables; write each as [[policy]] and its lines "
            "below."
        )
    if len(tables) > MAX_RULES:
        raise ConfigurationError(
            f"{file}: there are {len(tables):,} policies; {MAX_RULES:,} is the limit, so let one "
            "name several items with a pattern."
        )
    return tuple(
        msgspec.structs.replace(_rule(table, f"{file}: [[policy]] {at}"), file=file, within=within)
        for at, table in enumerate(tables, 1)
    )


def _rule(table: Mapping[str, Any], place: str) -> Rule:
    item = table.get("item")
    if not isinstance(item, str) or not item.strip():
        raise ConfigurationError(
            f"{place} needs an `item`, not {item!r}; name an item by its id or its name, "
            "or several by a pattern."
        )
    changes: dict[str, Any] = {}
    for field, value in table.items():
        if field == "item":
            continue
        if field not in FIELDS:
            raise ConfigurationError(
                f"{place} ({item}) has no key {field!r}; it has item, {', '.join(FIELDS)}."
            )
        if wanted := defect(field, value):
            raise ConfigurationError(
                f"{place} ({item}): `{field}` is {value!r}; it must be {wanted}."
            )
        changes[field] = as_field(value)
    return Rule(item=item, changes=changes, place=place)


def apply(
    given: Sequence[Rule],
    items: dict[str, Item],
    may: Callable[[Rule, Item], bool] = lambda _rule, _item: True,
) -> Applied:
    """Apply rules to items.

    Args:
        given: The rules. If several match an item, later ones override earlier ones per field.
        items: The items by id; matching ones are replaced.
        may: Whether a rule may change an item that it matches.
    """
    named: defaultdict[str, list[int]] = defaultdict(list)
    patterns: list[tuple[int, re.Pattern[str]]] = []
    for at, rule in enumerate(given):
        named[rule.item].append(at)
        if _SIGNS.intersection(rule.item):
            patterns.append((at, re.compile(translate(rule.item))))
    # Most items match no pattern; one combined pattern rules them out 20 times faster.
    any_pattern = re.compile("|".join(pattern.pattern for _, pattern in patterns) or "(?!)")
    used: set[int] = set()
    withheld: set[int] = set()
    for item in list(items.values()) if given else ():
        keys = (item.id, item.name)
        about = {at for key in keys for at in named.get(key, ())}
        if any(map(any_pattern.match, keys)):
            about |= {at for at, pattern in patterns if any(map(pattern.match, keys))}
        used |= about
        free = {at for at in about if may(given[at], item)}
        withheld |= about - free
        if free:
            rules = [given[at] for at in sorted(free)]
            items[item.id] = item.under(apply_rules(item.policy, rules))
    return Applied(
        unused=[rule for at, rule in enumerate(given) if at not in used],
        withheld=[given[at] for at in sorted(withheld)],
    )
