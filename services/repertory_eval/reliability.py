"""The reliability of confidence: how well it predicts right hits, and what a threshold hides."""

from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np
from scipy.stats import binned_statistic

from repertory_eval.labelled import LabelledQuery

FIRST = 5  # hits among which a right item must be
BINS = 10

# The hits of a search, best first, as ids with confidences: for a text, at a threshold, with some
# items excluded.
Find = Callable[[str, float, tuple[str, ...]], Sequence[tuple[str, float]]]


class Observed(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The effect of confidence on one query.

    Attributes:
        stated: The confidence of its first hit; 0 without hits.
        is_right: Whether that is a right item.
        is_found: Whether a right item is among the first ``FIRST`` hits without a threshold.
        is_kept: The same with the threshold.
        is_rejected: Whether nothing reaches the threshold when the right items are excluded.
    """

    stated: float
    is_right: bool
    is_found: bool
    is_kept: bool
    is_rejected: bool


class Reliability(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The reliability of confidence on a set of queries; all figures are in 0…1.

    Attributes:
        error: The expected calibration error of first hits, in ten bins of equal width (Guo et al.
            2017).
        lost: The share of the queries that find a right item whose right items the threshold hides.
        rejected: The share of queries without an answer when their right items are excluded.
        stated: The mean confidence of first hits.
        right: The share of first hits that are right.
    """

    error: float
    lost: float
    rejected: float
    stated: float
    right: float


def observe(
    queries: Sequence[LabelledQuery], find: Find, threshold: float, step: Callable[[int], None]
) -> list[Observed]:
    """Search for every query without the threshold, with it, and without its right items.

    Args:
        queries: The queries.
        find: The search.
        threshold: The threshold.
        step: Called with the number of queries that are done.
    """
    observed = []
    for done, query in enumerate(queries, start=1):
        found = find(query.text, 0.0, ())[:FIRST]
        shown = find(query.text, threshold, ())[:FIRST]
        observed.append(
            Observed(
                stated=found[0][1] if found else 0.0,
                is_right=bool(found) and found[0][0] in query.grades,
                is_found=any(item in query.grades for item, _ in found),
                is_kept=any(item in query.grades for item, _ in shown),
                is_rejected=not find(query.text, threshold, tuple(query.grades)),
            )
        )
        step(done)
    return observed


def reliability(observed: Sequence[Observed]) -> Reliability:
    """The reliability of confidence for one query or more."""
    stated = np.array([one.stated for one in observed])
    right = np.array([one.is_right for one in observed])
    kept = [one.is_kept for one in observed if one.is_found]
    # scikit-learn's calibration_curve gives no counts of its bins, which the error needs.
    gaps = binned_statistic(stated, stated - right, "sum", BINS, (0, 1)).statistic
    return Reliability(
        error=float(np.abs(gaps).sum() / len(observed)),
        lost=1.0 - sum(kept) / len(kept) if kept else 0.0,
        rejected=sum(one.is_rejected for one in observed) / len(observed),
        stated=float(stated.mean()),
        right=float(right.mean()),
    )


def mean(of_sets: Iterable[Reliability]) -> Reliability:
    """The mean of each figure over one set or more."""
    means = np.mean([msgspec.structs.astuple(one) for one in of_sets], axis=0).tolist()
    return Reliability(**dict(zip(Reliability.__struct_fields__, means, strict=True)))
