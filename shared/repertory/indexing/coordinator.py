"""The coordinator: looks at sources become jobs, until the index equals the sources.

It decides and does nothing itself: scanning is the watch service's, writing is the workers'. What
it knows of an index it reads from the store, so it may be ended and started again at any moment,
also in the middle of a build.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from repertory.catalogue.item import Item, item_key
from repertory.coordination.deltas import Deltas
from repertory.coordination.failures import Failure, Failures
from repertory.coordination.tombstones import Tombstones
from repertory.errors import StoreError
from repertory.index.keywords.snapshot import SnapshotStore
from repertory.index.vectors import VectorStore
from repertory.indexing.diff import Changes, diff
from repertory.indexing.generations import Generations
from repertory.indexing.job import JobQueue, Lane, jobs
from repertory.indexing.ledger import Ledger
from repertory.indexing.scan import Scanned
from repertory.indexing.scans import Looks
from repertory.sources.catalogue import Catalogue

POLL = 0.5  # seconds between two looks at the aliases and the failures
LOST = 15.0  # seconds without news, and with an empty queue, after which jobs count as lost
WINDOW = 2_000  # items on their way at once, which bounds the queue's memory
MOST_DELTAS = 1_000  # kept before the keyword snapshot is made anew
KEEP_AGAIN = 10.0  # seconds that making it may take
MOST_PROBLEMS = 200  # shown
EMPTY = (
    "The configuration offers no items at all, so what was indexed before stays in force; check "
    "that its folders are there."
)

_log = logging.getLogger(__name__)


class Coordinator:
    """Keeps the index of one catalogue equal to its sources. For one thread.

    Args:
        in_force: The alias of what is searched.
        clock: A clock that never jumps, in seconds.
        now: The time of day, in seconds; a jump of it does no harm.
    """

    def __init__(  # noqa: PLR0913 - the ports that it decides by, and two clocks
        self,
        *,
        store: VectorStore,
        queue: JobQueue,
        deltas: Deltas,
        snapshots: SnapshotStore,
        failures: Failures,
        tombstones: Tombstones,
        in_force: str,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._queue = queue
        self._deltas = deltas
        self._failures = failures
        self._tombstones = tombstones
        self._clock = clock
        self._now = now
        self._looks = Looks()
        self._generations = Generations(store, queue, deltas, snapshots, in_force)
        self._ledgers: dict[str, Ledger] = {}
        self._emptied: frozenset[str] = frozenset()
        self._adopted = self._changed = self._due = self._lost = False
        self._polled = self._kept = float("-inf")
        self._trouble = self._refused = ""

    def adopt(self, catalogue: Catalogue) -> None:
        """Take a configuration over; what was seen of sources that are the same still holds."""
        self._looks.adopt(catalogue)
        self._generations.adopt(catalogue.hash)
        self._adopted = self._changed = True
        self._polled = float("-inf")
        self._refused = ""

    def observe(self, scanned: Scanned) -> None:
        """Take one look at a source over."""
        self._looks.add(scanned)
        self._changed = True
        self._refused = ""

    def reconcile(self) -> None:
        """Read at the next tick what the store really holds, and send what differs."""
        self._due = True
        self._refused = ""
        self._generations.ask()

    def tick(self) -> None:
        """Follow what was done, send what is to be done, publish what is whole.

        A store that is away is noted in the status, and met again at the next tick. Before there is
        a configuration there is nothing to do.
        """
        if not self._adopted:
            return
        try:
            self._tick(self._clock())
            self._trouble = ""
        except StoreError as error:
            if self._trouble != str(error):
                _log.warning("coordinator_waits", extra={"error": str(error)})
            self._trouble = str(error)

    @property
    def is_busy(self) -> bool:
        """Whether something is on its way or waits to be sent."""
        return self._changed or any(one.outstanding for one in self._ledgers.values())

    def status(self) -> dict[str, Any]:
        """What there is and what is going on, as plain data."""
        generations, problems = self._generations, self._looks.problems
        target = self._ledgers.get(generations.target or "")
        searched = self._ledgers.get(generations.in_force or "") or target
        return {
            # Empty before there is one, and while it has no sources: nothing can be built of it.
            "configuration": self._looks.catalogue.hash if self._looks.catalogue.sources else "",
            "collection": generations.in_force or "",
            "trouble": self._trouble or self._refused,
            "sources": self._looks.status(
                searched.per_source if searched else Ledger.NOTHING, self._emptied
            ),
            "building": target.progress() if target and generations.is_building else None,
            "pending": sum(one.outstanding for one in self._ledgers.values()),
            "problems": msgspec.to_builtins(problems[:MOST_PROBLEMS]),
            "errors": sum(one.severity == "error" for one in problems),
            "warnings": sum(one.severity == "warning" for one in problems),
        }

    def _tick(self, now: float) -> None:
        is_due = now - self._polled >= POLL
        if is_due:
            self._keep_ledgers(self._generations.look(now), now)
            self._forgive()
            self._polled = now
        for ledger in self._ledgers.values():
            self._follow(ledger, now)
        if self._changed:
            for ledger in self._ledgers.values():
                self._compare(ledger)
            self._changed = False
        for ledger in self._ledgers.values():
            self._send(ledger, ledger.next_batch(WINDOW), [], now)
        if self._is_whole():
            self._generations.publish()
            self._polled = float("-inf")
        if is_due:
            self._keep_keywords(now)
            self._generations.retire(now)

    def _keep_ledgers(self, wanted: set[str], now: float) -> None:
        """Have a ledger of each collection that is written to, and of no other."""
        self._ledgers = {name: one for name, one in self._ledgers.items() if name in wanted}
        for name in sorted(wanted - set(self._ledgers)):
            self._ledgers[name] = self._loaded(Ledger(name, now))
        if self._due or self._lost:
            for ledger in self._ledgers.values():
                self._loaded(ledger, is_lost=self._lost)
            self._due = self._lost = False

    def _loaded(self, ledger: Ledger, *, is_lost: bool = True) -> Ledger:
        """Read what a collection holds; what is on its way to it is sent again if it is lost."""
        name = ledger.collection
        position = self._deltas.position(name)  # before reading: nothing falls between
        failed: dict[str, str] = {}
        for failure in self._failures.list():
            if failure.collection == name:
                failed |= failure.items
        deleted = self._tombstones.newest(name)
        with self._store.open(name) as collection:
            ledger.load(collection.states(), failed, deleted=deleted, is_lost=is_lost)
        if is_lost:
            ledger.position = position
        self._changed = True
        return ledger

    def _follow(self, ledger: Ledger, now: float) -> None:
        """Take over what was announced; when jobs were lost, begin again with what is there."""
        delta = self._deltas.since(ledger.collection, ledger.position)
        if not delta.gap:
            ledger.position = delta.position
            ledger.confirm(delta.hashes, now)
            is_silent = ledger.pending and now - ledger.news > LOST
            if not is_silent or self._queue.waiting()[self._lane(ledger)]:
                return
        extra = {"collection": ledger.collection, "items": len(ledger.pending)}
        self._loaded(ledger)
        ledger.news = now
        _log.info("jobs_lost", extra=extra)

    def _forgive(self) -> None:
        """Wait no longer for what was given up; forget failures of what has changed since."""
        if not any(ledger.pending or ledger.failed for ledger in self._ledgers.values()):
            return
        listed = self._failures.list()
        for name, ledger in self._ledgers.items():
            own = [one for one in listed if one.collection == name]
            ledger.give_up({item: found for one in own for item, found in one.items.items()})
        if self._looks.is_complete:
            self._failures.remove([one.id for one in listed if self._is_outdated(one)])

    def _is_outdated(self, failure: Failure) -> bool:
        """Whether nobody wants any more what a job was to write, or where it was to."""
        if not failure.items:  # it could not be read
            return False
        wanted = map(self._looks.offers, failure.items, failure.items.values())
        return failure.collection not in self._ledgers or not any(wanted)

    def _compare(self, ledger: Ledger) -> None:
        changes = self._changes(ledger)
        if ledger.collection == self._generations.in_force:
            self._emptied = changes.emptied
        ledger.queue(changes.written)
        self._send(ledger, [], changes.removed, self._clock())

    def _changes(self, ledger: Ledger) -> Changes:
        prune = self._lane(ledger) is Lane.BUILDS
        return diff(self._looks.items, ledger.known(), self._looks.keeps, prune=prune)

    def _lane(self, ledger: Ledger) -> Lane:
        searched = ledger.collection == self._generations.in_force
        return Lane.SAVES if searched else Lane.BUILDS

    def _send(
        self, ledger: Ledger, items: Sequence[Item], removed: Sequence[str], now: float
    ) -> None:
        if not items and not removed:
            return
        lane = self._lane(ledger)
        # On the ledger first: what cannot be sent is read again by the next tick.
        revision = ledger.send(items, removed, milliseconds=int(self._now() * 1_000), now=now)
        try:
            for job in jobs(ledger.collection, revision, items, removed):
                self._queue.submit(job, lane)
        except StoreError:
            self._lost = True
            raise
        counts = {"items": len(items), "removed": len(removed)}
        extra = {"collection": ledger.collection, "lane": lane.value, **counts}
        _log.info("jobs_sent", extra=extra)

    def _is_whole(self) -> bool:
        """Whether a build can be published; it is compared once more with what was written."""
        ledger = self._ledgers.get(self._generations.target or "")
        if ledger is None or not self._generations.is_building or self._refused:
            return False
        if ledger.outstanding or not self._looks.is_complete:
            return False
        changes = self._changes(self._loaded(ledger))
        if changes.written or changes.removed:
            return False  # the next tick sends it
        if carried := self._carried(ledger):
            self._send(ledger, carried, [], self._clock())
            return False
        if not ledger.states and self._generations.replaces_others:
            self._refused = EMPTY  # a folder that is not mounted looks like that
            return False
        return True

    def _carried(self, ledger: Ledger) -> list[Item]:
        """The items, out of the collection in force, of what cannot be read now.

        That may be another configuration's collection.
        """
        if not self._looks.is_partial or self._generations.in_force is None:
            return []
        known = ledger.known()
        with self._store.open(self._generations.in_force) as old:
            wanted = [
                state.item
                for state in old.states()
                if state.item not in known and self._looks.withholds(state)
            ]
            records = old.records([item_key(item) for item in wanted])
        return [msgspec.convert(record, Item) for record in records.values()]

    def _keep_keywords(self, now: float) -> None:
        """Have the keyword snapshot made anew when many deltas have come since."""
        name = self._generations.in_force
        if name in self._ledgers and now - self._kept >= KEEP_AGAIN:
            self._kept = now
            if self._deltas.length(name) > MOST_DELTAS:
                self._queue.keep_keywords(name)
