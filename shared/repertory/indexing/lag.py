"""How long saves take: from the moment an item is sent until its worker has announced it."""

from bisect import bisect_left
from collections.abc import Iterable

from repertory.indexing.job import QueueName
from repertory.indexing.ledger import NEVER, Sent
from repertory.stats import SAVE_BOUNDS, SaveTimes


class Lag:
    """Counts how long saves took. Builds do not count: they are not saves."""

    def __init__(self) -> None:
        self._durations = [0] * (len(SAVE_BOUNDS) + 1)
        self._seconds = 0.0

    def note(self, done: Iterable[Sent], now: float) -> None:
        """Note items that are done now, on the clock on which they were sent."""
        for one in filter(_is_save, done):
            self._seconds += now - one.since
            self._durations[bisect_left(SAVE_BOUNDS, now - one.since)] += 1

    def times(self, pending: Iterable[Sent], now: float) -> SaveTimes:
        """What was noted so far, and for how long the oldest of these pending items has waited."""
        oldest = min((one.since for one in pending if _is_save(one)), default=now)
        return SaveTimes(
            waiting=now - oldest, seconds=self._seconds, durations=tuple(self._durations)
        )


def _is_save(sent: Sent) -> bool:
    return sent.queue == QueueName.SAVES and sent.at > NEVER
