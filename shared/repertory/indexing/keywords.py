"""The last stage: the keyword index, made equal to what the collection holds."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from repertory.catalogue.item import Item, item_key
from repertory.errors import StoreCorruptError
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.snapshot import Snapshot, SnapshotStore, pack, unpack
from repertory.index.vectors import Collection, State

READ_AT_ONCE = 500  # records


def load(snapshots: SnapshotStore, collection: str) -> Snapshot | None:
    """The stored keyword index of a collection; None if it must be built."""
    data = snapshots.load(collection)
    if data is None:
        return None
    try:
        return unpack(data)
    except StoreCorruptError:  # it holds nothing that cannot be built again
        return None


def synchronised(
    index: KeywordIndex,
    states: Mapping[str, State],
    known: Mapping[str, Item],
    collection: Collection,
) -> KeywordIndex:
    """An index equal to what the collection holds, by the hashes of both; itself if it is already.

    Args:
        index: The index as it was stored, or an empty one.
        states: What the collection holds.
        known: Items that were just read, which saves reading them from the collection.
        collection: Has the rest.
    """
    hashes = {entry.id: entry.hash for entry in index.entries}
    removed = [item for item in hashes if item not in states]
    stale = [
        state.item for state in states.values() if hashes.get(state.item) != state.metadata_hash
    ]
    if not removed and not stale:
        return index
    return index.updated(removed, _items(stale, states, known, collection))


def refreshed(
    index: KeywordIndex, items: Sequence[str], collection: Collection
) -> tuple[KeywordIndex, int]:
    """An index equal to what the collection holds of these items; itself if it is already.

    Returns:
        The index, and the newest revision of the items, 0 if all are gone.
    """
    states = {state.item: state for state in collection.states(items)}
    rows = index.row_of
    removed = [item for item in items if item in rows and item not in states]
    stale = [
        state.item
        for state in states.values()
        if state.item not in rows or index.entries[rows[state.item]].hash != state.metadata_hash
    ]
    if removed or stale:
        index = index.updated(removed, _items(stale, states, {}, collection))
    return index, max((state.revision for state in states.values()), default=0)


def save(
    snapshots: SnapshotStore,
    collection: str,
    index: KeywordIndex,
    revision: int,
    position: str = "",
) -> None:
    """Store a keyword index; see ``Snapshot``."""
    snapshots.save(collection, pack(index, revision, position))


def _items(
    wanted: list[str],
    states: Mapping[str, State],
    known: Mapping[str, Item],
    collection: Collection,
) -> Iterable[Item]:
    unknown = []
    for item_id in wanted:
        item = known.get(item_id)
        if item is not None and item.metadata_hash() == states[item_id].metadata_hash:
            yield item
        else:
            unknown.append(item_id)
    for start in range(0, len(unknown), READ_AT_ONCE):
        records = collection.records(
            [item_key(item) for item in unknown[start : start + READ_AT_ONCE]]
        )
        yield from (msgspec.convert(record, Item) for record in records.values())
