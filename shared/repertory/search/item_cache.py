"""The whole items that were shown lately: to show one again asks the store for nothing."""

import threading
from collections.abc import Iterable

from cachetools import LRUCache

from repertory.catalogue.item import Item
from repertory.index.keywords.document import Entry

MAX_CHARACTERS = 8_000_000  # of names, descriptions and bodies
BESIDE_TEXT = 1_000  # characters that an item without any text counts as


class ItemCache:
    """Items by id and hash, so that an item that has changed is another one. Thread-safe.

    Those that were used least lately are forgotten.

    Args:
        max_characters: The size of all texts together.
    """

    def __init__(self, max_characters: int = MAX_CHARACTERS) -> None:
        self._items: LRUCache[tuple[str, str], Item] = LRUCache(max_characters, _size)
        self._lock = threading.Lock()

    def get(self, entries: Iterable[Entry]) -> dict[str, Item]:
        """The items of some entries, by id; those that are not here are left out."""
        with self._lock:
            found = ((entry.id, self._items.get((entry.id, entry.hash))) for entry in entries)
            return {item_id: item for item_id, item in found if item}

    def keep(self, items: Iterable[Item]) -> None:
        """Keep items that were read; one that is too large for it is not kept."""
        for item in items:
            hashed = item.metadata_hash()
            if _size(item) <= self._items.maxsize:
                with self._lock:
                    self._items[item.id, hashed] = item


def _size(item: Item) -> int:
    return BESIDE_TEXT + len(item.name) + len(item.description) + len(item.body)
