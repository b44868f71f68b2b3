"""The index of the collection that is searched, and what keeps it right and small."""

import contextlib

from repertory.coordination.ports import Coordination
from repertory.errors import StoreError
from repertory.index.vectors import Collection
from repertory.indexing.keyword_feed import KeywordFeed
from repertory.indexing.verification import Verifier
from repertory.memory import trim
from repertory.stats import watch_status

GROWTH = 1_000  # items that came or went before freed memory is given back
REST_INTERVAL_S = 60.0  # after which the pages of the keyword index that were read are given back


class FollowedIndex:
    """A collection and its keyword index, which follows it. Not thread-safe.

    Args:
        feed: The keyword index, opened.
        is_shared: Whether other processes write to the store.
    """

    def __init__(self, feed: KeywordFeed, *, is_shared: bool) -> None:
        self.feed = feed
        self.verifier = Verifier(feed, recent=is_shared)
        self._trimmed = 0  # the items when freed memory was given back
        self._rested_at = float("-inf")

    @property
    def collection(self) -> Collection:
        """The collection."""
        return self.feed.collection

    def verify(self, now: float) -> None:
        """Compare a slice of the index with the collection if it is due; the time is monotonic."""
        with contextlib.suppress(StoreError):  # the next poll reports missing vectors
            self.verifier.step(now)

    def settle(self) -> None:
        """Give back freed memory once many items came or went: a new index takes twice its size."""
        if abs(len(self.feed.index) - self._trimmed) >= GROWTH:
            self._trimmed = len(self.feed.index)
            trim()

    def rest(self, now: float) -> None:
        """Give back what searches have read of the keyword index, once in an interval.

        At 100,000 items the next ten take about a millisecond longer each.
        """
        if now - self._rested_at >= REST_INTERVAL_S:
            self._rested_at = now
            self.feed.index.rest()


def followed(
    collection: Collection, coordination: Coordination, *, is_shared: bool, is_served: bool
) -> FollowedIndex:
    """Load the keyword index of a collection, and read what a stored one lacks.

    Args:
        collection: The collection.
        coordination: Where a stored one is.
        is_shared: Whether other processes write to the store.
        is_served: Whether another thread of this process may be writing.

    Raises:
        StoreError: The collection is unreadable or lacks items; it is closed.
    """
    feed = KeywordFeed(collection, coordination)
    try:
        feed.open(is_shared=is_shared)
        try:
            if is_shared or feed.is_partial:
                feed.advance()
        except StoreError:
            if feed.is_partial:
                raise
        if not (is_shared or is_served):
            feed.check(lambda: _reported(coordination))
    except BaseException:
        collection.close()
        raise
    return FollowedIndex(feed, is_shared=is_shared)


def _reported(coordination: Coordination) -> int:
    """The number of items of all sources, as they were last reported."""
    watch = watch_status(coordination.status)
    return sum(one.items for one in watch.sources) if watch else 0
