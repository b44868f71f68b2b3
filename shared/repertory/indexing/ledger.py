"""The ledger of a collection: what it will hold once every pending job is done."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import msgspec

from repertory.catalogue.item import Item
from repertory.coordination.deltas import REMOVED
from repertory.index.vectors import State
from repertory.stats import Building


class Ledger:
    """What one collection holds, and what is pending. Pure: no input or output.

    Attributes:
        collection: The collection's name.
        states: What it will hold, by item.
        pending: The hashes that were sent and not confirmed, by item; ``REMOVED`` for deletions.
        failed: The hashes that failed, by item.
        news: When something was last confirmed or sent, on the caller's clock.
        position: Up to where its deltas were read.
        added, changed, removed: How many items were sent so far, by what happened to them.
    """

    NOTHING: ClassVar[Counter[str]] = Counter()

    def __init__(self, collection: str, now: float) -> None:
        self.collection = collection
        self.states: dict[str, State] = {}
        self.pending: dict[str, str] = {}
        self.failed: dict[str, str] = {}
        self.news = now
        self.position = ""
        self._backlog: deque[Item] = deque()
        self.added = self.changed = self.removed = 0
        self._sent = 0
        self._latest = 0
        self._per_source: Counter[str] | None = None

    def load(
        self,
        states: Iterable[State],
        failed: Mapping[str, str],
        *,
        deleted: int = 0,
        is_lost: bool = True,
    ) -> None:
        """Start again from what the collection holds now.

        Args:
            states: What it holds.
            failed: The hashes that failed, by item.
            deleted: The newest revision at which anything was deleted from it.
            is_lost: Whether pending items may never arrive.
        """
        there = {state.item: state for state in states}
        revisions = (state.revision for state in there.values())
        self._latest = max([self._latest, deleted, *revisions])
        if is_lost:
            self.pending = {}
        for item, found in self.pending.items():
            if found == REMOVED:
                there.pop(item, None)
            elif item in self.states:  # a retried item may not have been sent from here
                there[item] = self.states[item]
        self.states, self.failed = there, dict(failed)
        self._backlog.clear()
        self._per_source = None

    def queue(self, items: Sequence[Item]) -> None:
        """Replace the items that wait to be sent."""
        self._backlog = deque(items)

    def next_batch(self, window: int) -> list[Item]:
        """The items to send now, so that at most ``window`` items are pending.

        The window is refilled when half of it is free, not item by item.
        """
        room = window - len(self.pending)
        if len(self._backlog) > room and room < window // 2:
            return []
        return [self._backlog.popleft() for _ in range(min(room, len(self._backlog)))]

    def send(
        self, items: Sequence[Item], removed: Sequence[str], *, milliseconds: int, now: float
    ) -> int:
        """Mark items as pending.

        Returns:
            Their revision, higher than every one before, whatever the time of day says.
        """
        self._latest = revision = max(self._latest + 1, milliseconds)
        for item in items:
            state = State(
                item=item.id,
                source=item.source,
                content_hash="",  # not compared here
                metadata_hash=item.metadata_hash(),
                revision=revision,
            )
            if item.id in self.states:
                self.changed += 1
            else:
                self.added += 1
            self.states[item.id] = state
            self.pending[item.id] = state.metadata_hash
            self.failed.pop(item.id, None)
        for gone in removed:
            self.states.pop(gone, None)
            self.pending[gone] = REMOVED
            self.failed.pop(gone, None)
        self.news = now
        self.removed += len(removed)
        self._sent += len(items) + len(removed)
        self._per_source = None
        return revision

    def confirm(self, hashes: Mapping[str, str], now: float) -> None:
        """Mark announced items as done."""
        for item, found in hashes.items():
            self.news = now
            if self.pending.get(item) == found:
                del self.pending[item]

    def fail(self, hashes: Mapping[str, str]) -> None:
        """Mark failed items: stop waiting for them and do not resend the same version.

        Items no longer listed as failed have been retried and are pending again.

        Args:
            hashes: All failed hashes, by item.
        """
        for item, found in hashes.items():
            if self.pending.get(item) == found:
                del self.pending[item]
                self.failed[item] = found
        for item in set(self.failed) - set(hashes):
            self.pending[item] = self.failed.pop(item)

    def known(self) -> dict[str, State]:
        """The states to compare with. Failed items count as stored, so they are not sent again."""
        if not self.failed:
            return self.states
        known = dict(self.states)
        for item, found in self.failed.items():
            if found == REMOVED:
                known.pop(item, None)
                continue
            state = known.get(item) or State(
                item=item, source="", content_hash="", metadata_hash=found, revision=0
            )
            known[item] = msgspec.structs.replace(state, metadata_hash=found)
        return known

    @property
    def outstanding(self) -> int:
        """How many items are pending or wait to be sent."""
        return len(self.pending) + len(self._backlog)

    def unwritten(self) -> list[str]:
        """The ids of the items that are pending or wait to be sent."""
        return [*self.pending, *(item.id for item in self._backlog)]

    def progress(self) -> Building:
        """How many items were written to the collection, of how many so far."""
        done = self._sent - len(self.pending)
        total = self._sent + len(self._backlog)
        return Building(collection=self.collection, done=done, total=total)

    @property
    def per_source(self) -> Counter[str]:
        """How many items each source has."""
        if self._per_source is None:
            self._per_source = Counter(state.source for state in self.states.values())
        return self._per_source
