"""The figures of a ranking: recall, hits, reciprocal rank and discounted gain."""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Container, Mapping, Sequence

import msgspec
from ir_measures import RR, Measure, R, Success, iter_calc, nDCG

from repertory_eval.labelled import LabelledQuery

DEPTH = 10  # measured hits per query
NORMAL_95 = 1.96  # standard errors on either side of a mean in a 95 % interval

MEASURES: Mapping[str, Measure] = {
    **{f"recall@{depth}": R @ depth for depth in (1, 3, 5, 10)},
    **{f"hit@{depth}": Success @ depth for depth in (1, 5)},
    "MRR": RR,
    f"nDCG@{DEPTH}": nDCG @ DEPTH,
}
FIRST = 5  # hits that are checked for a right item that the threshold hides
HIDDEN = "hidden"  # the share of queries that lose their right item among these to the threshold

# The ids of one hit: its own, then those of its duplicates.
Found = tuple[str, ...]
# Returns the hits for a query's text, best first, with or without the threshold.
Search = Callable[[str, bool], Sequence[Found]]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one query.

    Attributes:
        query: The query.
        found: The ids of the hits, best first, at most ``DEPTH``.
        values: The value of each of ``MEASURES`` by name, 0…1; also of ``HIDDEN``, if a right item
            is among the first hits without the threshold.
    """

    query: LabelledQuery
    found: tuple[str, ...]
    values: Mapping[str, float]


class Measures(msgspec.Struct, frozen=True, kw_only=True):
    """The measures for one sort of queries.

    Attributes:
        names: The reported measures.
        main: The measure that has to reach a minimum.
        graded_by: The measure that grades single queries.
    """

    names: Sequence[str]
    main: str
    graded_by: str


LABELLED = Measures(
    names=("recall@1", "recall@3", "recall@5", "recall@10", "MRR", "nDCG@10", HIDDEN),
    main="recall@5",
    graded_by="nDCG@10",
)
# Any one of several right items is enough, because all are equally near to the query.
GENERATED = Measures(
    names=("hit@1", "hit@5", "MRR", HIDDEN),
    main="hit@5",
    graded_by="MRR",
)


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A mean over queries, and its 95 % confidence interval."""

    name: str
    mean: float
    low: float
    high: float


class Hard(msgspec.Struct, frozen=True, kw_only=True):
    """An item that its queries seldom find.

    Attributes:
        item: Its id.
        queries: The number of queries that it answers.
        mean: The mean figure of these queries.
        example: The query with the lowest figure.
    """

    item: str
    queries: int
    mean: float
    example: Outcome


def outcomes(
    queries: Sequence[LabelledQuery],
    search: Search,
    step: Callable[[int], None],
    *,
    has_threshold: bool,
) -> list[Outcome]:
    """Search for every query and measure the hits.

    Args:
        queries: The queries.
        search: The search.
        step: Called with the number of finished queries.
        has_threshold: Whether only hits that reach the threshold are measured.
    """
    found, hidden = [], []
    for done, query in enumerate(queries, start=1):
        text, right = query.text, query.grades
        hits = search(text, has_threshold)
        if has_threshold:
            is_kept = _is_first(right, hits)
            is_found = is_kept or _is_first(right, search(text, False))
        else:
            is_found = _is_first(right, hits)
            is_kept = is_found and _is_first(right, search(text, True))
        found.append(hits)
        hidden.append(not is_kept if is_found else None)
        step(done)
    return measure(queries, found, hidden)


def measure(
    queries: Sequence[LabelledQuery],
    found: Sequence[Sequence[Found]],
    hidden: Sequence[bool | None] = (),
) -> list[Outcome]:
    """Measure the hits of some queries.

    A hit counts for its duplicates, too: it gets the best of their grades, and the others need not
    be found.

    Args:
        queries: The queries.
        found: The hits of each query, best first.
        hidden: Whether the threshold hides the right items of each query; None if there is nothing
            to hide.
    """
    judgements, runs = {}, {}
    for number, (query, hits) in enumerate(zip(queries, found, strict=True)):
        # pytrec_eval sees ranks instead of ids: it cuts ids at NUL and crashes on lone surrogates.
        best = hits[:DEPTH]
        ranks = {item: str(rank) for rank, hit in enumerate(best) for item in hit}
        graded: dict[str, int] = {}
        for place, (item, grade) in enumerate(query.grades.items()):
            key = ranks.get(item, f"missing {place}")
            graded[key] = max(grade, graded.get(key, 0))
        judgements[str(number)] = graded
        runs[str(number)] = {str(rank): float(-rank) for rank in range(len(best))}
    values: dict[str, dict[Measure, float]] = defaultdict(dict)
    for one in iter_calc(list(MEASURES.values()), judgements, runs):
        values[one.query_id][one.measure] = one.value
    results = []
    for number, (query, hits) in enumerate(zip(queries, found, strict=True)):
        measured = {name: values[str(number)][kind] for name, kind in MEASURES.items()}
        if hidden and (is_hidden := hidden[number]) is not None:
            measured[HIDDEN] = float(is_hidden)
        results.append(
            Outcome(query=query, found=tuple(hit[0] for hit in hits[:DEPTH]), values=measured)
        )
    return results


def figures(results: Sequence[Outcome], measures: Measures = LABELLED) -> list[Figure]:
    """The means over all queries, without measures that no query has."""
    values = {
        name: [one.values[name] for one in results if name in one.values] for name in measures.names
    }
    return [_figure(name, measured) for name, measured in values.items() if measured]


def _is_first(right: Container[str], hits: Sequence[Found]) -> bool:
    """Whether a right item is among the first hits."""
    return any(item in right for hit in hits[:FIRST] for item in hit)


def by_tag(results: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """The outcomes of the queries with each tag."""
    groups: defaultdict[str, list[Outcome]] = defaultdict(list)
    for one in results:
        for tag in one.query.tags:
            groups[tag].append(one)
    return dict(groups)


def hardest(results: Sequence[Outcome], name: str, limit: int) -> list[Hard]:
    """The items with the lowest mean figures; ties are broken by more queries, then by id.

    Items with a perfect mean are left out.

    Args:
        results: The outcomes.
        name: The measure that grades them.
        limit: The maximum number of items.
    """
    of_item: defaultdict[str, list[Outcome]] = defaultdict(list)
    for one in results:
        for item in one.query.grades:
            of_item[item].append(one)
    items = [
        Hard(
            item=item,
            queries=len(outcomes),
            mean=sum(one.values[name] for one in outcomes) / len(outcomes),
            example=min(outcomes, key=lambda one: one.values[name]),
        )
        for item, outcomes in of_item.items()
    ]
    items.sort(key=lambda hard: (hard.mean, -hard.queries, hard.item))
    return [hard for hard in items[:limit] if hard.mean < 1]


def _figure(name: str, values: Sequence[float]) -> Figure:
    count = len(values)
    mean = min(sum(values) / count, 1.0)  # rounding may exceed 1
    are_shares = all(value in (0.0, 1.0) for value in values)
    variance = 0.0 if are_shares or count < 2 else statistics.variance(values)
    low, high = _interval(mean, variance, count)
    return Figure(name=name, mean=mean, low=low, high=high)


def _interval(mean: float, variance: float, count: int) -> tuple[float, float]:
    """Wilson's 95 % confidence interval for the mean of values in 0…1.

    Values between 0 and 1 vary less than values of 0 and 1. So they count as the number of binary
    observations whose mean has the same standard error.

    Args:
        mean: The mean.
        variance: The sample variance of the values; 0 if they are binary, or all equal.
        count: The number of values.
    """
    # Own code, because scipy's Wilson interval takes whole numbers of successes and trials.
    share_variance = mean * (1 - mean)
    varies = min(variance / share_variance, 1.0) if share_variance > 0 < variance else 1.0
    weight = NORMAL_95**2 * varies / count
    centre = (mean + weight / 2) / (1 + weight)
    half = math.sqrt(share_variance * weight + weight**2 / 4) / (1 + weight)
    return max(centre - half, 0.0), min(centre + half, 1.0)
