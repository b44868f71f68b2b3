"""Loads and stores the keyword index of a collection, and makes it equal to the collection."""

from collections.abc import Iterable, Mapping, Sequence

from repertory.catalogue.item import Item, item_key
from repertory.catalogue.records import items_of
from repertory.coordination.snapshots import SnapshotStore
from repertory.errors import StoreCorruptError
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.snapshot import Snapshot, packing, unpack
from repertory.index.vectors import Collection, State

READ_BATCH_SIZE = 500  # records


def load(snapshots: SnapshotStore, collection: str) -> Snapshot | None:
    """The stored keyword index of a collection; None if it must be built.

    A damaged snapshot is dropped.
    """
    stored = snapshots.load(collection)
    if stored is None:
        return None
    try:
        return unpack(stored.head, stored.segments)
    except StoreCorruptError:  # everything in it can be rebuilt
        snapshots.drop(collection)  # so that its damaged segments are not reused
        return None


def synchronised(
    index: KeywordIndex, states: Mapping[str, State], collection: Collection
) -> KeywordIndex:
    """An index equal to a whole collection; the same object if nothing differs.

    Args:
        index: The index to update.
        states: The states of all items in the collection, by item.
        collection: The collection, from which only differing items are read.
    """
    held = {entry.id: entry.hash for entry in index.all()}
    return _updated(index, held, states, collection)


def refreshed(
    index: KeywordIndex, items: Sequence[str], collection: Collection
) -> tuple[KeywordIndex, int]:
    """An index equal to a collection for some items; the same object if nothing differs.

    Returns:
        The index, and the newest revision of the items, 0 if all were removed.
    """
    states = {state.item: state for state in collection.states(items)}
    index = _updated(index, hashes(index, items), states, collection)
    return index, max((state.revision for state in states.values()), default=0)


def save(
    snapshots: SnapshotStore,
    collection: str,
    index: KeywordIndex,
    revision: int,
    position: str = "",
) -> None:
    """Store a keyword index; see ``Snapshot``."""
    snapshots.save(collection, *packing(index, revision, position))


def hashes(index: KeywordIndex, items: Iterable[str]) -> dict[str, str]:
    """The metadata hashes of some items in an index; missing ones are left out."""
    keys = {item_key(item): item for item in items}
    rows = index.rows_of([*keys])
    return {keys[key]: index.entry(row).hash for key, row in rows.items()}


def _updated(
    index: KeywordIndex,
    held: Mapping[str, str],
    states: Mapping[str, State],
    collection: Collection,
) -> KeywordIndex:
    """An index updated for some items; the same object if none of them differs.

    Args:
        index: The index to update.
        held: The hashes of those items that the index has.
        states: The states of those items that are stored.
        collection: The collection.
    """
    removed = [item for item in held if item not in states]
    changed = [
        state.item for state in states.values() if held.get(state.item) != state.metadata_hash
    ]
    if not removed and not changed:
        return index
    # Read lazily while indexing, because there may be many, and whole items are large.
    return index.updated(removed, _items(changed, collection))


def _items(wanted: Sequence[str], collection: Collection) -> Iterable[Item]:
    for start in range(0, len(wanted), READ_BATCH_SIZE):
        keys = [item_key(item) for item in wanted[start : start + READ_BATCH_SIZE]]
        yield from items_of(collection.records(keys).values())
