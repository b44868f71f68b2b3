"""The ``[[policy]]`` tables of a configuration, and their application to items."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from fnmatch import translate
from typing import Any

import msgspec

from repertory.catalogue.item import Item
from repertory.catalogue.policy import FIELDS, Rule, apply_rules, as_field, defect
from repertory.errors import ConfigurationError
from repertory.text import normalized

MAX_RULES = 1_000
MAX_ITEM_LENGTH = 1_000  # characters
MAX_SETS = 20  # per pattern: the time to parse each grows with the rest of the pattern
_SIGNS = frozenset("*?[")


class Applied(msgspec.Struct, frozen=True):
    """The result of applying policies to an item.

    Attributes:
        item: The item under the policies.
        used: The numbers of the rules that match it.
        withheld: The numbers of the matching rules that may not change it.
    """

    item: Item
    used: frozenset[int]
    withheld: frozenset[int]


def rules(tables: object, file: str, within: str = "") -> tuple[Rule, ...]:
    """Parse the ``policy`` tables of a configuration file.

    Args:
        tables: The value of ``policy``.
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
    if len(item) > MAX_ITEM_LENGTH or item.count("[") > MAX_SETS:
        raise ConfigurationError(
            f"{place} names its `item` by more than {MAX_ITEM_LENGTH:,} characters, or {MAX_SETS} "
            "times `[`; shorten it."
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
            given = str(value).lower() if isinstance(value, bool) else repr(value)  # as in TOML
            raise ConfigurationError(
                f"{place} ({item}): `{field}` is {given}; it must be {wanted}."
            )
        changes[field] = as_field(value)
    return Rule(item=item, changes=changes, place=place)


class Policies:
    """Rules that change the policies of items.

    Args:
        rules: The rules. If several match an item, later ones override earlier ones per field.
            Rules and names may contain decomposed accents.
        may: Whether a rule may change an item that it matches.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        may: Callable[[Rule, Item], bool] = lambda _rule, _item: True,
    ) -> None:
        self.rules = rules
        self._may = may
        self._named: defaultdict[str, list[int]] = defaultdict(list)
        self._patterns: list[tuple[int, re.Pattern[str]]] = []
        for at, rule in enumerate(rules):
            named = normalized("NFC", rule.item)
            self._named[named].append(at)
            if _SIGNS.intersection(named):
                self._patterns.append((at, re.compile(translate(named))))
        # Most items match no pattern; one combined pattern rules them out 20 times faster.
        any_pattern = "|".join(pattern.pattern for _, pattern in self._patterns)
        self._any_pattern = re.compile(any_pattern or "(?!)")

    def apply(self, item: Item) -> Applied:
        """Apply the rules to an item; it is the same object if none matches."""
        if not self.rules:
            return Applied(item, frozenset(), frozenset())
        keys = [normalized("NFC", key) for key in (item.id, item.name)]
        about = {at for key in keys for at in self._named.get(key, ())}
        if any(map(self._any_pattern.match, keys)):
            about |= {at for at, pattern in self._patterns if any(map(pattern.match, keys))}
        free = {at for at in about if self._may(self.rules[at], item)}
        if free:
            rules = [self.rules[at] for at in sorted(free)]
            item = item.under(apply_rules(item.policy, rules))
        return Applied(item, frozenset(about), frozenset(about - free))
