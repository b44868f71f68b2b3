"""Measures which judged items a search shows, and how well its confidence predicts their grades.

In a judged set, all items that were considered for a query have a grade, including zeros. So it
shows what an ordinary labelled set cannot: whether an item other than the labelled one is good,
too, and whether a query without an answer is rejected.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.stats import binned_statistic
from sklearn.metrics import average_precision_score, roc_auc_score

from repertory.search.answer import Hit
from repertory.search.calibration import GOOD
from repertory.search.engine import SearchEngine
from repertory.search.query import Query
from repertory_eval.labelled import LabelledQuery
from repertory_eval.measure import Found

BINS = 10


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a search for one judged query.

    Attributes:
        query: The query, with the grade of every judged item.
        shown: The hits, best first.
        stated: The stated probability, 0…1, of each judged item that is indexed, shown or not.
    """

    query: LabelledQuery
    shown: Sequence[Found]
    stated: Mapping[str, float]

    @property
    def is_answerable(self) -> bool:
        """Whether a good item is indexed."""
        return any(self.query.grades[item] >= GOOD for item in self.stated)

    @property
    def grades(self) -> list[int]:
        """The grades of the judged hits; for a hit with duplicates, the best of their grades."""
        known = self.query.grades
        of_hits = ([known[item] for item in hit if item in known] for hit in self.shown)
        return [max(grades) for grades in of_hits if grades]


class Judged(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The figures of some judged queries; shares are in 0…1, or None if there is nothing to count.

    A query is answerable if one of its judged items is good. A shown item that was not judged
    counts neither as good nor as bad.

    Attributes:
        queries: The number of queries.
        answerable: The number of those that are answerable.
        pairs: The number of judged pairs.
        error: The expected calibration error: the mean gap between the stated probability and the
            share of good pairs, in ten bins of equal width (Guo et al. 2017).
        auc: The area under the ROC curve: how often a good pair has a higher probability than a
            pair that is not good.
        precision: The average precision of the pairs in the order of their probabilities.
        nothing_good: The share of the answerable queries that show no good item.
        rejected: The share of the other queries that show nothing at all.
        good: The share of the shown and judged items that are good.
        unjudged: The share of the shown items that were not judged.
    """

    queries: int
    answerable: int
    pairs: int
    error: float | None
    auc: float | None
    precision: float | None
    nothing_good: float | None
    rejected: float | None
    good: float | None
    unjudged: float | None


def probability(hit: Hit) -> float:
    """The stated probability of a hit."""
    return hit.evidence.probability  # the only place that decides which number is measured


def stated(engine: SearchEngine, query: Query, items: Iterable[str]) -> dict[str, float]:
    """The stated probabilities of the indexed items among these for a query, by id.

    The search need not find the items.

    Raises:
        UsageError: As for ``SearchEngine.search``.
        StoreError: The items cannot be read now.
    """
    index = engine.keywords
    rows = [row for item in items if (row := index.row_of(item)) is not None]
    hits = engine.hits_at(engine.rank(query, also=rows), rows)
    return {hit.id: probability(hit) for hit in hits}


def judge(observed: Sequence[Observed]) -> Judged:
    """The figures of one or more queries."""
    pairs = [
        (value, one.query.grades[item] >= GOOD)
        for one in observed
        for item, value in one.stated.items()
    ]
    values, good = np.array([value for value, _ in pairs]), np.array([good for _, good in pairs])
    has_both = len({*good.tolist()}) == 2
    shown = [grade >= GOOD for one in observed for grade in one.grades]
    hits = sum(len(one.shown) for one in observed)
    return Judged(
        queries=len(observed),
        answerable=sum(one.is_answerable for one in observed),
        pairs=len(pairs),
        error=calibration_error(values, good) if pairs else None,
        auc=float(roc_auc_score(good, values)) if has_both else None,
        precision=float(average_precision_score(good, values)) if has_both else None,
        nothing_good=_share(
            max(one.grades, default=0) < GOOD for one in observed if one.is_answerable
        ),
        rejected=_share(not one.shown for one in observed if not one.is_answerable),
        good=_share(shown),
        unjudged=1 - len(shown) / hits if hits else None,
    )


def calibration_error(values: NDArray[np.float64], good: NDArray[np.bool_]) -> float:
    """The expected calibration error of one or more stated probabilities."""
    # scikit-learn's calibration_curve gives no counts of its bins, which the error needs.
    gaps = binned_statistic(values, values - good, "sum", BINS, (0, 1)).statistic
    return float(np.abs(gaps).sum() / len(values))


def by_tag(observed: Sequence[Observed]) -> dict[str, Judged]:
    """The figures of the queries with each tag."""
    tags = sorted({tag for one in observed for tag in one.query.tags})
    return {tag: judge([one for one in observed if tag in one.query.tags]) for tag in tags}


def _share(of: Iterable[bool]) -> float | None:
    counted = list(of)
    return sum(counted) / len(counted) if counted else None
