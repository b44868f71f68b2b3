"""The items that all sources offer together, updated item by item."""

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from repertory.catalogue.item import Item
from repertory.catalogue.policies import Policies
from repertory.catalogue.policy import Rule
from repertory.indexing.item_problems import problems_between
from repertory.sources.configured import Catalogue
from repertory.sources.source import Problem, Severity

_CALLED = frozenset({"mcp", "openapi"})  # the types of sources whose tools can be called
_NO_RULES: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())


class MergedItems:
    """The items of a catalogue, with its policies applied.

    If several sources offer the same id, the source that more callers may see wins, so that a
    hidden item never replaces a visible one. Otherwise an MCP server or a web API wins over a file
    that lists tools under its name, and else the earlier source wins. Once every source was read, a
    policy for an unknown item is a problem.

    Attributes:
        items: The offered items, by id.
        per_source: The number of these items by source.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self.items: dict[str, Item] = {}
        self.per_source: Counter[str] = Counter()
        self._policies = Policies(catalogue.rules, catalogue.may_change())
        self._names = [source.name for source in catalogue.sources]
        self._servers = {source.name for source in catalogue.sources if source.type in _CALLED}
        self._audiences = {source.name: source.visible_to for source in catalogue.sources}
        self._left_out: dict[str, list[Problem]] = {}  # by id
        self._rules: dict[str, tuple[frozenset[int], frozenset[int]]] = {}  # used, withheld
        self._used: Counter[int] = Counter()
        self._withheld: Counter[int] = Counter()

    def update(self, ids: Iterable[str], offered: Sequence[Mapping[str, Item]]) -> None:
        """Update some items.

        Args:
            ids: Their ids.
            offered: The current items of each source, by id, in the order of the catalogue.
        """
        for item_id in ids:
            if (before := self.items.pop(item_id, None)) is not None:
                self.per_source[before.source] -= 1
            self._left_out.pop(item_id, None)
            found = [items[item_id] for items in offered if item_id in items]
            item = self._winner(item_id, found) if found else None
            rules = _NO_RULES
            if item is not None:
                applied = self._policies.apply(item)
                rules = applied.used, applied.withheld
                self.items[item_id] = applied.item
                self.per_source[item.source] += 1
            self._note(item_id, rules)

    def problems(self, *, is_whole: bool) -> list[Problem]:
        """The problems between items, and those of the policies.

        Args:
            is_whole: Whether every item was read, so that a missing one does not exist.
        """
        rules = self._policies.rules
        return [
            *(problem for problems in self._left_out.values() for problem in problems),
            *(_withheld(rule) for at, rule in enumerate(rules) if self._withheld[at]),
            *(_unused(rule) for at, rule in enumerate(rules) if is_whole and not self._used[at]),
            *problems_between(self.items.values(), self._names, are_all=is_whole),
        ]

    def precedes(self, source: str, other: str) -> bool:
        """Whether an item of one source wins over an item of another source with the same id."""
        audience, others = self._audiences.get(source, ()), self._audiences.get(other, ())
        if _is_wider(audience, others) or _is_wider(others, audience):
            return _is_wider(audience, others)
        return self._rank(source) < self._rank(other)

    def _rank(self, source: str) -> tuple[bool, int]:
        return source not in self._servers, self._names.index(source)

    def _winner(self, item_id: str, found: Sequence[Item]) -> Item:
        first, *others = sorted(found, key=lambda item: item.source not in self._servers)
        for other in others:
            item = other
            if self.precedes(item.source, first.source):
                first, item = item, first
            self._left_out.setdefault(item_id, []).append(_left_out(item, first))
        return first

    def _note(self, item_id: str, rules: tuple[frozenset[int], frozenset[int]]) -> None:
        """Update the counts of the policies that apply to an item."""
        used, withheld = self._rules.pop(item_id, _NO_RULES)
        self._used.subtract(used)
        self._withheld.subtract(withheld)
        self._used.update(rules[0])
        self._withheld.update(rules[1])
        if rules != _NO_RULES:
            self._rules[item_id] = rules


def _is_wider(audience: Sequence[str], other: Sequence[str]) -> bool:
    """Whether an audience is a proper superset of another; an empty list means everyone."""
    return bool(other) and (not audience or {*audience} > {*other})


def _left_out(item: Item, first: Item) -> Problem:
    return Problem(
        severity=Severity.WARNING,
        message=f"Left out: the source {first.source} offers {item.id} already; rename one of "
        "them.",
        path=item.path,
        item=item.id,
        sources=(item.source, first.source),
    )


def _unused(rule: Rule) -> Problem:
    message = f"{rule.place} is about {rule.item!r}, and no item has that id or name."
    return Problem(severity=Severity.WARNING, message=message)


def _withheld(rule: Rule) -> Problem:
    message = (
        f"{rule.place} is about {rule.item!r}, which is also an item outside of its folder. A "
        "discovered file may change only the items of its own folder. Run `repertory config trust "
        f"{shlex.quote(rule.file)}` to allow more."
    )
    return Problem(severity=Severity.WARNING, message=message)
