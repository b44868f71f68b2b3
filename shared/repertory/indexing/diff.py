"""Compares hashes to find what changed. Pure: no input or output."""

from collections.abc import Callable, Collection, Mapping

import msgspec

from repertory.catalogue.item import Item
from repertory.index.vectors import State


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that make the index equal to the sources.

    Attributes:
        added: Items that are not indexed.
        changed: Items whose text or other data changed.
        removed: Ids of items that are gone.
        kept: Ids of unreadable items, which stay as they were indexed.
        emptied: The names of sources that had items and now have none; theirs are kept.
    """

    added: list[Item]
    changed: list[Item]
    removed: list[str]
    kept: list[str]
    emptied: frozenset[str]

    @property
    def written(self) -> list[Item]:
        """The items to write."""
        return [*self.added, *self.changed]

    def without(self, failed: Mapping[str, str]) -> "Changes":
        """The changes, less those that failed before.

        Args:
            failed: Their hashes by item; empty for a removal.
        """
        if not failed:
            return self
        return msgspec.structs.replace(
            self,
            added=[one for one in self.added if failed.get(one.id) != one.metadata_hash()],
            changed=[one for one in self.changed if failed.get(one.id) != one.metadata_hash()],
            removed=[one for one in self.removed if failed.get(one) != ""],
        )


def diff(
    items: Mapping[str, Item],
    states: Mapping[str, State],
    keeps: Callable[[State], bool] = lambda _: False,
    prune: bool = False,
    others: Collection[str] = (),
    holds: Callable[[State, Item], bool] = lambda *_: False,
) -> Changes:
    """Compare what sources offer with what is indexed.

    A failure is never a deletion. The items of a failed source stay, an unreadable item stays, and
    so does everything of a source that is suddenly empty.

    Args:
        items: The items that were read, by id.
        states: The indexed items, by id.
        keeps: Whether an item that was not read may still exist.
        prune: Remove the items of a source that is suddenly empty.
        others: The sources that offer items which are not among ``items``: they were not read
            again, are in quarantine, or are not compared now.
        holds: Whether an indexed item keeps its place before one of another source with its id.
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
    removed: list[str] = []
    kept: list[str] = []
    for state in states.values():
        if state.item in items:
            continue
        stays = state.source in emptied or keeps(state)
        (kept if stays else removed).append(state.item)
    return Changes(
        added=added,
        changed=changed,
        removed=sorted(removed),
        kept=sorted(kept),
        emptied=emptied,
    )
