"""Verifies the keyword index of a query process by comparing it with the collection, in slices.

Deltas are not enough, because a worker may be killed between a write and its announcement, and in a
cluster a read may not yet show an announced write. What is repaired is announced again, because the
snapshot that the next process loads follows the announcements.
"""

import contextlib
import logging
import time
from collections.abc import Iterable, Mapping

from repertory.catalogue.item import END_KEY
from repertory.coordination.deltas import REMOVED
from repertory.errors import StoreError
from repertory.index.vectors import State, next_key
from repertory.indexing.keyword_feed import OVERLAP, KeywordFeed
from repertory.system.jitter import jittered

INTERVAL_S = 5.0  # between two slices, varied by up to a fifth
SLICE = 500  # items per slice; small because the store reads their whole records
MIN_AGE_S = 4.0  # a difference is repaired if no delta explains it within this time
MAX_PAUSE = 128  # slices between two urgent passes if passes do not settle the number of items
MAX_LOGGED = 20  # ids

_log = logging.getLogger(__name__)


class Verifier:
    """Compares a keyword index with its collection and repairs it. Not thread-safe.

    It never reads a large collection at once. Every few seconds it counts the items, and reads the
    states of the next slice of keys and of a page of recent writes. If the number of items differs
    for a while, the slices follow without a pause. After such a pass without success, the pause
    before the next one doubles.

    Args:
        feed: The keyword index and its collection.
        recent: Whether to also read recent writes. This is for stores to which other processes
            write, which have an index of revisions.

    Attributes:
        repaired: The number of repaired items.
        verified_at: When the last slice of a pass was compared, in Unix seconds; 0 for never.
        is_urgent: Whether the slices follow without a pause.
    """

    def __init__(self, feed: KeywordFeed, *, recent: bool) -> None:
        self.repaired = 0
        self.verified_at = 0.0
        self.is_urgent = False
        self._feed = feed
        self._reads_recent = recent
        self._due = float("-inf")
        self._start = 0  # the lowest key of the next slice
        self._since, self._recent_start = feed.revision - OVERLAP, 0
        # The stored hash of each differing item, and when it was read.
        self._suspects: dict[str, tuple[str, float]] = {}
        self._differed = 0  # how many counts in a row have differed
        self._pause = 1

    def step(self, now: float) -> None:
        """Compare the next slice if due, and repair items that have differed for a while.

        Args:
            now: The time of a monotonic clock, in seconds.

        Raises:
            StoreError: The collection is unreadable. Earlier results are kept.
        """
        is_due = now >= self._due
        if not (is_due or self.is_urgent):
            return
        self._suspect(self._slice(), now)
        if is_due:
            self._due = now + jittered(INTERVAL_S)  # spreads the processes
            if self._reads_recent:
                self._suspect(self._recent(), now)
            self._repair(now)
            self._count()

    def _suspect(self, found: Mapping[str, str], now: float) -> None:
        """Record differing items with their stored hashes."""
        for item, stored in found.items():
            known = self._suspects.get(item)
            if known is None or known[0] != stored:
                self._suspects[item] = stored, now

    def _repair(self, now: float) -> None:
        """Reread items that have differed for ``MIN_AGE_S``; a delta may explain newer ones."""
        feed = self._feed
        differing = {*feed.differing({item: one for item, (one, _) in self._suspects.items()})}
        self._suspects = {item: one for item, one in self._suspects.items() if item in differing}
        old = {item: one for item, (one, at) in self._suspects.items() if now - at >= MIN_AGE_S}
        if not old:
            return
        states = {state.item: state.metadata_hash for state in feed.collection.states([*old])}
        missed = [item for item, stored in old.items() if states.get(item, REMOVED) == stored]
        feed.reread(missed)
        for item in old:
            del self._suspects[item]
        left = {*feed.differing({item: old[item] for item in missed})}
        repaired = [item for item in missed if item not in left]
        if repaired:
            self.repaired += len(repaired)
            some = sorted(repaired)[:MAX_LOGGED]
            extra = {"collection": feed.collection.name, "count": len(repaired), "items": some}
            _log.warning("items_repaired", extra=extra)
            with contextlib.suppress(StoreError):  # only new processes need it
                feed.announce(repaired)

    def _slice(self) -> dict[str, str]:
        """The stored hashes of items that differ in the next slice."""
        start = self._start
        states = self._feed.collection.page(start, SLICE)
        end = next_key(states, SLICE)
        stored = {state.item for state in states}
        held = self._feed.index.ids_between(start, end)
        differing = self._differing(states)
        differing |= {item: REMOVED for item in held if item not in stored}
        self._start = end % END_KEY
        if end == END_KEY:
            self.verified_at = time.time()
            self._end_urgency()
        return differing

    def _recent(self) -> dict[str, str]:
        """The stored hashes of items that differ in the next page of recent writes."""
        newest = self._feed.revision
        states = self._feed.collection.page(self._recent_start, SLICE, max(0, self._since))
        self._recent_start = next_key(states, SLICE) % END_KEY
        if not self._recent_start:
            self._since = newest - OVERLAP
        return self._differing(states)

    def _differing(self, states: Iterable[State]) -> dict[str, str]:
        stored = {state.item: state.metadata_hash for state in states}
        return {item: stored[item] for item in self._feed.differing(stored)}

    def _count(self) -> None:
        """Set ``is_urgent`` if the number of items has differed for a while."""
        if self._feed.collection.count_items() == len(self._feed.index):
            self.is_urgent, self._differed, self._pause = False, 0, 1
        elif not self.is_urgent:
            self._differed += 1
            self.is_urgent = self._differed > self._pause

    def _end_urgency(self) -> None:
        if self.is_urgent:
            self.is_urgent, self._differed = False, 0
            self._pause = min(2 * self._pause, MAX_PAUSE)
