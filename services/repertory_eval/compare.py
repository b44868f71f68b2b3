"""Tests whether one ranking is better than another on the same queries."""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.stats import permutation_test

from repertory_eval.measure import NORMAL_95

PERMUTATIONS = 10_000
EQUAL = 1e-12  # differences that vary by less are equal apart from rounding
BATCH_SIZE = 100  # permutations in memory


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One figure under two rankings.

    Attributes:
        name: The figure.
        before, after: Its means.
        difference: The mean of ``after - before``.
        low, high: The 95 % confidence interval of the difference, over pairs; None if all pairs
            differ equally, because that allows no estimate.
        better, same, worse: The numbers of queries whose figure rose, stayed the same or fell.
        p: The probability, 0…1, of a difference at least as large by chance alone, from a paired
            permutation test, which is exact if few queries differ.
    """

    name: str
    before: float
    after: float
    difference: float
    low: float | None
    high: float | None
    better: int
    same: int
    worse: int
    p: float


def compare(name: str, before: Sequence[float], after: Sequence[float]) -> Comparison:
    """Compare two rankings by one figure of each query, in the same order."""
    first, second = np.array(before), np.array(after)
    differences = second - first
    mean, count = float(differences.mean()), len(differences)
    margin = None
    if np.ptp(differences) > EQUAL:
        margin = NORMAL_95 * float(differences.std(ddof=1)) / count**0.5
    better, worse = int((differences > 0).sum()), int((differences < 0).sum())
    return Comparison(
        name=name,
        before=float(first.mean()),
        after=float(second.mean()),
        difference=mean,
        low=None if margin is None else mean - margin,
        high=None if margin is None else mean + margin,
        better=better,
        same=count - better - worse,
        worse=worse,
        p=_chance(differences[differences != 0]),
    )


def _chance(differences: NDArray[np.float64]) -> float:
    if len(differences) < 2:  # a single difference has the same size with either sign
        return 1.0
    tested = permutation_test(
        (differences,),
        np.sum,
        permutation_type="samples",  # for a single sample, this permutes the signs
        vectorized=True,
        n_resamples=PERMUTATIONS,
        batch=BATCH_SIZE,
        rng=np.random.default_rng(0),  # for reproducible figures
    )
    return float(tested.pvalue)
