"""Looks up items of an index: all that a filter allows, or one by its id or unique name."""

import re

from repertory.catalogue.item import Item
from repertory.errors import UnknownItemError
from repertory.index.keywords.document import Entry
from repertory.index.keywords.index import KeywordIndex
from repertory.index.vectors import Filter
from repertory.search.engine import SearchEngine

MAX_SUGGESTED = 3


def entries(index: KeywordIndex, where: Filter) -> list[Entry]:
    """The entries that a filter allows, by id."""
    rows = index.all_rows()
    found = index.entries(rows[index.allowed(rows, where)].tolist())
    return sorted(found, key=lambda entry: entry.id)


def item(engine: SearchEngine, item: str) -> Item:
    """One indexed item, whole, by its id, or by its name if no other item has it.

    Raises:
        UnknownItemError: No item fits, or several do.
        StoreError: The store cannot be read now.
    """
    if found := engine.items([item]):
        return found[item]
    item_id = engine.keywords.entry(row_of(engine.keywords, item)).id
    if found := engine.items([item_id]):
        return found[item_id]
    raise unknown(engine.keywords, item)


def row_of(index: KeywordIndex, item: str) -> int:
    """The row of an item, by its id, or by its name if no other item has it.

    Raises:
        UnknownItemError: No item fits, or several do.
    """
    if (row := index.row_of(item)) is not None:
        return row
    rows = index.names.exact(item)
    rows = [row for row in rows if index.entry(row).name == item] or rows
    if len(rows) > 1:
        ids = " or ".join(sorted(one.id for one in index.entries(rows))[:MAX_SUGGESTED])
        raise UnknownItemError(f"Several items are called {item[:200]!r}; use {ids}.")
    if not rows:
        raise unknown(index, item)
    return rows[0]


def unknown(index: KeywordIndex | None, item_id: str) -> UnknownItemError:
    """The error for an unknown id, with similar ids or advice."""
    close = " or ".join(close_to(index, item_id))
    hint = f"; did you mean {close}?" if close else "; search for it."
    return UnknownItemError(f"There is no item {item_id[:200]!r}{hint}")


def close_to(index: KeywordIndex | None, item_id: str) -> list[str]:
    """The ids of the items with names most similar to an unknown id, without the id itself.

    The index may still have the id of a file that was just deleted.
    """
    index = index or KeywordIndex.empty()
    name = re.split(r"__|/", item_id)[-1]
    rows = index.names.close(item_id) or index.names.close(name)
    ids = {row: found for row in rows if (found := index.entry(row).id) != item_id}
    best = sorted(ids, key=lambda row: (-rows[row], ids[row]))[:MAX_SUGGESTED]
    return [ids[row] for row in best]
