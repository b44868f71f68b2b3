"""The keyword index of the searched collection: follows, verifies and trims it."""

import contextlib

from repertory.coordination.ports import Coordination
from repertory.errors import StoreError
from repertory.index.vectors import Collection
from repertory.indexing.keyword_feed import KeywordFeed
from repertory.live_search.verification import Verifier
from repertory.system.memory import trim
from repertory.watch_status import watch_status

GROWTH = 1_000  # added or removed items after which freed memory is returned to the system
FREE_INTERVAL_S = 60.0  # after which pages of the keyword index that were read are released


class FollowedIndex:
    """A collection and its keyword index, which follows it. Not thread-safe.

    Args:
        feed: The keyword index, opened.
        is_shared: Whether other processes write to the store.
    """

    def __init__(self, feed: KeywordFeed, *, is_shared: bool) -> None:
        self.feed = feed
        self.verifier = Verifier(feed, recent=is_shared)
        self._trimmed = 0  # the number of items when memory was last returned
        self._freed_at = float("-inf")

    @property
    def collection(self) -> Collection:
        """The collection."""
        return self.feed.collection

    def verify(self, now: float) -> None:
        """Compare a slice of the index with the collection if due. ``now`` is a monotonic time."""
        with contextlib.suppress(StoreError):  # the next poll reports missing vectors
            self.verifier.step(now)

    def return_memory(self) -> None:
        """Return freed memory to the system after many changes.

        Each change builds a new index, which temporarily takes twice the memory.
        """
        if abs(len(self.feed.index) - self._trimmed) >= GROWTH:
            self._trimmed = len(self.feed.index)
            trim()

    def free_memory(self, now: float) -> None:
        """Release the pages of the keyword index that searches have read, once per interval.

        At 100,000 items the next ten searches take about a millisecond longer each.
        """
        if now - self._freed_at >= FREE_INTERVAL_S:
            self._freed_at = now
            self.feed.index.free_memory()


def followed(
    collection: Collection, coordination: Coordination, *, is_shared: bool, is_served: bool
) -> FollowedIndex:
    """Load the keyword index of a collection, and add what its snapshot lacks.

    Args:
        collection: The collection.
        coordination: Where the snapshot is.
        is_shared: Whether other processes write to the store.
        is_served: Whether another thread of this process may be writing.

    Raises:
        StoreError: The collection is unreadable or lacks items. It has been closed.
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
    """The total number of items of all sources, as last reported."""
    watch = watch_status(coordination.status)
    return sum(one.items for one in watch.sources) if watch else 0
