"""The requests per minute of each caller, counted over all processes of one port."""

import secrets
import time
from collections.abc import Callable
from hashlib import blake2b
from multiprocessing.sharedctypes import RawArray

WINDOW_S = 60
BUCKETS = 4_096  # per process; 0.8 MB, of which only used pages take memory
SLOTS = 8  # callers per bucket; a further one replaces the least recently active one
_CELLS = 3  # per caller: its tag, and two cells with a window and its count
_COUNT_BITS = 32


class RequestCounts:
    """The requests of each caller, in memory that several processes share.

    Each process writes only its own part, so there is no lock that a killed process could keep. A
    request that another process counts at the same moment may be missed, but at most one per
    process.

    Args:
        processes: The number of processes.
    """

    def __init__(self, processes: int = 1) -> None:
        self._size = BUCKETS * SLOTS * _CELLS
        self._processes = processes
        self._cells = RawArray("Q", self._size * processes)
        self._secret = secrets.token_bytes()  # so that callers cannot choose another's bucket

    def get(self, caller: str, window: int) -> tuple[int, int]:
        """The requests of a caller in this window and in the one before, by all processes."""
        tag, bucket = self._place(caller)
        current = previous = 0
        for process in range(self._processes):
            start = process * self._size + bucket
            cells = self._cells[start : start + SLOTS * _CELLS]
            for slot in range(0, len(cells), _CELLS):
                if cells[slot] == tag:
                    current += _count(cells[slot + 1 + window % 2], window)
                    previous += _count(cells[slot + 2 - window % 2], window - 1)
        return current, previous

    def add(self, caller: str, window: int, process: int) -> None:
        """Count a request in the part of a process."""
        tag, bucket = self._place(caller)
        slot = self._slot(tag, process * self._size + bucket)
        if self._cells[slot] != tag:
            self._cells[slot : slot + _CELLS] = [0, 0, 0]
            self._cells[slot] = tag
        cell = slot + 1 + window % 2
        count = _count(self._cells[cell], window)
        self._cells[cell] = (window << _COUNT_BITS) + count + 1

    def _place(self, caller: str) -> tuple[int, int]:
        """The tag of a caller, never 0, and the first cell of its bucket."""
        digest = blake2b(caller.encode(), digest_size=8, key=self._secret).digest()
        tag = int.from_bytes(digest) | 1
        return tag, (tag >> 1) % BUCKETS * SLOTS * _CELLS

    def _slot(self, tag: int, start: int) -> int:
        """The slot of a caller: its own one, else the least recently used one."""
        cells = self._cells[start : start + SLOTS * _CELLS]
        places = range(0, len(cells), _CELLS)
        own = next((place for place in places if cells[place] == tag), None)
        if own is None:
            own = min(places, key=lambda place: max(cells[place + 1 : place + _CELLS]))
        return start + own


class Rates:
    """The rate limit of each caller: a sliding window of two counters.

    Args:
        per_minute: The number of requests that a caller may make per minute.
        counts: The requests counted so far.
        process: The number of this process, which counts in its own part.
        clock: Returns seconds, the same for all processes.
    """

    def __init__(
        self,
        per_minute: int,
        counts: RequestCounts | None = None,
        process: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.per_minute = per_minute
        self._counts = counts or RequestCounts()
        self._process = process
        self._clock = clock

    def wait(self, caller: str, most: int = 0) -> float:
        """Count a request; return 0 if it is allowed, else the seconds until one will be.

        Args:
            caller: The caller.
            most: Another limit than ``per_minute``, if not 0.
        """
        most = most or self.per_minute
        window, elapsed = divmod(self._clock(), WINDOW_S)
        current, previous = self._counts.get(caller, int(window))
        left = WINDOW_S - elapsed
        if current + 1 + previous * left / WINDOW_S <= most:
            self._counts.add(caller, int(window), self._process)
            return 0.0
        if current + 1 <= most:  # wait until enough of the previous window has passed
            return left - WINDOW_S * (most - current - 1) / previous
        return left + WINDOW_S * (1 - max(0, most - 1) / current)


def _count(cell: int, window: int) -> int:
    return cell & (1 << _COUNT_BITS) - 1 if cell >> _COUNT_BITS == window else 0
