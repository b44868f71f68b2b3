"""The ledgers of the collections that are written to, kept up to date with what workers do."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from repertory.catalogue.item import END_KEY
from repertory.coordination.deltas import REMOVED
from repertory.coordination.failures import Failure
from repertory.coordination.ports import Coordination
from repertory.index.vectors import VectorStore, next_key
from repertory.indexing.failed_items import FailedItems
from repertory.indexing.lag import Lag
from repertory.indexing.latest_scans import LatestScans
from repertory.indexing.ledger import Ledger
from repertory.stats import SaveTimes

SLICE = 2_000  # items that are compared at a time
IDLE_TIMEOUT_S = 10.0  # that a build waits for a moment at which nothing is pending

_log = logging.getLogger(__name__)


class _Pass:
    """One comparison of a collection, slice by slice.

    Args:
        began: When it began, on the clock on which items are sent.

    Attributes:
        start: The lowest key of the next slice.
        sent: The items that were sent since it began, if they are noted.
        differs: Whether anything differed.
    """

    def __init__(self, began: float = 0.0) -> None:
        self.began = began
        self.start = 0
        self.sent: set[str] = set()
        self.differs = False

    def has_to_wait(self, ledger: Ledger, now: float) -> bool:
        """Whether something pending has to be done first; after a while, only what is older."""
        if now - self.began < IDLE_TIMEOUT_S:
            return bool(ledger.pending)
        return ledger.is_pending_since(self.began)


class Ledgers:
    """One ledger for each collection that is written to. Methods may raise ``StoreError``.

    Args:
        store: Holds the collections.
        coordination: Where workers announce what they did and what failed.
        waiting: Gives the number of waiting jobs by queue.

    Attributes:
        due: The items to compare with the sources; None for all.
    """

    def __init__(
        self,
        store: VectorStore,
        coordination: Coordination,
        waiting: Callable[[], Mapping[str, int]],
    ) -> None:
        self._store = store
        self._deltas = coordination.deltas
        self._tombstones = coordination.tombstones
        self._failed = FailedItems(coordination.failures)
        self._waiting = waiting
        self._ledgers: dict[str, Ledger] = {}
        self._lag = Lag()
        self._passes: dict[str, _Pass] = {}  # by collection
        self._verifying: dict[str, _Pass] = {}  # the same, before a build is published
        self.due: set[str] | None = set()

    def __iter__(self) -> Iterator[Ledger]:
        return iter(self._ledgers.values())

    def compare(self, items: Iterable[str] | None = None) -> None:
        """Have some items compared with the sources; None for all."""
        if items is None:
            self.due = None
        elif self.due is not None:
            self.due.update(items)

    def get(self, collection: str | None) -> Ledger | None:
        """The ledger of a collection, if it has one."""
        return self._ledgers.get(collection or "")

    def save_times(self, now: float) -> SaveTimes:
        """How long saves took, and how long the oldest pending one has waited until now."""
        return self._lag.times((sent for one in self for sent in one.pending.values()), now)

    def keep(self, wanted: set[str]) -> None:
        """Have a ledger for each of these collections, and for no others."""
        self._ledgers = {name: one for name, one in self._ledgers.items() if name in wanted}
        for name in sorted(wanted - set(self._ledgers)):
            self._ledgers[name] = self._load(name)
            self.compare()
        for passes in (self._passes, self._verifying):
            for name in passes.keys() - wanted:
                del passes[name]

    def _load(self, name: str) -> Ledger:
        """The ledger of a collection, with what it holds now."""
        ledger = Ledger(name)
        ledger.position = self._deltas.position(name)  # before reading: nothing is missed
        deleted = self._tombstones.newest(name)
        with self._store.open(name) as collection:
            ledger.load(collection.states(), deleted=deleted)
        return ledger

    def reconcile(self) -> None:
        """Compare all collections with their ledgers, from now on, slice by slice."""
        for ledger in self:
            self._passes.setdefault(ledger.collection, _Pass())

    def compare_slices(self) -> None:
        """Compare the next slice of each collection that is being compared."""
        for ledger in self:
            current = self._passes.get(ledger.collection)
            if current and self._compare_slice(ledger, current):
                del self._passes[ledger.collection]

    def is_verified(self, ledger: Ledger, now: float) -> bool:
        """Compare the next slice; whether everything was compared since this began, and equal.

        It begins when nothing waits to be sent, and all that is pending then has to be done. What
        is saved meanwhile and done is compared again after the last slice. If something is pending
        at every moment, that may be so afterwards, too: a build ends although others save.

        Args:
            ledger: The ledger.
            now: The time, on the clock on which items are sent.
        """
        current = self._verifying.setdefault(ledger.collection, _Pass(now))
        if current.has_to_wait(ledger, now) or not self._compare_slice(ledger, current):
            return False
        del self._verifying[ledger.collection]
        if current.differs or len(current.sent) > SLICE:
            return False
        done = current.sent - ledger.pending.keys()
        return not done or self._are_equal(ledger, sorted(done))

    def is_verifying(self, ledger: Ledger, now: float) -> bool:
        """Whether the next slice of a comparison before publishing can be compared."""
        current = self._verifying.get(ledger.collection)
        return current is not None and not current.has_to_wait(ledger, now)

    def note_sent(self, ledger: Ledger, items: Iterable[str]) -> None:
        """Note that items were sent: a comparison that has begun compares them again."""
        if current := self._verifying.get(ledger.collection):
            current.sent.update(items)

    def _are_equal(self, ledger: Ledger, items: Sequence[str]) -> bool:
        """Whether some items are stored as their ledger says; it is corrected if not."""
        with self._store.open(ledger.collection) as collection:
            states = {state.item: state for state in collection.states(items)}
        stored = {item: one.metadata_hash for item, one in states.items()}
        known = {item: one.metadata_hash for item in items if (one := ledger.states.get(item))}
        differing = [item for item in items if stored.get(item) != known.get(item)]
        ledger.correct(differing, [states[item] for item in differing if item in states])
        self.compare(differing)
        return not differing

    def _compare_slice(self, ledger: Ledger, current: _Pass) -> bool:
        """Compare a slice; whether that was the last one."""
        if not current.start:
            ledger.start_after(self._tombstones.newest(ledger.collection))
        with self._store.open(ledger.collection) as collection:
            states = collection.page(current.start, SLICE)
        end = next_key(states, SLICE)
        differing = ledger.compare(states, current.start, end)
        self.compare(differing)
        current.differs = current.differs or bool(differing)
        current.start = end
        return end == END_KEY

    def follow_deltas(self, now: float) -> None:
        """Take in announced changes; if some were missed, read what is stored.

        Args:
            now: The time, on the clock on which items are sent.
        """
        for ledger in self:
            delta = self._deltas.since(ledger.collection, ledger.position)
            ledger.position = delta.position
            if delta.gap:
                self._passes[ledger.collection] = _Pass()
                self._verifying.pop(ledger.collection, None)
            else:
                self._lag.note(ledger.confirm(delta.hashes), now)

    def follow_failures(self, scans: LatestScans) -> None:
        """Stop waiting for failed items; forgive those that are obsolete."""
        self._failed.read()
        if scans.is_complete:
            self._failed.forgive(lambda *failed: self._is_obsolete(scans, *failed))
        for ledger in self:
            self.compare(ledger.fail(self._failed.of(ledger.collection)))

    def settle_failures(self, scans: LatestScans) -> None:
        """Take failures without items off the list that are over, once all is sent again."""
        if scans.is_complete:
            self._failed.settle(self._is_over)

    def clear_up(self, before: float) -> None:
        """Read from the store what may be lost, if it was sent before a time.

        What differs is then sent again. What is stored is announced: its worker may have ended
        before it did so.
        """
        for ledger in self:
            items = ledger.unclear(before, self._waiting)
            if not items:
                continue
            with self._store.open(ledger.collection) as collection:
                states = {state.item: state for state in collection.states(items)}
            ledger.start_after(self._tombstones.newest(ledger.collection))
            ledger.correct(items, states.values())
            self.compare(items)
            stored = {
                item: states[item].metadata_hash if item in states else REMOVED for item in items
            }
            self._deltas.announce(ledger.collection, stored)
            extra = {"collection": ledger.collection, "items": len(items)}
            _log.info("items_checked", extra=extra)

    def _is_over(self, failure: Failure) -> bool:
        """Whether a failure without items is over: its collection is whole, or not kept."""
        ledger = self.get(failure.collection)
        if failure.is_request:
            return bool(failure.collection) and ledger is None
        return ledger is None or not ledger.outstanding  # an unreadable job

    def _is_obsolete(self, scans: LatestScans, collection: str, item: str, found: str) -> bool:
        """Whether an item with this hash is not wanted in a collection, or is stored there."""
        ledger = self.get(collection)
        if ledger is None or not scans.may_offer(item, found):
            return True
        state = ledger.states.get(item)
        return item not in ledger.pending and (state.metadata_hash if state else REMOVED) == found
