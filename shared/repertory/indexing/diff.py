"""Compares hashes to find changes. Pure: no input or output."""

from collections.abc import Callable, Collection, Mapping

import msgspec

from repertory.catalogue.item import Item
from repertory.coordination.deltas import REMOVED
from repertory.index.vectors import State


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that make the index equal to the sources.

    Attributes:
        written: The items to write, new ones first.
        removed: The ids of items that are gone.
        emptied: The names of sources that are suddenly empty; their items are kept.
    """

    written: list[Item]
    removed: list[str]
    emptied: frozenset[str]

    def without(self, failed: Mapping[str, str]) -> "Changes":
        """The changes without those that failed before.

        Args:
            failed: The failed hashes by item; ``REMOVED`` for a removal.
        """
        if not failed:
            return self
        return msgspec.structs.replace(
            self,
            written=[one for one in self.written if failed.get(one.id) != one.metadata_hash()],
            removed=[one for one in self.removed if failed.get(one) != REMOVED],
        )


def diff(
    items: Mapping[str, Item],
    states: Mapping[str, State],
    keeps: Callable[[State], bool] = lambda _: False,
    prune: bool = False,
    others: Collection[str] = (),
    holds: Callable[[State, Item], bool] = lambda *_: False,
) -> Changes:
    """Compare the items of the sources with the indexed ones.

    A failure is never a deletion: items of a failed source, unreadable items, and all items of a
    suddenly empty source are kept.

    Args:
        items: The items that were read, by id.
        states: The indexed items, by id.
        keeps: Whether an item that was not read may still exist.
        prune: Whether to remove the items of a suddenly empty source.
        others: The sources with items that are missing from ``items``, because they were not read
            again, are in quarantine, or are not compared now.
        holds: Whether an indexed item wins over a new item of another source with the same id.
    """
    offering = {item.source for item in items.values()}.union(others)
    emptied = frozenset(
        state.source
        for state in states.values()
        if state.source not in offering and not keeps(state) and not prune
    )
    added, changed = [], []
    for item in items.values():
        state = states.get(item.id)
        if state is None:
            added.append(item)
        elif item.metadata_hash() != state.metadata_hash and not holds(state, item):
            changed.append(item)  # the hash covers the text as well
    removed = [
        state.item
        for state in states.values()
        if state.item not in items and state.source not in emptied and not keeps(state)
    ]
    return Changes(written=[*added, *changed], removed=sorted(removed), emptied=emptied)
