"""Keeps a keyword index equal to its collection: loads a snapshot, then applies the deltas."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from repertory.catalogue.item import END_KEY
from repertory.coordination.deltas import REMOVED
from repertory.coordination.ports import Coordination
from repertory.errors import StoreCorruptError, StoreError
from repertory.index.keywords.index import KeywordIndex
from repertory.index.vectors import Collection, next_key
from repertory.indexing import keyword_sync

BUILD_CLAIM_S = 60.0  # how long other processes wait for the one that builds the index
POLL_INTERVAL_S = 0.2  # while another process builds it
# Revisions, usually milliseconds, to reread, because jobs may be done out of order.
OVERLAP = 600_000
MAX_COMPARED = 5_000  # items that may be compared at once; more are compared in slices
PAGE = 1_000  # states per read
STEP = 5_000  # items that are compared and reread at once
STORE_INTERVAL_S = 60.0  # between two intermediate stores while a snapshot is made

_log = logging.getLogger(__name__)


class KeywordFeed:
    """The keyword index of a collection, which follows its changes. Not thread-safe.

    Attributes:
        collection: The collection.
        index: The index; a new object after each change.
        revision: Grows with each change.
        is_partial: Whether the index comes from an incomplete snapshot; see ``keep``.
    """

    def __init__(self, collection: Collection, coordination: Coordination) -> None:
        self.collection = collection
        self.index = KeywordIndex.empty()
        self.revision = 0
        self.is_partial = False
        self._whole = 0  # the revision up to which the index is complete
        self._position = ""
        self._is_shared = True
        self._is_followed = False  # whether ``advance`` has succeeded before
        self._snapshots = coordination.snapshots
        self._deltas = coordination.deltas
        self._claims = coordination.claims

    def open(self, *, is_shared: bool = True) -> None:
        """Load the snapshot, or build the index if no snapshot is readable.

        One process builds at a time; the others wait for its snapshot. The index is also built if
        snapshots, deltas and claims are unavailable.

        Args:
            is_shared: Whether other processes write to the store. Otherwise a snapshot is always
                complete, because it is dropped before any write. Its position then belongs to an
                earlier process and is replaced.

        Raises:
            StoreError: The collection is unreadable.
        """
        self._is_shared = is_shared
        claim = f"keywords:{self.collection.name}"
        deadline = time.monotonic() + BUILD_CLAIM_S
        is_ours = False
        try:
            end = "" if is_shared else self._deltas.position(self.collection.name)
            # Load once more after taking the claim, as another process may have just stored it.
            while not (self._load() or is_ours) and time.monotonic() < deadline:
                is_ours = bool(self._claims.take([claim], BUILD_CLAIM_S))
                if not is_ours:
                    time.sleep(POLL_INTERVAL_S)
            if end and not self.is_partial:
                self._position = end
        except StoreError as error:
            _log.warning("keywords_without_snapshot", extra={"error": str(error)})
        try:
            if not len(self.index):
                self.compare()
                with contextlib.suppress(StoreError):
                    self.save()
                    self._drop_if_old()
        finally:
            if is_ours:
                with contextlib.suppress(StoreError):
                    self._claims.release([claim])

    def _drop_if_old(self) -> None:
        """Drop the new snapshot if other threads wrote to the collection since it was read."""
        name = self.collection.name
        if not self._is_shared and self._deltas.position(name) != self._position:
            self._snapshots.drop(name)

    def advance(self, wait: float = 0.0) -> None:
        """Apply announced changes; see ``catch_up`` for a gap.

        Args:
            wait: Seconds to wait for an announcement.

        Raises:
            StoreError: The deltas or the collection are unavailable. No change is lost.
        """
        delta = self._deltas.since(self.collection.name, self._position, wait)
        # Read the collection, because an announcement may be outdated by now.
        if delta.gap:
            self.catch_up()
        else:
            self._read(delta.hashes.items())
            self._whole = self.revision
        self._position, self.is_partial = delta.position, False
        self._is_followed = True

    def catch_up(self) -> None:
        """Apply recent writes, and compare all items if their number still differs.

        The index of a large shared collection may then still lack changes. They are left to the
        verification, unless this is the first call of ``advance``: items that were removed since
        the snapshot would stay searchable for minutes, and a command ends before that.

        Raises:
            StoreError: The collection is unreadable.
        """
        self._read(self._recent())
        count = self.collection.count_items()
        is_left = self._is_followed and self._is_shared and count > MAX_COMPARED
        if count != len(self.index) and not is_left:
            self.compare()

    def check(self, reported: Callable[[], int]) -> None:
        """Make the index equal to the collection if their numbers of items differ.

        Args:
            reported: Returns the number of written items according to the last report.

        Raises:
            StoreError: The collection has fewer items than were written, so files were removed.
        """
        count = self.collection.count_items()
        if count == len(self.index):
            return
        if count < min(len(self.index), written := reported()):
            raise StoreCorruptError(
                f"The index has only {count:,} of its {written:,} items because some of its files "
                "were removed: run `repertory index`."
            )
        self.compare()

    def reread(self, items: Sequence[str]) -> None:
        """Make the index equal to the collection for some items.

        Raises:
            StoreError: The collection is unreadable.
        """
        index, revision = keyword_sync.refreshed(self.index, items, self.collection)
        self._replace(index, revision)

    def compare(self) -> None:
        """Make the index equal to the collection by comparing all hashes.

        Raises:
            StoreError: The collection is unreadable.
        """
        with contextlib.suppress(StoreError):
            self._position = self._deltas.position(self.collection.name)
        states = {state.item: state for state in self.collection.states()}
        index = keyword_sync.synchronised(self.index, states, self.collection)
        revision = max((state.revision for state in states.values()), default=0)
        self._replace(index, revision)
        self._whole, self.is_partial = self.revision, False

    def keep(self, after_step: Callable[[], object] = lambda: None) -> None:
        """Store a snapshot of the collection's current state.

        Partial snapshots are stored on the way. If the call is interrupted, the next call and any
        process that loads the snapshot continue from there.

        Args:
            after_step: Called after each ``STEP`` items.

        Raises:
            StoreError: The collection is unreadable, or the snapshot cannot be stored.
        """
        self._load()
        name, has_gap = self.collection.name, True
        stored, at = self.index, time.monotonic()

        def store() -> None:
            nonlocal stored, at
            after_step()
            if self.index is not stored and time.monotonic() - at >= STORE_INTERVAL_S:
                keyword_sync.save(self._snapshots, name, self.index, self._whole, self._position)
                stored, at = self.index, time.monotonic()

        while has_gap:  # after a gap, also read the changes that were announced meanwhile
            delta = self._deltas.since(name, self._position)
            # Read everything, because nothing verifies a snapshot, so later ones would have the
            # same fault.
            self._read(self._all() if delta.gap else delta.hashes.items(), store)
            self._position, has_gap = delta.position, delta.gap
        self._whole = self.revision
        self.save()

    def save(self) -> None:
        """Store the index as a snapshot, and drop the deltas that it includes.

        Raises:
            StoreError: The snapshot cannot be stored.
        """
        name = self.collection.name
        keyword_sync.save(self._snapshots, name, self.index, self.revision, self._position)
        self._deltas.trim(name, self._position)

    def announce(self, items: Sequence[str]) -> None:
        """Announce items again, so that other processes and the snapshot get their current version.

        Raises:
            StoreError: The deltas are unavailable.
        """
        held = keyword_sync.hashes(self.index, items)
        hashes = {item: held.get(item, REMOVED) for item in items}
        self._deltas.announce(self.collection.name, hashes)

    def differing(self, hashes: Mapping[str, str]) -> list[str]:
        """The items whose hashes differ from the index."""
        held = keyword_sync.hashes(self.index, hashes)
        return [item for item, found in hashes.items() if held.get(item, REMOVED) != found]

    def _read(
        self, hashes: Iterable[tuple[str, str]], after_step: Callable[[], object] = lambda: None
    ) -> None:
        """Update the index for items whose hashes differ from these, step by step."""
        found = iter(hashes)
        while some := dict(islice(found, STEP)):
            self.reread(self.differing(some))
            after_step()

    def _all(self) -> Iterator[tuple[str, str]]:
        """All items of the collection or the index, each with its hash in the collection."""
        start = 0
        while start < END_KEY:
            states = self.collection.page(start, PAGE)
            end = next_key(states, PAGE)
            stored = {state.item: state.metadata_hash for state in states}
            removed = {*self.index.ids_between(start, end)} - stored.keys()
            yield from (stored | dict.fromkeys(removed, REMOVED)).items()
            start = end

    def _recent(self) -> Iterator[tuple[str, str]]:
        """The items that may have been written since the index was complete, each with its hash."""
        start, since = 0, max(0, self._whole - OVERLAP)
        while start < END_KEY:
            states = self.collection.page(start, PAGE, since)
            yield from ((state.item, state.metadata_hash) for state in states)
            start = next_key(states, PAGE)

    def _load(self) -> bool:
        stored = keyword_sync.load(self._snapshots, self.collection.name)
        if stored is None:
            return False
        self.index, self.revision, self._position = stored
        self._whole = self.revision
        self.is_partial = not self._position
        return True

    def _replace(self, index: KeywordIndex, revision: int) -> None:
        if index is not self.index:
            self.index = index
            # A removal has no revision in the states, but it is also a change.
            self.revision = max(self.revision + 1, revision)
