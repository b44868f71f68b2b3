"""The catalogue, page by page: the items of each server, then of each other source."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

import msgspec

from repertory.index.keywords.document import Entry
from repertory.search.engine import SearchEngine

PAGE_SIZE = 50  # items

Key = tuple[str, str]  # of a group: the field that it is filtered by, and its value


class Group(msgspec.Struct, frozen=True):
    """The items of one server or source.

    Attributes:
        field: ``server``, or ``source`` for items without a server.
        name: Of the server or source.
        total: The number of its items on all pages.
        entries: Those on this page.
        is_continued: Whether the page before has some, too.
    """

    field: str
    name: str
    total: int
    entries: Sequence[Entry]
    is_continued: bool = False


class Listing(msgspec.Struct, frozen=True):
    """One page of a list of items.

    Attributes:
        groups: The groups on this page.
        index: All groups with the number of their items.
        total: The number of items on all pages.
        page: From 1.
        pages: How many there are, at least 1.
    """

    groups: Sequence[Group]
    index: Sequence[tuple[Key, int]]
    total: int
    page: int
    pages: int

    @property
    def entries(self) -> list[Entry]:
        """The items on this page."""
        return [entry for group in self.groups for entry in group.entries]


class Ordered(msgspec.Struct, frozen=True):
    """Items in the order of the pages, and the number of those in each group."""

    entries: Sequence[Entry]
    totals: Mapping[Key, int]


def catalogue_of(engine: SearchEngine) -> Ordered:
    """All items of an engine in order; none without a keyword index."""
    return ordered([*engine.keywords.all()] if engine.keywords else [])


def ordered(entries: Iterable[Entry]) -> Ordered:
    """Some items in order."""
    in_order = sorted(entries, key=_order)
    return Ordered(in_order, Counter(map(_group, in_order)))


def listing(items: Ordered, page: int, shown: Callable[[Entry], Entry]) -> Listing:
    """A page of items as they are shown; the last one if there are fewer."""
    entries, totals = items.entries, items.totals
    pages = max(-(-len(entries) // PAGE_SIZE), 1)
    page = min(page, pages)
    start = (page - 1) * PAGE_SIZE
    before = _group(entries[start - 1]) if start else None
    groups = [
        Group(*key, totals[key], list(map(shown, some)), is_continued=key == before)
        for key, some in groupby(entries[start : start + PAGE_SIZE], key=_group)
    ]
    return Listing(groups, list(totals.items()), len(entries), page, pages)


def _group(entry: Entry) -> Key:
    return ("server", entry.server) if entry.server else ("source", entry.source)


def _order(entry: Entry) -> tuple[str, str, str, str]:
    """Servers come before other sources, since ``server`` precedes ``source``."""
    return *_group(entry), entry.name.casefold(), entry.id
