"""The policies of an index's items, such as pins, and successors of deprecated items."""

from collections import defaultdict
from collections.abc import Collection
from functools import cached_property, lru_cache

import msgspec

from repertory.catalogue.policy import Policy
from repertory.index.keywords.document import Entry
from repertory.index.keywords.names import NameIndex
from repertory.index.keywords.parts import Parts
from repertory.index.keywords.query_words import plain
from repertory.index.keywords.tokens import terms

MAX_STEPS = 10  # the maximum length of a chain of successors


class Pin(msgspec.Struct, frozen=True):
    """A phrase that puts items first.

    Attributes:
        phrase: The phrase as written.
        terms: The terms that a query must contain.
        is_vouched: Whether the pin comes from the configuration, not only from the items' authors.
    """

    phrase: str
    terms: frozenset[str]
    is_vouched: bool

    def is_in(self, typed: Collection[str]) -> bool:
        """Whether a query contains the pin. An author's pin must also be half of the query."""
        return self.terms <= set(typed) and (self.is_vouched or 2 * len(self.terms) >= len(typed))


class PolicyIndex:
    """Looks up policies. The cost grows only with the number of items that have a policy."""

    def __init__(self, parts: Parts, names: NameIndex) -> None:
        self._parts = parts
        self._names = names
        self._against: dict[int, frozenset[str]] = {}

    def prepare(self) -> None:
        """Build all tables now, so that no search waits for them."""
        _ = self._pins, self.successors

    @cached_property
    def of(self) -> dict[int, Policy]:
        """The policies of the items that have one, by row."""
        return {
            row + part.start: policy
            for part in self._parts.all
            for row, policy in part.segment.policy_of.items()
            if part.alive is None or part.alive[row]
        }

    @cached_property
    def _pins(self) -> dict[str, dict[Pin, list[int]]]:
        """All pins, each under one of its terms, with the rows of its items."""
        pins: defaultdict[str, defaultdict[Pin, list[int]]]
        pins = defaultdict(lambda: defaultdict(list))
        for row, policy in self.of.items():
            for phrase in policy.pin:
                if held := _terms_of(phrase):
                    pins[min(held)][Pin(phrase, held, policy.is_vouched)].append(row)
        return {term: dict(found) for term, found in pins.items()}

    def pinned(self, query: str) -> dict[int, Pin]:
        """The pins that a query contains, by row; for each item the one with most terms."""
        if not self._pins:
            return {}
        typed = set(terms(plain(query)))
        held = [
            (pin, rows)
            for term in typed
            for pin, rows in self._pins.get(term, {}).items()
            if pin.is_in(typed)
        ]
        held.sort(key=lambda one: (len(one[0].terms), one[0].phrase))
        return {row: pin for pin, rows in held for row in rows}

    @cached_property
    def successors(self) -> dict[int, int]:
        """The row of the final successor of each deprecated item, by the item's row."""
        found = {row: self._last(row) for row, policy in self.of.items() if policy.deprecated_by}
        return {row: last for row, last in found.items() if last is not None}

    def _last(self, row: int) -> int | None:
        """The first successor that is not deprecated itself; None if missing."""
        for _ in range(MAX_STEPS):
            policy = self.of.get(row)
            if policy is None or not policy.deprecated_by:
                return row
            named = self._named(policy.deprecated_by, self._parts.entry(row))
            if named is None:
                return None
            row = named
        return None  # a cycle

    def _named(self, name: str, by: Entry) -> int | None:
        """The row that an item refers to by id or name; its own kind and source are preferred."""

        def unlike(row: int) -> tuple[bool, bool, bool, str]:
            entry = self._parts.entry(row)
            return entry.id != name, entry.kind != by.kind, entry.source != by.source, entry.id

        rows = self._names.exact(name)
        others = [row for row in rows if self._parts.entry(row).id != by.id]
        return min(others, key=unlike, default=None)

    def successors_of(self, rows: Collection[int]) -> set[int]:
        """The rows of the successors of some rows."""
        return {self.successors[row] for row in rows if row in self.successors}

    def against(self, row: int) -> frozenset[str]:
        """The terms of an item's warning, without those of its names and description."""
        if row not in self._against:
            entry = self._parts.entry(row)
            unfit = terms(entry.policy.when_not_to_use) if entry.policy else ()
            own = terms(" ".join((*entry.names, entry.description)))
            self._against[row] = frozenset(unfit).difference(own)
        return self._against[row]


@lru_cache(maxsize=10_000)  # each new index needs the phrases of all pins
def _terms_of(phrase: str) -> frozenset[str]:
    return frozenset(terms(plain(phrase)))
