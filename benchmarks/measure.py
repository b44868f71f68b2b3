"""The timing of calls, and the result type of the benchmarks."""

import gc
import statistics
import time
from collections.abc import Callable, Sequence

import msgspec


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One measured value of Repertory, and the value of the floor or peer to compare it with.

    Attributes:
        name: The measured work.
        ours: Repertory's time, rate, memory, or number of tokens.
        other: The value of the floor or the peer.
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
        """Repertory's value divided by the other value."""
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
    """The median seconds of each call, measured in turn so that slow moments affect all alike."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for place, work in enumerate(works):
            started = time.perf_counter()
            work()
            taken[place].append(time.perf_counter() - started)
    return [statistics.median(times) for times in taken]
