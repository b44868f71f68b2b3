"""The ledgers of the collections that are written to, updated from the workers' announcements."""

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
IDLE_TIMEOUT_S = 10.0  # how long a build waits for a moment without pending items

_log = logging.getLogger(__name__)


class _Pass:
    """One comparison of a collection, slice by slice.

    Args:
        began: When it began, by the clock used for sending.

    Attributes:
        start: The lowest key of the next slice.
        sent: The items sent since it began; recorded only before a build is published.
        differs: Whether any item differed.
    """

    def __init__(self, began: float = 0.0) -> None:
        self.began = began
        self.start = 0
        self.sent: set[str] = set()
        self.differs = False

    def has_to_wait(self, ledger: Ledger, now: float) -> bool:
        """Whether to wait for pending items, after a timeout only for those older than the pass."""
        if now - self.began < IDLE_TIMEOUT_S:
            return bool(ledger.pending)
        return ledger.is_pending_since(self.began)


class Ledgers:
    """One ledger for each collection that is written to. Methods may raise ``StoreError``.

    Args:
        store: Holds the collections.
        coordination: Where workers announce done jobs and failures.
        waiting: Returns the number of waiting jobs by queue.

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
        self._passes: dict[str, _Pass] = {}  # reconciliations, by collection
        self._verifying: dict[str, _Pass] = {}  # passes before a build is published
        self.due: set[str] | None = set()

    def __iter__(self) -> Iterator[Ledger]:
        return iter(self._ledgers.values())

    def compare(self, items: Iterable[str] | None = None) -> None:
        """Mark items as due for comparison with the sources; None for all."""
        if items is None:
            self.due = None
        elif self.due is not None:
            self.due.update(items)

    def get(self, collection: str | None) -> Ledger | None:
        """The ledger of a collection, if it has one."""
        return self._ledgers.get(collection or "")

    def save_times(self, now: float) -> SaveTimes:
        """How long saves took, and how long the oldest pending save has waited."""
        return self._lag.times((sent for one in self for sent in one.pending.values()), now)

    def keep(self, wanted: set[str]) -> None:
        """Keep ledgers for exactly these collections, and load missing ones."""
        self._ledgers = {name: one for name, one in self._ledgers.items() if name in wanted}
        for name in sorted(wanted - set(self._ledgers)):
            self._ledgers[name] = self._load(name)
            self.compare()
        for passes in (self._passes, self._verifying):
            for name in passes.keys() - wanted:
                del passes[name]

    def _load(self, name: str) -> Ledger:
        """A ledger with the current items of a collection."""
        ledger = Ledger(name)
        ledger.position = self._deltas.position(name)  # before reading, so that no delta is missed
        deleted = self._tombstones.newest(name)
        with self._store.open(name) as collection:
            ledger.load(collection.states(), deleted=deleted)
        return ledger

    def reconcile(self) -> None:
        """Start to compare all collections with their ledgers, slice by slice."""
        for ledger in self:
            self._passes.setdefault(ledger.collection, _Pass())

    def compare_slices(self) -> None:
        """Compare the next slice of each collection that is being compared."""
        for ledger in self:
            current = self._passes.get(ledger.collection)
            if current and self._compare_slice(ledger, current):
                del self._passes[ledger.collection]

    def is_verified(self, ledger: Ledger, now: float) -> bool:
        """Compare the next slice, and return whether a complete pass found no difference.

        A pass starts once pending items are done; after ``IDLE_TIMEOUT_S`` it waits only for those
        sent before. Items that were sent during the pass, and are done, are compared again at the
        end. Items still pending then do not matter, so a build ends even during constant saves.

        Args:
            ledger: The ledger.
            now: The time, by the clock used for sending.
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
        """Whether a pass before publishing has begun, and need not wait for pending items."""
        current = self._verifying.get(ledger.collection)
        return current is not None and not current.has_to_wait(ledger, now)

    def note_sent(self, ledger: Ledger, items: Iterable[str]) -> None:
        """Record sent items, so that a pass before publishing compares them again."""
        if current := self._verifying.get(ledger.collection):
            current.sent.update(items)

    def _are_equal(self, ledger: Ledger, items: Sequence[str]) -> bool:
        """Whether the stored items equal those of the ledger, which is corrected if not."""
        with self._store.open(ledger.collection) as collection:
            states = {state.item: state for state in collection.states(items)}
        stored = {item: one.metadata_hash for item, one in states.items()}
        known = {item: one.metadata_hash for item in items if (one := ledger.states.get(item))}
        differing = [item for item in items if stored.get(item) != known.get(item)]
        ledger.correct(differing, [states[item] for item in differing if item in states])
        self.compare(differing)
        return not differing

    def _compare_slice(self, ledger: Ledger, current: _Pass) -> bool:
        """Compare the next slice; whether it was the last one."""
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
        """Process announced changes; after a gap, start to compare the whole collection.

        Args:
            now: The time, by the clock used for sending.
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
        """Stop waiting for failed items, and forget obsolete failures."""
        self._failed.read()
        if scans.is_complete:
            self._failed.forgive(lambda *failed: self._is_obsolete(scans, *failed))
        for ledger in self:
            self.compare(ledger.fail(self._failed.of(ledger.collection)))

    def settle_failures(self, scans: LatestScans) -> None:
        """Remove failures without items that are over, once every source was scanned."""
        if scans.is_complete:
            self._failed.settle(self._is_over)

    def clear_up(self, before: float) -> None:
        """Read unclear items, and items that were sent before a time and may be lost.

        Differing items are sent again. Stored items are announced, because their worker may have
        been killed before it announced them.
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
        """Whether a failure without items is over: its collection is complete, or has no ledger."""
        ledger = self.get(failure.collection)
        if failure.is_request:
            return bool(failure.collection) and ledger is None
        return ledger is None or not ledger.outstanding  # an unreadable job

    def _is_obsolete(self, scans: LatestScans, collection: str, item: str, found: str) -> bool:
        """Whether an item with this hash is no longer wanted in a collection, or already stored."""
        ledger = self.get(collection)
        if ledger is None or not scans.may_offer(item, found):
            return True
        state = ledger.states.get(item)
        return item not in ledger.pending and (state.metadata_hash if state else REMOVED) == found
