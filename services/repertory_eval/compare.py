"""Whether one ranking is better than another, on the same queries."""

from collections.abc import Sequence

import msgspec
import numpy as np

from repertory_eval.measure import NORMAL_95

PERMUTATIONS = 10_000
TOGETHER = 100  # permutations at once, which bounds the memory


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One figure under two rankings.

    Attributes:
        name: The figure.
        before, after: Its means.
        difference: The mean of ``after - before``.
        low, high: Its 95 % confidence interval, over pairs.
        better, same, worse: The numbers of queries by how they fared after against before.
        p: How often chance alone makes a difference at least as large, 0…1: the signs of the
            queries' differences are drawn anew (a paired permutation test).
    """

    name: str
    before: float
    after: float
    difference: float
    low: float
    high: float
    better: int
    same: int
    worse: int
    p: float


def compare(name: str, before: Sequence[float], after: Sequence[float]) -> Comparison:
    """Compare two rankings by what one figure is for each query, in the same order."""
    first, second = np.array(before), np.array(after)
    differences = second - first
    mean, count = float(differences.mean()), len(differences)
    spread = float(differences.std(ddof=1)) if count > 1 else 0.0
    margin = NORMAL_95 * spread / count**0.5
    better, worse = int((differences > 0).sum()), int((differences < 0).sum())
    return Comparison(
        name=name,
        before=float(first.mean()),
        after=float(second.mean()),
        difference=mean,
        low=mean - margin,
        high=mean + margin,
        better=better,
        same=count - better - worse,
        worse=worse,
        p=_chance(differences[differences != 0]),
    )


def _chance(differences: np.typing.NDArray[np.float64]) -> float:
    rng = np.random.default_rng(0)  # the same figure every time
    least = abs(differences.sum()) - 1e-9
    reached = 0
    for _ in range(PERMUTATIONS // TOGETHER):
        signs = rng.choice((-1.0, 1.0), (TOGETHER, len(differences)))
        reached += int((abs(signs @ differences) >= least).sum())
    return (reached + 1) / (PERMUTATIONS + 1)
