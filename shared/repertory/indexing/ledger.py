"""The ledger of a collection: what it holds once every job on its way has been done."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from repertory.catalogue.item import Item
from repertory.coordination.deltas import REMOVED
from repertory.index.vectors import State


class Ledger:
    """What one collection holds, and what is on its way to it. Pure: no input or output.

    Attributes:
        collection: The collection's name.
        states: What it holds once all that is on its way has arrived, by item.
        pending: The hashes that are on their way, by item; ``REMOVED`` for those that leave.
        failed: The hashes that were given up, by item.
        news: When something was last confirmed or sent, on the caller's clock.
        position: Up to where its deltas were followed.
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
        """Begin again with what the collection holds now, and what was given up.

        Args:
            states: What it holds.
            failed: The hashes that were given up, by item.
            deleted: The newest revision at which anything was deleted from it.
            is_lost: Whether what was on its way may never arrive.
        """
        there = {state.item: state for state in states}
        revisions = (state.revision for state in there.values())
        self._latest = max([self._latest, deleted, *revisions])
        if is_lost:
            self.pending = {}
        for item, found in self.pending.items():
            if found == REMOVED:
                there.pop(item, None)
            elif item in self.states:  # what is tried again may never have been sent from here
                there[item] = self.states[item]
        self.states, self.failed = there, dict(failed)
        self._backlog.clear()
        self._per_source = None

    def queue(self, items: Sequence[Item]) -> None:
        """Replace what is still to be sent."""
        self._backlog = deque(items)

    def next_batch(self, window: int) -> list[Item]:
        """What to send now, so that no more than a window of items is on its way.

        It is filled up when half of it is free, not item by item.
        """
        room = window - len(self.pending)
        if len(self._backlog) > room and room < window // 2:
            return []
        return [self._backlog.popleft() for _ in range(min(room, len(self._backlog)))]

    def send(
        self, items: Sequence[Item], removed: Sequence[str], *, milliseconds: int, now: float
    ) -> int:
        """Note that jobs for these are on their way.

        Returns:
            Their revision: above every one before, whatever the time of day says.
        """
        self._latest = revision = max(self._latest + 1, milliseconds)
        for item in items:
            state = State(
                item=item.id,
                source=item.source,
                content_hash="",  # nobody asks for it here
                metadata_hash=item.metadata_hash(),
                revision=revision,
            )
            self.states[item.id] = state
            self.pending[item.id] = state.metadata_hash
            self.failed.pop(item.id, None)
        for gone in removed:
            self.states.pop(gone, None)
            self.pending[gone] = REMOVED
            self.failed.pop(gone, None)
        self.news = now
        self._sent += len(items) + len(removed)
        self._per_source = None
        return revision

    def confirm(self, hashes: Mapping[str, str], now: float) -> None:
        """Note what was announced as done."""
        for item, found in hashes.items():
            self.news = now
            if self.pending.get(item) == found:
                del self.pending[item]

    def give_up(self, hashes: Mapping[str, str]) -> None:
        """Note all that is given up: it is not waited for, and not sent again as it is.

        What was given up before and is no longer is waited for: somebody has it tried again.
        """
        for item, found in hashes.items():
            if self.pending.get(item) == found:
                del self.pending[item]
                self.failed[item] = found
        for item in set(self.failed) - set(hashes):
            self.pending[item] = self.failed.pop(item)

    def known(self) -> dict[str, State]:
        """The states to compare with: what failed counts as there, so that it is not sent again."""
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
        """How many items are on their way or wait to be sent."""
        return len(self.pending) + len(self._backlog)

    def progress(self) -> dict[str, Any]:
        """How far filling the collection is, as plain data."""
        done = self._sent - len(self.pending)
        return {
            "collection": self.collection,
            "done": done,
            "total": self._sent + len(self._backlog),
        }

    @property
    def per_source(self) -> Counter[str]:
        """How many items there are of each source."""
        if self._per_source is None:
            self._per_source = Counter(state.source for state in self.states.values())
        return self._per_source
