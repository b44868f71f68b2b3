"""The indexed items of a search engine: as a list, and one by one."""

from collections.abc import Sequence

import msgspec
import numpy as np

from repertory.catalogue.item import Item, item_key
from repertory.errors import StoreError
from repertory.index.keywords.document import Entry
from repertory.index.vectors import Filter
from repertory.search.engine import SearchEngine
from repertory.search.identify import unknown


def entries(engine: SearchEngine, where: Filter) -> list[Entry]:
    """The indexed entries that a filter allows, by id.

    Raises:
        StoreError: The items cannot be read now.
    """
    index = engine.keywords
    if index is None:
        raise StoreError("The items cannot be read now: " + " ".join(engine.degraded))
    rows = np.arange(len(index))
    found = (index.entries[row] for row in rows[index.allowed(rows, where)])
    return sorted(found, key=lambda entry: entry.id)


def items(engine: SearchEngine, ids: Sequence[str]) -> dict[str, Item]:
    """Some whole indexed items by id; unknown ids are left out.

    Raises:
        StoreError: The store cannot be read now.
    """
    if engine.collection is None:
        raise StoreError("The items cannot be read now: " + " ".join(engine.degraded))
    records = engine.collection.records([item_key(item_id) for item_id in ids])
    return {
        item_id: msgspec.convert(records[item_id], Item) for item_id in ids if item_id in records
    }


def item(engine: SearchEngine, item_id: str) -> Item:
    """One indexed item, whole.

    Raises:
        UnknownItemError: No item has that id.
        StoreError: The store cannot be read now.
    """
    if found := items(engine, [item_id]):
        return found[item_id]
    raise unknown(engine.keywords, item_id)
