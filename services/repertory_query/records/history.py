"""The performance of a server in the last day: a sample every few seconds, in memory.

It counts only the searches of this process, and is lost when the process ends.
"""

import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from repertory.watch_status import SAVE_BOUNDS
from repertory_query.records.recent import BOUNDS, Counts

INTERVAL_S = 15.0  # between samples
RETENTION_S = 24 * 3_600.0


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A time span, and the totals of its samples.

    Attributes:
        start, end: In Unix seconds.
        is_known: Whether it has a sample. A sample belongs to the span in which its interval ends.
        searches, empty: The answered searches, and those without results.
        durations: The searches by duration; see ``Counts``. Empty without searches.
        saves: The saved items by duration; see ``SaveTimes``. Empty without saves.
        pending, failed: The largest numbers of pending items and of failed jobs; None while
            they were unknown.
    """

    start: float
    end: float
    is_known: bool = False
    searches: int = 0
    empty: int = 0
    durations: Sequence[int] = ()
    saves: Sequence[int] = ()
    pending: int | None = None
    failed: int | None = None

    @property
    def median_ms(self) -> float | None:
        """The duration that half of the searches did not exceed, in milliseconds."""
        return _quantile_ms(self.durations, BOUNDS, 0.5)

    @property
    def slow_ms(self) -> float | None:
        """The duration that 95 % of the searches did not exceed, in milliseconds."""
        return _quantile_ms(self.durations, BOUNDS, 0.95)

    @property
    def lag_ms(self) -> float | None:
        """The milliseconds from save to index that half of the saves did not exceed."""
        return _quantile_ms(self.saves, SAVE_BOUNDS, 0.5)

    @property
    def slow_lag_ms(self) -> float | None:
        """The milliseconds from save to index that 95 % of the saves did not exceed."""
        return _quantile_ms(self.saves, SAVE_BOUNDS, 0.95)

    @property
    def empty_share(self) -> float | None:
        """The share of searches without results, 0…1; None without searches."""
        return self.empty / self.searches if self.searches else None


class History:
    """The samples of the last day. Thread-safe."""

    def __init__(self) -> None:
        self._samples: deque[Span] = deque(maxlen=int(RETENTION_S / INTERVAL_S))
        self._counted = Counts()
        self._saved: Sequence[int] = ()
        self._lock = threading.Lock()

    def note(
        self,
        at: float,
        counts: Counts,
        pending: int | None,
        failed: int | None,
        saves: Sequence[int] = (),
    ) -> None:
        """Add a sample: the changes since the previous one, and the pending work now.

        Args:
            at: The time, in Unix seconds.
            counts: The searches since the start of the process.
            pending: The number of pending items; None if unknown.
            failed: The number of failed jobs; None if unknown.
            saves: The saves by duration since the start of the watch; empty if unknown.
        """
        with self._lock:
            last, self._counted = self._counted, counts
            searches = counts.searches - last.searches
            # The watch may have been counting for days before this process began.
            saved = _gained(saves, self._saved) if saves and self._saved else ()
            self._saved = saves or self._saved
            sample = Span(
                start=self._samples[-1].end if self._samples else at,
                end=at,
                is_known=True,
                searches=searches,
                empty=counts.empty - last.empty,
                durations=_gained(counts.durations, last.durations),
                saves=saved,
                pending=pending,
                failed=failed,
            )
            self._samples.append(sample)

    @property
    def latest(self) -> Span | None:
        """The latest sample."""
        with self._lock:
            return self._samples[-1] if self._samples else None

    def spans(self, start: float, end: float, number: int) -> list[Span]:
        """A period divided into equal spans, earliest first.

        Args:
            start: The start of the period, in Unix seconds.
            end: Its end, which belongs to the last span.
            number: The number of spans.
        """
        bounds = [start + (end - start) * at / number for at in range(number + 1)]
        groups = [[Span(start=low, end=high)] for low, high in pairwise(bounds)]
        with self._lock:
            samples = [one for one in self._samples if start < one.end <= end]
        for sample in samples:
            groups[bisect_left(bounds, sample.end, 1, number) - 1].append(sample)
        return [replace(merged(group), end=group[0].end) for group in groups]


def merged(spans: Sequence[Span]) -> Span:
    """One span with the totals of one or more consecutive spans."""
    return Span(
        start=spans[0].start,
        end=spans[-1].end,
        is_known=any(one.is_known for one in spans),
        searches=sum(one.searches for one in spans),
        empty=sum(one.empty for one in spans),
        durations=_sums([one.durations for one in spans]),
        saves=_sums([one.saves for one in spans]),
        pending=_largest([one.pending for one in spans]),
        failed=_largest([one.failed for one in spans]),
    )


def _gained(new: Sequence[int], old: Sequence[int]) -> Sequence[int]:
    """The increases of counters, which start from zero after a restart; empty if none grew."""
    gains = [after - before for after, before in zip(new, old, strict=True)]
    gains = gains if min(gains, default=0) >= 0 else [*new]
    return tuple(gains) if any(gains) else ()


def _sums(counted: Sequence[Sequence[int]]) -> Sequence[int]:
    return [sum(column) for column in zip(*filter(None, counted), strict=True)]


def _quantile_ms(durations: Sequence[int], bounds: Sequence[float], share: float) -> float | None:
    """The duration that a share did not exceed, in ms; None without any durations.

    It is interpolated between the bounds. If it is above the last bound, it is the last bound.
    """
    rank = share * sum(durations)
    if not rank:
        return None
    below = 0
    for number, low, high in zip(durations, (0.0, *bounds), bounds, strict=False):
        if below + number >= rank:
            return 1_000 * (low + (high - low) * (rank - below) / number)
        below += number
    return 1_000 * bounds[-1]


def _largest(values: Sequence[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
