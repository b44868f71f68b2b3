"""Finds where the terms of one item occur, and how the item spells them.

The index has only a term's total weight in an item. These details are read from the item itself,
for the few items that are shown.
"""

from collections.abc import Collection, Sequence
from threading import Lock

from cachetools import LRUCache, cached

from repertory.catalogue.item import Item, Kind
from repertory.index.keywords.document import (
    BODY,
    SHOWN_DESCRIPTION,
    WRITTEN,
    Entry,
    fields,
    spoken_tags,
)
from repertory.index.keywords.tokens import spellings

MAX_KEPT = 300  # items whose words are cached, because shown items are often shown again


class Places:
    """The fields and spellings of an item's terms.

    Args:
        entry: The item's entry in the keyword index.
        item: The whole item, which has more fields; None if it is unavailable.
        with_body: Whether to also read the body. Otherwise a term that occurs only there counts as
            unread.
    """

    def __init__(self, entry: Entry, item: Item | None, *, with_body: bool = False) -> None:
        self._words = [
            (field, spellings(text))
            for field, text in _texts(entry, item)
            if with_body or field != BODY.name
        ]
        self._unread = _unread_field(entry, item)

    def of(self, key: str, unread: str) -> dict[str, str]:
        """An indexed term's spelling by field, in the order name, description, server, ….

        If no field that was read has the term, the spelling is ``unread``, and the field is the
        unread one; empty if there are several unread fields.
        """
        spelling: dict[str, str] = {}
        is_written, key = key.startswith(WRITTEN), key.removeprefix(WRITTEN)
        for field, words in self._words:
            for written, term in words:
                if key == (written if is_written else term):
                    spelling.setdefault(field, written)
                    break
        return spelling or {self._unread: unread}

    def first(self, keys: Sequence[str]) -> str:
        """The term that occurs in the most important field; ties go to the first term."""
        for _, words in self._words if len(keys) > 1 else ():
            held = {term for _, term in words}
            if key := next((one for one in keys if one in held), ""):
                return key
        return keys[0]

    def has_all(self, stems: Collection[str]) -> bool:
        """Whether all stems occur in the fields that were read."""
        return {*stems} <= {term for _, words in self._words for _, term in words}

    def words(self) -> list[str]:
        """All words that were read, as spelt in the item, each once and in a stable order."""
        return list(dict.fromkeys(written for _, words in self._words for written, _ in words))


# Cached, so that a search does not read the long texts of its hits again.
@cached(LRUCache(MAX_KEPT), lambda entry, item: (entry.id, entry.hash, item is None), Lock())
def places_of(entry: Entry, item: Item | None) -> Places:
    """The places of an item's terms, without its body."""
    return Places(entry, item)


def _texts(entry: Entry, item: Item | None) -> list[tuple[str, str]]:
    """The texts of an item with the names of their fields, most important first."""
    if item:
        return [(field.name, text) for field, text in fields(item)]
    return [
        ("name", " ".join(entry.names)),
        ("description", f"{entry.description} {' '.join(spoken_tags(entry))}"),
        ("server", entry.server),
    ]


def _unread_field(entry: Entry, item: Item | None) -> str:
    """The field of a term that does not occur in any field that was read; empty if ambiguous."""
    if item is None and len(entry.description) >= SHOWN_DESCRIPTION:
        return ""  # the entry's description is truncated
    return "parameters" if entry.kind is Kind.TOOL else "body"
