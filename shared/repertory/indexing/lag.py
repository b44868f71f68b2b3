"""Measures how long saves take, from sending an item until its worker announces it."""

from bisect import bisect_left
from collections.abc import Iterable

from repertory.indexing.job import QueueName
from repertory.indexing.ledger import NEVER, SentItem
from repertory.watch_status import SAVE_BOUNDS, SaveTimes


class Lag:
    """A histogram of the durations of saves. Builds are not counted."""

    def __init__(self) -> None:
        self._durations = [0] * (len(SAVE_BOUNDS) + 1)
        self._seconds = 0.0

    def note(self, done: Iterable[SentItem], now: float) -> None:
        """Record items that are done now. ``now`` is by the clock used when they were sent."""
        for one in filter(_is_save, done):
            self._seconds += now - one.since
            self._durations[bisect_left(SAVE_BOUNDS, now - one.since)] += 1

    def times(self, pending: Iterable[SentItem], now: float) -> SaveTimes:
        """The recorded durations, and how long the oldest pending save has waited."""
        oldest = min((one.since for one in pending if _is_save(one)), default=now)
        return SaveTimes(
            waiting=now - oldest, seconds=self._seconds, durations=tuple(self._durations)
        )


def _is_save(sent: SentItem) -> bool:
    return sent.queue == QueueName.SAVES and sent.at > NEVER
