"""What is indexed, in a list and one by one, out of a search engine."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from repertory.catalogue.item import Item, item_key
from repertory.errors import StoreError, UnknownItemError
from repertory.index.keywords.document import Entry
from repertory.index.keywords.index import KeywordIndex
from repertory.index.vectors import Filter

if TYPE_CHECKING:  # which looks items up itself
    from repertory.search.engine import SearchEngine

MOST_SUGGESTED = 3


def entries(engine: "SearchEngine", where: Filter) -> list[Entry]:
    """What is indexed, by id, as far as a filter lets it through.

    Raises:
        StoreError: The items cannot be read now.
    """
    index = engine.keywords
    if index is None:
        raise StoreError("The items cannot be read now: " + " ".join(engine.degraded))
    rows = np.arange(len(index))
    found = (index.entries[row] for row in rows[index.allowed(rows, where)])
    return sorted(found, key=lambda entry: entry.id)


def items(engine: "SearchEngine", ids: Sequence[str]) -> dict[str, Item]:
    """Some indexed items, whole, by id; what is not there is left out.

    Raises:
        StoreError: The store cannot be read now.
    """
    if engine.collection is None:
        raise StoreError("The items cannot be read now: " + " ".join(engine.degraded))
    records = engine.collection.records([item_key(item_id) for item_id in ids])
    return {
        item_id: msgspec.convert(records[item_id], Item) for item_id in ids if item_id in records
    }


def item(engine: "SearchEngine", item_id: str) -> Item:
    """One indexed item, whole.

    Raises:
        UnknownItemError: There is none of that id.
        StoreError: The store cannot be read now.
    """
    if found := items(engine, [item_id]):
        return found[item_id]
    raise _unknown(engine.keywords, item_id)


def row_of(index: KeywordIndex, item: str) -> int:
    """The row of an item, by its id, or by its name where no other item has that.

    Raises:
        UnknownItemError: There is no such item, or there are several.
    """
    if (row := index.row_of.get(item)) is not None:
        return row
    rows = index.names.exact(item)
    rows = [row for row in rows if index.entries[row].name == item] or rows
    if len(rows) > 1:
        ids = " or ".join(index.entries[row].id for row in rows[:MOST_SUGGESTED])
        raise UnknownItemError(f"Several items are called {item[:200]!r}; say {ids}.")
    if not rows:
        raise _unknown(index, item)
    return rows[0]


def _unknown(index: KeywordIndex | None, item_id: str) -> UnknownItemError:
    close = " or ".join(close_to(index, item_id))
    hint = f"; did you mean {close}?" if close else "."
    return UnknownItemError(f"There is no item {item_id[:200]!r}{hint}")


def close_to(index: KeywordIndex | None, item_id: str) -> list[str]:
    """The ids of the items whose names are most like that of an id which nobody has."""
    index = index or KeywordIndex.empty()
    name = re.split(r"__|/", item_id)[-1]
    rows = index.names.close(item_id) or index.names.close(name)
    best = sorted(rows, key=lambda row: -rows[row])[:MOST_SUGGESTED]
    return [index.entries[row].id for row in best]
