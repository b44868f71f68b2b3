"""What a search shows of judged items, and how well its confidence predicts their grades.

In a judged set all items that were looked at for a query have a grade, zeros included. So it shows
what an ordinary labelled set cannot: whether an item beside the labelled one is good too, and
whether a query that nothing answers is rejected.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.stats import binned_statistic
from sklearn.metrics import average_precision_score, roc_auc_score

from repertory.search.answer import Hit
from repertory.search.calibration import GOOD
from repertory.search.engine import SearchEngine
from repertory.search.lookup import readable_index
from repertory.search.query import Query
from repertory_eval.labelled import LabelledQuery
from repertory_eval.measure import Found

BINS = 10

# A query's text to its hits at the active settings, and a query's text and the ids of some items to
# the stated probability of each.
Show = Callable[[str], Sequence[Found]]
State = Callable[[str, Iterable[str]], Mapping[str, float]]


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What a search made of one judged query.

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
        """The grades of the hits that were judged; of a hit with duplicates the best of theirs."""
        known = self.query.grades
        of_hits = ([known[item] for item in hit if item in known] for hit in self.shown)
        return [max(grades) for grades in of_hits if grades]


class Judged(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The figures of some judged queries; shares in 0…1, None where there is nothing to count.

    A query is answerable if one of its judged items is good. A shown item that was not judged
    counts neither as good nor as bad.

    Attributes:
        queries: The number of queries.
        answerable: The number of those that are answerable.
        pairs: The number of judged pairs.
        error: The expected calibration error: the gap between the stated probability and the share
            of good pairs, over all pairs, in ten bins of equal width (Guo et al. 2017).
        auc: The area under the ROC curve: how often a good pair has a higher probability than
            another pair.
        precision: The average precision of the pairs in the order of their probabilities.
        nothing_good: The share of the answerable queries that show no item judged good.
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
    """The probability that a hit states."""
    return hit.evidence.probability  # the one place that says which number is measured


def stated(engine: SearchEngine, query: Query, items: Iterable[str]) -> dict[str, float]:
    """The probabilities of the indexed ones of some items for a query, by id.

    The search need not find them.

    Raises:
        UsageError: As for ``SearchEngine.search``.
        StoreError: The items cannot be read now.
    """
    index = readable_index(engine)
    rows = [row for item in items if (row := index.row_of(item)) is not None]
    hits = engine.hits_at(engine.rank(query, also=rows), rows)
    return {hit.id: probability(hit) for hit in hits}


def observe(
    queries: Sequence[LabelledQuery], show: Show, state: State, step: Callable[[int], None]
) -> list[Observed]:
    """Ask every query; ``step`` is called with the number of queries that are done."""
    observed = []
    for done, query in enumerate(queries, start=1):
        observed.append(
            Observed(query=query, shown=show(query.text), stated=state(query.text, query.grades))
        )
        step(done)
    return observed


def judge(observed: Sequence[Observed]) -> Judged:
    """The figures of one query or more."""
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
    """The expected calibration error of one stated probability or more."""
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
