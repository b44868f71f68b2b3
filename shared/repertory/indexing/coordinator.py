"""The coordinator turns scans into jobs until the index equals the sources.

It only makes decisions. Its caller scans the sources, and workers do the jobs. It reads the state
of the index from the store, so it can be stopped and restarted at any time, even during a build.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from repertory.catalogue.item import Item, item_key
from repertory.catalogue.records import items_of
from repertory.coordination.ports import Coordination
from repertory.errors import StoreError
from repertory.index.vectors import State, VectorStore
from repertory.indexing.collection_names import configuration_of
from repertory.indexing.diff import Changes, diff
from repertory.indexing.first_problems import first_problems
from repertory.indexing.generations import Generations
from repertory.indexing.job import JobQueue, QueueName, jobs
from repertory.indexing.latest_scans import LatestScans
from repertory.indexing.ledger import Batch, Ledger
from repertory.indexing.ledgers import Ledgers
from repertory.indexing.save_trace import SaveTrace
from repertory.indexing.scan import SourceResult
from repertory.indexing.searched_catalogue import SearchedCatalogue
from repertory.indexing.unused_indexes import UnusedIndexes
from repertory.notices import HAS_RIVAL, NOTHING_OFFERED
from repertory.review.gate import Gate
from repertory.sources.configured import Catalogue
from repertory.sources.source import Problem, Severity
from repertory.watch_status import LATE_S, SourceState, WatchStatus

POLL_INTERVAL_S = 0.5  # between two reads of the aliases and of the failed items
RETIRE_INTERVAL_S = 5.0  # between two checks for unused collections
LOG_INTERVAL_S = 60.0  # between two log lines about a failure that comes and goes
LOST_AFTER_S = 15.0  # after which a sent item may count as lost
MAX_PENDING = 2_000  # pending items; the limit bounds the queue's memory
KEEP_UNUSED_S = 7 * 86_400.0

Affordable = Callable[[Sequence[Item]], Sequence[Item]]

_log = logging.getLogger(__name__)


class Coordinator:
    """Keeps the index of one catalogue equal to its sources. Only ``examine`` is thread-safe.

    Args:
        active: The alias of the collection that is searched.
        last: The last report of an earlier process, if any.
        clock: A monotonic clock, in seconds.
        now: The time of day, in Unix seconds; jumps are harmless.
        affordable: Returns the first items of a sequence that may be sent now; the others wait.
        gate: Withholds items that a person must approve first; without a gate, all pass.
        keep_unused_s: How long the index of an unused configuration is kept.

    Attributes:
        failure: Why the last tick could not use the store; None if it could.
    """

    def __init__(  # noqa: PLR0913 - one for each part
        self,
        *,
        store: VectorStore,
        queue: JobQueue,
        coordination: Coordination,
        active: str,
        last: WatchStatus | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        affordable: Affordable = lambda items: items,
        gate: Gate | None = None,
        keep_unused_s: float = KEEP_UNUSED_S,
    ) -> None:
        self._store = store
        self._queue = queue
        self._lease = coordination.lease
        self._clock = clock
        self._now = now
        self._affordable = affordable
        last = last or WatchStatus()
        seen = {one.name: one.seen for one in last.sources}
        self._scans = LatestScans(seen, gate, last.problems, last.unlisted)
        self._ledgers = Ledgers(store, coordination, queue.waiting)
        self._generations = Generations(store, queue, coordination, active)
        self._unused = UnusedIndexes(
            store, active, coordination.unused, keep_unused_s, self._generations.drop
        )
        self._trace = SaveTrace()
        self._emptied: frozenset[str] = frozenset()
        self._searched = SearchedCatalogue(last)
        self._is_configured = False
        self._current_at = clock()  # when it last succeeded and was not behind
        self._polled_at = self._ready_at = self._retired_at = float("-inf")
        self._is_fast = False  # whether a search of the build was fast at the last check
        self._offers_nothing = False  # whether a build is not published because it is empty
        self.failure: StoreError | None = None
        self._logged = ("", float("-inf"))  # the last logged failure, and when

    def adopt(self, catalogue: Catalogue) -> None:
        """Follow another configuration; scans of unchanged sources stay valid."""
        self._note_searched()  # the old catalogue may have just been published
        self._scans.adopt(catalogue)
        self._generations.adopt(catalogue.hash)
        self._is_configured = True
        self._ledgers.mark_due()
        self._polled_at = float("-inf")
        self._offers_nothing = False

    def examine(self, result: SourceResult, is_over: Callable[[], bool]) -> None:
        """Examine a result's items ahead of ``observe``, on any thread, until ``is_over``."""
        self._scans.examine(result, is_over)

    def observe(self, result: SourceResult) -> None:
        """Process the result of a scan, or a change since the last scan."""
        self._ledgers.mark_due(self._scans.add(result))
        self._trace.scanned(result)
        self._offers_nothing = False

    def reconcile(self) -> None:
        """Compare with the store from the next tick on, and send differing items unless pending.

        A large collection is compared slice by slice, so that saves do not wait for it.
        """
        self._ledgers.reconcile()
        self._offers_nothing = False
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
            if self.ledger is not None:
                self._trace.compared()
            self.failure = None
        except StoreError as error:
            self._log_failure(str(error))
            self.failure = error.with_traceback(None)  # free the frames; it may be kept for long

    @property
    def is_busy(self) -> bool:
        """Whether items are pending or wait to be sent."""
        due = self._ledgers.due
        return due is None or bool(due) or any(ledger.outstanding for ledger in self._ledgers)

    @property
    def is_verifying(self) -> bool:
        """Whether a build is being compared with the store before it is published.

        Each tick compares one slice.
        """
        if self.ledger is None or self.error or not self._is_sent():
            return False
        return self._ledgers.is_comparing_finally(self.ledger, self._clock())

    @property
    def is_finished(self) -> bool:
        """Whether the active collection equals the sources, as far as they are readable."""
        generations = self._generations
        is_published = generations.target is not None and not generations.is_building
        return (
            not self.is_busy
            and self._scans.is_complete
            and (is_published or bool(self._why_unpublished))
        )

    @property
    def error(self) -> str:
        """Why the coordinator cannot proceed; empty if it can."""
        return str(self.failure or "") or self._why_unpublished

    @property
    def _why_unpublished(self) -> str:
        """Why a complete build is not published; empty if it may be."""
        if self._generations.has_rival:
            return HAS_RIVAL
        return NOTHING_OFFERED if self._offers_nothing else ""

    @property
    def ledger(self) -> Ledger | None:
        """The ledger of the collection that the configuration's items are written to."""
        return self._ledgers.get(self._generations.target)

    @property
    def unwritten(self) -> dict[str, str]:
        """The paths of the items that are not written yet or failed, by id."""
        ids = [*self.ledger.unwritten(), *self.ledger.failed] if self.ledger else ()
        items = self._scans.items
        return {item: items[item].path if item in items else "" for item in ids}

    def retire(self) -> None:
        """Drop the collections that this configuration no longer needs, without delay."""
        self._generations.retire_now()

    @property
    def active(self) -> str:
        """The collection that is searched; empty before the first index."""
        return self._generations.active or ""

    @property
    def is_building(self) -> bool:
        """Whether the target collection is incomplete: a build, or the first index."""
        return self._generations.is_building

    def status(self) -> WatchStatus:
        """The state of the index and of its sources."""
        generations, now = self._generations, self._clock()
        target = self.ledger
        searched = self._ledgers.get(generations.active) or target
        indexed = searched.per_source if searched else Counter()
        sources = self._scans.status(indexed, self._emptied)
        failed = [_failure(one) for one in sources if one.is_failing or one.awaits_user]
        problems = [*failed, *self._scans.problems]
        of_items = {*self._scans.problems_of_items}
        first = first_problems(problems, of_items, self._scans.catalogue.sources)
        unlisted = len(of_items) - len(of_items.intersection(first)) + self._scans.unlisted
        return WatchStatus(
            # Empty without sources, because nothing can be built then.
            configuration=self._scans.catalogue.hash if self._scans.catalogue.sources else "",
            collection=self.active,
            error=self.error,
            configuration_error=self._scans.catalogue.error,
            sources=sources,
            former={} if generations.is_own else self._searched.audiences,
            building=target.building() if target and generations.is_building else None,
            pending=sum(one.outstanding for one in self._ledgers),
            saves=self._ledgers.save_times(now),
            is_late=now - self._current_at >= LATE_S
            and (self._is_behind or self.failure is not None),
            has_failed=bool(searched and searched.failed),
            unused=self._unused.listed,
            problems=first,
            errors=sum(one.severity == "error" for one in problems),
            warnings=sum(one.severity == "warning" for one in problems) + self._scans.unlisted,
            unlisted=unlisted,
        )

    @property
    def _is_behind(self) -> bool:
        """Whether a large change, or a changed configuration, is not searchable yet.

        A first index does not count, because answers already say that it is incomplete.
        """
        generations = self._generations
        active, is_first = generations.active, generations.active == generations.target
        if active is None or (generations.is_building and is_first):
            return False
        if not generations.is_own:
            return True
        searched = self._ledgers.get(active)
        return searched is not None and (
            searched.has_backlog
            or any(one.queue == QueueName.BUILDS for one in searched.pending.values())
        )

    def _log_failure(self, error: str) -> None:
        """Log why a tick failed, but a reason that comes and goes only at intervals."""
        now, (logged, at) = self._clock(), self._logged
        if str(self.failure) != error and (logged != error or now - at >= LOG_INTERVAL_S):
            _log.warning("coordinator_waits", extra={"error": error})
            self._logged = (error, now)

    def _tick(self, now: float) -> None:
        # Without a target, poll at every tick, because a worker may have just created it.
        is_due = now - self._polled_at >= POLL_INTERVAL_S or self._generations.target is None
        if is_due:
            self._poll(now)
        self._ledgers.follow_deltas(now)
        if is_due:
            self._ledgers.compare_slices()
            self._ledgers.reread_unclear(now - LOST_AFTER_S)
        self._compare_due()
        for ledger in self._ledgers:
            self._send(ledger, ledger.next_saves(MAX_PENDING), QueueName.SAVES, now)
            self._send(ledger, ledger.next_batch(MAX_PENDING), QueueName.BUILDS, now)
        self._publish(now)
        if is_due:
            self._tidy(now)

    def _poll(self, now: float) -> None:
        """Read the aliases, the approvals and the failed items."""
        self._ledgers.keep(self._generations.poll(now))
        self._note_searched()
        if self._scans.review():
            self._ledgers.mark_due()
        self._ledgers.follow_failures(self._scans)
        self._polled_at = now

    def _tidy(self, now: float) -> None:
        """Remove what is no longer needed, and request a keyword snapshot if one is due."""
        self._ledgers.settle_failures(self._scans)
        searched = self._ledgers.get(self._generations.active)
        self._generations.request_snapshot(now, len(searched.states) if searched else 0)
        if now - self._retired_at >= RETIRE_INTERVAL_S:
            self._retired_at = now
            self._generations.retire(now)
            used = {self._generations.active or "", self._generations.target or ""}
            self._unused.check(used, now, self._now())
        if not self._is_behind:
            self._current_at = now

    def _note_searched(self) -> None:
        """Record the catalogue of the active collection, as far as it is known."""
        own = self._scans.catalogue if self._generations.is_own else None
        self._searched.follow(configuration_of(self.active), own)

    def _compare_due(self) -> None:
        """Compare the due items with the ledgers."""
        due = self._ledgers.due
        if due is None or due:
            for ledger in self._ledgers:
                self._compare(ledger, due)
            self._ledgers.due = set()

    def _compare(self, ledger: Ledger, compared: Collection[str] | None) -> None:
        """Compare some items, or all if None, and queue those that differ."""
        items, states = self._scans.items, ledger.states
        if compared is not None:
            items = {item: items[item] for item in compared if item in items}
            states = {item: states[item] for item in compared if item in states}
        changes = self._changes(ledger, items, states)
        if compared is None and ledger.collection == self._generations.active:
            self._emptied = changes.emptied
        ledger.queue(changes.written, changes.removed, compared)

    def _changes(
        self, ledger: Ledger, items: Mapping[str, Item], states: Mapping[str, State]
    ) -> Changes:
        """Compare items with states by the rules for a ledger's collection."""
        is_target = ledger.collection == self._generations.target
        return diff(
            items,
            states,
            self._scans.keeps,
            prune=is_target and self._generations.is_rebuild,
            others=self._scans.offering,
            holds=self._scans.holds,
        ).without(ledger.failed)

    def _send(self, ledger: Ledger, batch: Batch, queue_name: QueueName, now: float) -> None:
        items = [item.whole() for item in self._affordable(batch.items)]
        removed = batch.removed
        if not items and not removed:
            return
        if ledger.collection != self._generations.active:  # a build, which is not searched yet
            queue_name = QueueName.BUILDS
        milliseconds = int(self._now() * 1_000)
        revision = ledger.send(
            items, removed, queue=queue_name.value, milliseconds=milliseconds, now=now
        )
        self._ledgers.note_sent(ledger, [*(item.id for item in items), *removed])
        waiting = list(jobs(ledger.collection, revision, items, removed))
        try:
            with self._trace.sending(len(items), len(removed)):
                while waiting:
                    self._queue.submit(waiting[0], queue_name)
                    del waiting[0]
        finally:
            for job in waiting:
                ledger.not_queued([*(item.id for item in job.items), *job.removed])
        counts = {"items": len(items), "removed": len(removed)}
        extra = {"collection": ledger.collection, "queue": queue_name.value, **counts}
        _log.info("jobs_sent", extra=extra)

    def _publish(self, now: float) -> None:
        """Publish a complete build. A first index is searchable from its first items on."""
        if self.ledger is not None and self.ledger.has_items and self._lease.is_held:
            self._generations.open_first()
        is_finished = self._is_sent() and self._is_ready(now) and self._finish(now)
        if is_finished and self._lease.is_held:  # it may have expired during a long build
            self._generations.publish()
            self._ledgers.mark_due()  # finds the suddenly empty sources of the new collection
            self._polled_at = self._ready_at = float("-inf")

    def _is_sent(self) -> bool:
        """Whether all sources of files were read, and everything was sent to the build."""
        ledger = self.ledger
        if ledger is None or not self._generations.is_building or self._why_unpublished:
            return False
        return not ledger.waits and self._scans.are_files_read

    def _is_ready(self, now: float) -> bool:
        """Whether a search of the build is fast; checked once per poll interval."""
        if now >= self._ready_at:
            self._is_fast = self._generations.is_ready()
            self._ready_at = now + POLL_INTERVAL_S
        return self._is_fast

    def _finish(self, now: float) -> bool:
        """Compare a build with the store, slice by slice, and queue what it still lacks.

        This does not wait for servers that are still starting, unless no other source has an item.

        Returns:
            Whether the build is complete and can be published.
        """
        ledger = self.ledger
        assert ledger is not None
        if not self._ledgers.compare_finally(ledger, now):
            return False
        changes = self._changes(ledger, self._scans.items, ledger.states)
        differing = [*(item.id for item in changes.written), *changes.removed]
        if not all(map(ledger.is_held, differing)):
            return False  # the next tick sends the changes
        if missing := self._missing(ledger):
            ledger.queue(missing, compared=[item.id for item in missing])
            return False
        if ledger.states:
            return True
        if self._scans.is_complete and self._generations.replaces_others:
            self._offers_nothing = True  # a folder that is not mounted looks like this
        return self._scans.is_complete and not self._offers_nothing

    def _missing(self, ledger: Ledger) -> list[Item]:
        """The items of the active collection that a build lacks and must keep.

        If the active collection belongs to another configuration, a source may differ from its
        namesake there. Such a source keeps no items if more callers may see it now.
        """
        active, catalogue = self._generations.active, self._scans.catalogue
        if active in (None, ledger.collection) or self._scans.is_exhaustive:
            return []
        heirs = self._searched.heirs(catalogue)
        # A user's rebuild removes the items of suddenly empty sources.
        is_rebuild = self._generations.is_rebuild
        empty = frozenset() if is_rebuild else self._searched.identical(catalogue)
        empty -= self._scans.offering
        with self._store.open(active) as old:
            missing = [
                item_key(state.item)
                for state in old.states()
                if state.source in heirs
                and self._must_keep(ledger, state, is_empty=state.source in empty)
            ]
            return [*items_of(old.records(missing).values())]

    def _must_keep(self, ledger: Ledger, state: State, *, is_empty: bool) -> bool:
        """Whether a build lacks an item of the active collection and must keep it.

        It must if the item may still exist, because its source or file is unreadable or was not
        read yet, and no other source with precedence offers the same id.

        Args:
            ledger: The ledger of the build.
            state: The state of the item in the active collection.
            is_empty: Whether its source is suddenly empty, so that it keeps its items.
        """
        written = ledger.states.get(state.item)
        if offered := self._scans.items.get(state.item):
            is_other = written is not None and written.source != state.source
            return is_other and self._scans.holds(state, offered)
        is_known = written is not None or state.item in ledger.failed
        return not is_known and (is_empty or self._scans.keeps(state))


def _failure(source: SourceState) -> Problem:
    """The problem of a source that cannot be read."""
    severity = Severity.WARNING if source.awaits_user else Severity.ERROR
    return Problem(
        severity=severity, message=source.error, path=source.name, sources=(source.name,)
    )
