"""The ledger of a collection: what it holds once every job on its way has been done."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence

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
        backlog: What is still to be sent off.
        news: When something was last confirmed or sent, on the caller's clock.
        total: How many items were sent off since the ledger was opened.
        position: Up to where its deltas were followed.
    """

    def __init__(self, collection: str, position: str, now: float) -> None:
        self.collection = collection
        self.states: dict[str, State] = {}
        self.pending: dict[str, str] = {}
        self.failed: dict[str, str] = {}
        self.backlog: deque[Item] = deque()
        self.news = now
        self.total = 0
        self.position = position
        self._latest = 0
        self._per_source: Counter[str] | None = None

    def load(self, states: Iterable[State], failed: Mapping[str, str]) -> None:
        """Begin again with what the collection holds now, and what was given up."""
        self.states = {state.item: state for state in states}
        self.pending, self.failed = {}, dict(failed)
        self.backlog.clear()
        self._latest = max([self._latest, *(state.revision for state in self.states.values())])
        self._per_source = None

    def next_revision(self, milliseconds: int) -> int:
        """A revision above every one before, whatever the clock says."""
        self._latest = max(self._latest + 1, milliseconds)
        return self._latest

    def send(self, items: Sequence[Item], removed: Sequence[str], revision: int) -> None:
        """Note that jobs for these are on their way."""
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
        self.total += len(items) + len(removed)
        self._per_source = None

    def confirm(self, hashes: Mapping[str, str]) -> None:
        """Note what was announced as done."""
        for item, found in hashes.items():
            if self.pending.get(item) == found:
                del self.pending[item]
            if self.failed.get(item) == found:
                del self.failed[item]

    def give_up(self, hashes: Mapping[str, str]) -> None:
        """Note what was given up; it is no longer waited for, and not sent again as it is."""
        for item, found in hashes.items():
            if self.pending.get(item) == found:
                del self.pending[item]
                self.failed[item] = found

    def known(self) -> dict[str, State]:
        """The states to compare with: what failed counts as there, so that it is not sent again."""
        if not self.failed:
            return self.states
        known = dict(self.states)
        for item, found in self.failed.items():
            if found == REMOVED:
                known.pop(item, None)
            elif item in known:
                known[item] = msgspec.structs.replace(known[item], metadata_hash=found)
            else:
                known[item] = State(
                    item=item, source="", content_hash="", metadata_hash=found, revision=0
                )
        return known

    @property
    def per_source(self) -> Counter[str]:
        """How many items there are of each source."""
        if self._per_source is None:
            self._per_source = Counter(state.source for state in self.states.values())
        return self._per_source
