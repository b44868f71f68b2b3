"""Timing, and the figure of a benchmark."""

import gc
import statistics
import time
from collections.abc import Callable, Sequence

import msgspec


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure: ours and that of the floor or peer it is compared with.

    Attributes:
        name: The measured work.
        ours: Its time, its rate, or its memory.
        other: The same value of the floor or the peer.
        against: The floor or the peer, in words.
        unit: ``s``, ``ms``, ``MB``, ``tokens``, ``texts/s`` or ``requests/s``.
        target: The required ratio ours / other.
        at_least: Whether the target is a minimum rather than a maximum.
    """

    name: str
    ours: float
    other: float
    against: str
    unit: str
    target: float
    at_least: bool = False

    @property
    def ratio(self) -> float:
        """Ours divided by the other's."""
        return self.ours / self.other

    @property
    def reached(self) -> bool:
        """Whether the target is reached."""
        return self.ratio >= self.target if self.at_least else self.ratio <= self.target


def seconds(work: Callable[[], object]) -> float:
    """The duration of one call in seconds."""
    gc.collect()
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def medians(works: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """The median time of each, measured alternately so that a slow moment affects all alike."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for place, work in enumerate(works):
            started = time.perf_counter()
            work()
            taken[place].append(time.perf_counter() - started)
    return [statistics.median(times) for times in taken]
