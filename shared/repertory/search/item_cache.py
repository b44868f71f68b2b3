"""A cache of whole items that were shown recently, which saves reads from the store."""

import threading
from collections.abc import Iterable

from cachetools import LRUCache

from repertory.catalogue.item import Item
from repertory.index.keywords.document import Entry

MAX_CHARACTERS = 8_000_000  # of names, descriptions and bodies
BESIDE_TEXT = 1_000  # the size of an item without any text, in characters


class ItemCache:
    """An LRU cache of items by id and hash, so that a changed item is a miss. Thread-safe.

    Args:
        max_characters: The maximum total size of all texts.
    """

    def __init__(self, max_characters: int = MAX_CHARACTERS) -> None:
        self._items: LRUCache[tuple[str, str], Item] = LRUCache(max_characters, _size)
        self._lock = threading.Lock()

    def get(self, entries: Iterable[Entry]) -> dict[str, Item]:
        """The cached items of some entries, by id."""
        with self._lock:
            found = ((entry.id, self._items.get((entry.id, entry.hash))) for entry in entries)
            return {item_id: item for item_id, item in found if item}

    def keep(self, items: Iterable[Item]) -> None:
        """Add items, except those that are too large for the cache."""
        for item in items:
            hashed = item.metadata_hash()
            if _size(item) <= self._items.maxsize:
                with self._lock:
                    self._items[item.id, hashed] = item


def _size(item: Item) -> int:
    return BESIDE_TEXT + len(item.name) + len(item.description) + len(item.body)
