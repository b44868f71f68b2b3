"""The pages of the catalogue: the items of each server, then those of each other source."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

import msgspec

from repertory.index.keywords.document import Entry

PAGE_SIZE = 50  # items

Key = tuple[str, str]  # of a group: the field to filter by, and its value


class Group(msgspec.Struct, frozen=True):
    """The items of one server or source.

    Attributes:
        field: ``server``, or ``source`` for items without a server.
        name: The name of the server or source.
        total: The number of its items on all pages.
        entries: Its items on this page.
        is_continued: Whether it began on the previous page.
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
        page: The number of this page, from 1.
        pages: The number of pages, at least 1.
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


class OrderedItems(msgspec.Struct, frozen=True):
    """Items in the order of the pages, and the number of items in each group."""

    entries: Sequence[Entry]
    totals: Mapping[Key, int]


def ordered(entries: Iterable[Entry]) -> OrderedItems:
    """Some items in order."""
    in_order = sorted(entries, key=_order)
    return OrderedItems(in_order, Counter(map(_group, in_order)))


def listing(items: OrderedItems, page: int, shown: Callable[[Entry], Entry]) -> Listing:
    """A page of items, each passed through ``shown``; the last page if there are fewer."""
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
    """The sort key. Servers come before other sources, because ``server`` < ``source``."""
    return *_group(entry), entry.name.casefold(), entry.id
