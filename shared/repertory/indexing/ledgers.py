"""The ledgers of the collections that are written to, updated from the workers' announcements."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from repertory.catalogue.item import END_KEY
from repertory.coordination.deltas import REMOVED
from repertory.coordination.failures import Failure
from repertory.coordination.ports import Coordination
from repertory.index.vectors import State, VectorStore, next_key
from repertory.indexing.failed_items import FailedItems
from repertory.indexing.lag import Lag
from repertory.indexing.latest_scans import LatestScans
from repertory.indexing.ledger import Ledger
from repertory.watch_status import SaveTimes

SLICE = 2_000  # items that are compared at a time
IDLE_TIMEOUT_S = 10.0  # how long a build waits for a moment without pending items

_log = logging.getLogger(__name__)


class _Comparison:
    """A comparison of a collection with its ledger, slice by slice.

    Attributes:
        start: The lowest key of the next slice; ``END_KEY`` at the end.
        differs: Whether any item differed.
    """

    def __init__(self) -> None:
        self.start = 0
        self.differs = False


class _FinalComparison(_Comparison):
    """The comparison of a build before it is published.

    Args:
        began: When it began, by the clock used for sending.

    Attributes:
        sent: The items that were sent since then.
    """

    def __init__(self, began: float) -> None:
        super().__init__()
        self.sent: set[str] = set()
        self._began = began

    def has_to_wait(self, ledger: Ledger, now: float) -> bool:
        """Whether to wait for pending items, after a timeout only for those sent before it."""
        if now - self._began < IDLE_TIMEOUT_S:
            return bool(ledger.pending)
        return ledger.is_pending_since(self._began)


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
        self._newest = 0  # the newest revision that was ever sent
        self._lag = Lag()
        self._comparisons: dict[str, _Comparison] = {}  # by collection
        self._final: dict[str, _FinalComparison] = {}  # by collection
        self.due: set[str] | None = set()

    def __iter__(self) -> Iterator[Ledger]:
        return iter(self._ledgers.values())

    def mark_due(self, items: Iterable[str] | None = None) -> None:
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
        self._newest = max([self._newest, *(one.newest for one in self)])
        self._ledgers = {name: one for name, one in self._ledgers.items() if name in wanted}
        for name in sorted(wanted - set(self._ledgers)):
            self._ledgers[name] = self._load(name)
            self.mark_due()
        for comparisons in (self._comparisons, self._final):
            for name in comparisons.keys() - wanted:
                del comparisons[name]

    def _load(self, name: str) -> Ledger:
        """A ledger with the current items of a collection."""
        ledger = Ledger(name)
        # A killed worker may have written sections of an item, whose revisions are not read.
        ledger.start_after(self._newest)
        ledger.position = self._deltas.position(name)  # before reading, so that no delta is missed
        deleted = self._tombstones.newest(name)
        with self._store.open(name) as collection:
            ledger.load(collection.states(), deleted=deleted)
        return ledger

    def reconcile(self) -> None:
        """Start to compare all collections with their ledgers, slice by slice."""
        for ledger in self:
            self._comparisons.setdefault(ledger.collection, _Comparison())

    def compare_slices(self) -> None:
        """Compare the next slice of each collection that is being compared."""
        for ledger in self:
            current = self._comparisons.get(ledger.collection)
            if current and self._compare_slice(ledger, current):
                del self._comparisons[ledger.collection]

    def compare_finally(self, ledger: Ledger, now: float) -> bool:
        """Compare the next slice of a build with its ledger before it is published.

        This waits while items are pending; after ``IDLE_TIMEOUT_S``, only for those that were sent
        before the first call. Items that were sent and done since then are read again at the end.
        Items that are still pending then do not matter, so a build ends even during constant saves.

        Args:
            ledger: The ledger of the build.
            now: The time, by the clock used for sending.

        Returns:
            Whether this was the last slice, and no item differed.
        """
        current = self._final.setdefault(ledger.collection, _FinalComparison(now))
        if current.has_to_wait(ledger, now) or not self._compare_slice(ledger, current):
            return False
        del self._final[ledger.collection]
        if current.differs or len(current.sent) > SLICE:
            return False
        done = sorted(current.sent - ledger.pending.keys())
        expected = _hashes(done, ledger.states)
        return not done or self._reread(ledger, done) == expected

    def is_comparing_finally(self, ledger: Ledger, now: float) -> bool:
        """Whether ``compare_finally`` has begun, and need not wait for pending items."""
        current = self._final.get(ledger.collection)
        return current is not None and not current.has_to_wait(ledger, now)

    def note_sent(self, ledger: Ledger, items: Iterable[str]) -> None:
        """Record sent items, so that ``compare_finally`` reads them again."""
        if current := self._final.get(ledger.collection):
            current.sent.update(items)

    def _compare_slice(self, ledger: Ledger, current: _Comparison) -> bool:
        """Compare the next slice; whether it was the last one.

        Pending items whose jobs turn out to be done are announced, because their worker may have
        been killed before it announced them.
        """
        if not current.start:
            ledger.start_after(self._tombstones.newest(ledger.collection))
        with self._store.open(ledger.collection) as collection:
            states = collection.page(current.start, SLICE)
        end, pending = next_key(states, SLICE), {*ledger.pending}
        differing = ledger.compare(states, current.start, end)
        done = pending - ledger.pending.keys()
        self._deltas.announce(ledger.collection, _hashes(done, ledger.states))
        self.mark_due(differing)
        current.differs = current.differs or bool(differing)
        current.start = end
        return end == END_KEY

    def _reread(self, ledger: Ledger, items: Sequence[str]) -> dict[str, str]:
        """Correct some items of a ledger by the stored ones, and return the stored hashes."""
        with self._store.open(ledger.collection) as collection:
            states = {state.item: state for state in collection.states(items)}
        ledger.start_after(self._tombstones.newest(ledger.collection))
        ledger.correct(items, states.values())
        self.mark_due(items)
        return _hashes(items, states)

    def follow_deltas(self, now: float) -> None:
        """Process announced changes; after a gap, start to compare the whole collection.

        Args:
            now: The time, by the clock used for sending.
        """
        for ledger in self:
            delta = self._deltas.since(ledger.collection, ledger.position)
            ledger.position = delta.position
            if delta.gap:
                self._comparisons[ledger.collection] = _Comparison()
                self._final.pop(ledger.collection, None)
            else:
                self._lag.note(ledger.confirm(delta.hashes), now)

    def follow_failures(self, scans: LatestScans) -> None:
        """Stop waiting for failed items, and forget obsolete failures."""
        self._failed.read()
        if scans.is_complete:
            self._failed.forgive(lambda *failed: self._is_obsolete(scans, *failed))
        for ledger in self:
            self.mark_due(ledger.fail(self._failed.of(ledger.collection)))

    def settle_failures(self, scans: LatestScans) -> None:
        """Remove failures without items that are over, once every source was scanned."""
        if scans.is_complete:
            self._failed.settle(self._is_over)

    def reread_unclear(self, before: float) -> None:
        """Read unclear items, and items that were sent before a time and may be lost.

        Differing items are sent again. Stored items are announced, because their worker may have
        been killed before it announced them.
        """
        for ledger in self:
            if items := ledger.unclear(before, self._waiting):
                self._deltas.announce(ledger.collection, self._reread(ledger, items))
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


def _hashes(items: Iterable[str], states: Mapping[str, State]) -> dict[str, str]:
    """The metadata hash of each item; ``REMOVED`` for a missing one."""
    return {item: states[item].metadata_hash if item in states else REMOVED for item in items}
