"""The coordinator turns scans into jobs until the index equals the sources.

It only decides. Sources are scanned by its caller, and jobs are done by workers. It reads the state
of the index from the store, so it may be stopped and started at any moment, even during a build.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from repertory.catalogue.item import Item, item_key
from repertory.coordination.failures import Failure
from repertory.coordination.team import Coordination
from repertory.errors import StoreError
from repertory.index.vectors import VectorStore
from repertory.indexing.diff import Changes, diff
from repertory.indexing.generations import Generations
from repertory.indexing.job import JobQueue, QueueName, jobs
from repertory.indexing.latest_scans import LatestScans
from repertory.indexing.ledger import Ledger
from repertory.indexing.scan import ScanResult
from repertory.sources.configured import Catalogue
from repertory.sources.source import error
from repertory.stats import WatchStatus

POLL_INTERVAL_S = 0.5  # between two reads of the aliases and the failed jobs
LOST_AFTER_S = 15.0  # without any confirmation and with an empty queue, jobs count as lost
MAX_PENDING = 2_000  # items sent and not confirmed, which bounds the queue's memory
MAX_DELTAS = 1_000  # kept before a new keyword snapshot is requested
SNAPSHOT_INTERVAL_S = 10.0  # between two such requests
MAX_PROBLEMS = 200  # in a status report
EMPTY = (
    "The configuration offers no items at all, so the previous index stays active; check that its "
    "folders exist."
)

_log = logging.getLogger(__name__)


class Coordinator:
    """Keeps the index of one catalogue equal to its sources. Not thread-safe.

    Args:
        active: The alias of the collection that is searched.
        seen: When each source was last read whole by an earlier process, in Unix seconds.
        clock: A monotonic clock, in seconds.
        now: The time of day, in Unix seconds; jumps do no harm.
        max_pending: The most items that are sent and not confirmed.
    """

    def __init__(
        self,
        *,
        store: VectorStore,
        queue: JobQueue,
        coordination: Coordination,
        active: str,
        seen: Mapping[str, float] | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        max_pending: int = MAX_PENDING,
    ) -> None:
        self._store = store
        self._queue = queue
        self._deltas = coordination.deltas
        self._failures = coordination.failures
        self._tombstones = coordination.tombstones
        self._lease = coordination.lease
        self._clock = clock
        self._now = now
        self._max_pending = max_pending
        self._scans = LatestScans(seen or {})
        self._generations = Generations(store, queue, coordination, active)
        self._ledgers: dict[str, Ledger] = {}
        self._emptied: frozenset[str] = frozenset()
        self._is_configured = False
        self._must_compare = False  # the scans or a ledger changed
        self._must_reload = False  # a ledger may differ from what the store holds
        self._send_failed = False  # a ledger lists jobs that were never queued
        self._has_unreadable = False  # failures that no item of a ledger stands for
        self._polled_at = self._snapshot_at = self._ready_at = float("-inf")
        self._store_error = self._refusal = ""

    def adopt(self, catalogue: Catalogue) -> None:
        """Follow another configuration; scans of unchanged sources stay valid."""
        self._scans.adopt(catalogue)
        self._generations.adopt(catalogue.hash)
        self._is_configured = self._must_compare = True
        self._polled_at = float("-inf")
        self._refusal = ""

    def observe(self, result: ScanResult) -> None:
        """Take in the result of one scan."""
        self._scans.add(result)
        self._must_compare = True
        self._refusal = ""

    def reconcile(self) -> None:
        """Compare with the store at the next tick, and send what differs."""
        self._must_reload = True
        self._refusal = ""
        self._generations.request_target()

    def tick(self) -> None:
        """Follow finished jobs, send new ones, and publish a complete build.

        If the store is unavailable, ``error`` says so and the next tick tries again. Without a
        configuration or the lease this does nothing.
        """
        if not self._is_configured or not self._lease.is_held:
            return
        try:
            self._tick(self._clock())
            self._store_error = ""
        except StoreError as error:
            if self._store_error != str(error):
                _log.warning("coordinator_waits", extra={"error": str(error)})
            self._store_error = str(error)

    @property
    def is_busy(self) -> bool:
        """Whether items are pending or wait to be sent."""
        return self._must_compare or any(one.outstanding for one in self._ledgers.values())

    @property
    def is_finished(self) -> bool:
        """Whether the active collection equals the sources, as far as they can be read."""
        generations = self._generations
        is_published = bool(self._refusal) or generations.active == generations.target is not None
        return not self.is_busy and self._scans.is_complete and is_published

    @property
    def error(self) -> str:
        """Why it cannot proceed; empty when it can."""
        return self._store_error or self._refusal

    @property
    def ledger(self) -> Ledger | None:
        """The ledger of the collection that the configuration's items are written to."""
        return self._ledgers.get(self._generations.target or "")

    @property
    def unwritten(self) -> dict[str, str]:
        """The items that are not written yet, by id, each with its path."""
        ids = self.ledger.unwritten() if self.ledger else ()
        items = self._scans.items
        return {item: items[item].path if item in items else "" for item in ids}

    def retire(self) -> None:
        """Drop the collections that this configuration no longer needs, without a delay."""
        self._generations.retire_now()

    def status(self) -> WatchStatus:
        """What is indexed and what is going on."""
        generations = self._generations
        target = self.ledger
        searched = self._ledgers.get(generations.active or "") or target
        indexed = searched.per_source if searched else Ledger.NOTHING
        sources = self._scans.status(indexed, self._emptied)
        failed = [error(one.name, one.error) for one in sources if one.is_failing]
        problems = [*failed, *self._scans.problems]
        return WatchStatus(
            # Empty while there are no sources: nothing can be built from it.
            configuration=self._scans.catalogue.hash if self._scans.catalogue.sources else "",
            collection=generations.active or "",
            error=self.error,
            sources=sources,
            building=target.progress() if target and generations.is_building else None,
            pending=sum(one.outstanding for one in self._ledgers.values()),
            problems=problems[:MAX_PROBLEMS],
            errors=sum(one.severity == "error" for one in problems),
            warnings=sum(one.severity == "warning" for one in problems),
        )

    def _tick(self, now: float) -> None:
        # Without a target the store is asked at every tick: a worker may just have made it.
        is_due = now - self._polled_at >= POLL_INTERVAL_S or self._generations.target is None
        if is_due:
            self._keep_ledgers(self._generations.poll(now), now)
            self._follow_failures()
            self._polled_at = now
        for ledger in self._ledgers.values():
            self._follow(ledger, now)
        if self._must_compare:
            for ledger in self._ledgers.values():
                self._compare(ledger)
            self._must_compare = False
        for ledger in self._ledgers.values():
            self._send(ledger, ledger.next_batch(self._max_pending), [], now)
        is_complete = self._is_written() and self._is_ready(now) and self._is_complete()
        if is_complete and self._lease.is_held:  # building may have taken long
            self._generations.publish()
            self._polled_at = float("-inf")
        if is_due:
            self._request_snapshot(now)
            self._generations.retire(now)

    def _keep_ledgers(self, wanted: set[str], now: float) -> None:
        """Keep one ledger for each collection that is written to."""
        self._ledgers = {name: one for name, one in self._ledgers.items() if name in wanted}
        for name in sorted(wanted - set(self._ledgers)):
            self._ledgers[name] = self._loaded(Ledger(name, now))
        if self._must_reload or self._send_failed:
            for ledger in self._ledgers.values():
                self._loaded(ledger, is_lost=self._send_failed)
            self._must_reload = self._send_failed = False

    def _loaded(self, ledger: Ledger, *, is_lost: bool = True) -> Ledger:
        """Read what a collection holds; pending items are sent again if they are lost."""
        name = ledger.collection
        position = self._deltas.position(name)  # before reading, so that nothing is missed
        failed: dict[str, str] = {}
        for failure in self._failures.list():
            if failure.collection == name:
                failed |= failure.items
        deleted = self._tombstones.newest(name)
        with self._store.open(name) as collection:
            ledger.load(collection.states(), failed, deleted=deleted, is_lost=is_lost)
        if is_lost:
            ledger.position = position
        self._must_compare = True
        return ledger

    def _follow(self, ledger: Ledger, now: float) -> None:
        """Take in announced changes; if jobs were lost, start again from what is stored."""
        delta = self._deltas.since(ledger.collection, ledger.position)
        if not delta.gap:
            ledger.position = delta.position
            ledger.confirm(delta.hashes, now)
            is_silent = ledger.pending and now - ledger.news > LOST_AFTER_S
            if not is_silent or self._queue.waiting()[self._queue_name(ledger)]:
                return
        extra = {"collection": ledger.collection, "items": len(ledger.pending)}
        self._loaded(ledger)
        ledger.news = now
        _log.info("jobs_lost", extra=extra)

    def _follow_failures(self) -> None:
        """Stop waiting for failed items; drop failures whose items have changed since."""
        is_waiting = any(ledger.pending or ledger.failed for ledger in self._ledgers.values())
        if not is_waiting and not self._has_unreadable:
            return
        listed = self._failures.list()
        self._has_unreadable = any(not one.items for one in listed)
        for name, ledger in self._ledgers.items():
            own = [one for one in listed if one.collection == name]
            ledger.fail({item: found for one in own for item, found in one.items.items()})
        if self._scans.is_complete:
            self._failures.remove([one.id for one in listed if self._is_obsolete(one)])

    def _is_obsolete(self, failure: Failure) -> bool:
        """Whether the failed job's items or target collection are obsolete."""
        ledger = self._ledgers.get(failure.collection)
        if failure.is_request:
            return bool(failure.collection) and ledger is None
        if not failure.items:  # the job was unreadable: its items were sent again
            return ledger is None or not ledger.outstanding
        wanted = map(self._scans.offers, failure.items, failure.items.values())
        return ledger is None or not any(wanted)

    def _compare(self, ledger: Ledger) -> None:
        changes = self._changes(ledger)
        if ledger.collection == self._generations.active:
            self._emptied = changes.emptied
        ledger.queue(changes.written)
        self._send(ledger, [], changes.removed, self._clock())

    def _changes(self, ledger: Ledger) -> Changes:
        prune = self._queue_name(ledger) is QueueName.BUILDS
        return diff(
            self._scans.items,
            ledger.known(),
            self._scans.keeps,
            prune=prune,
            unchanged=+self._scans.unchanged,
        )

    def _queue_name(self, ledger: Ledger) -> QueueName:
        is_active = ledger.collection == self._generations.active
        return QueueName.SAVES if is_active else QueueName.BUILDS

    def _send(
        self, ledger: Ledger, items: Sequence[Item], removed: Sequence[str], now: float
    ) -> None:
        if not items and not removed:
            return
        queue_name = self._queue_name(ledger)
        # In the ledger first: what cannot be sent is read again by the next tick.
        revision = ledger.send(items, removed, milliseconds=int(self._now() * 1_000), now=now)
        try:
            for job in jobs(ledger.collection, revision, items, removed):
                self._queue.submit(job, queue_name)
        except StoreError:
            self._send_failed = True
            raise
        counts = {"items": len(items), "removed": len(removed)}
        extra = {"collection": ledger.collection, "queue": queue_name.value, **counts}
        _log.info("jobs_sent", extra=extra)

    def _is_written(self) -> bool:
        """Whether all files were read and everything that a build lacks was written."""
        ledger = self.ledger
        if ledger is None or not self._generations.is_building or self._refusal:
            return False
        return not ledger.outstanding and self._scans.are_files_read

    def _is_ready(self, now: float) -> bool:
        """Whether a search in a build that replaces another is fast; asked once in each poll."""
        if now < self._ready_at:
            return False
        if not self._generations.active or self._generations.is_ready():
            return True
        self._ready_at = now + POLL_INTERVAL_S
        return False

    def _is_complete(self) -> bool:
        """Whether a build can be published, after one more comparison with what is stored.

        Servers that are still starting are not waited for, unless nothing else offers an item.
        """
        ledger = self.ledger
        assert ledger is not None
        changes = self._changes(self._loaded(ledger))
        if changes.written or changes.removed:
            return False  # the next tick sends it
        if carried := self._carried(ledger):
            self._send(ledger, carried, [], self._clock())
            return False
        self._must_compare = False  # it was just done
        if ledger.states:
            return True
        if self._scans.is_complete and self._generations.replaces_others:
            self._refusal = EMPTY  # a folder that is not mounted looks like this
        return self._scans.is_complete and not self._refusal

    def _carried(self, ledger: Ledger) -> list[Item]:
        """The active collection's items of sources and files that cannot be read, or not yet.

        The active collection may belong to another configuration.
        """
        if not self._scans.is_partial or self._generations.active is None:
            return []
        known = ledger.known()
        with self._store.open(self._generations.active) as old:
            wanted = [
                state.item
                for state in old.states()
                if state.item not in known and self._scans.keeps(state)
            ]
            records = old.records([item_key(item) for item in wanted])
        return [msgspec.convert(record, Item) for record in records.values()]

    def _request_snapshot(self, now: float) -> None:
        """Request a new keyword snapshot when many deltas have come since the last one."""
        name = self._generations.active
        if name in self._ledgers and now - self._snapshot_at >= SNAPSHOT_INTERVAL_S:
            self._snapshot_at = now
            if self._deltas.length(name) > MAX_DELTAS:
                self._queue.keep_keywords(name)
