"""The figures of a ranking: recall, hits, reciprocal rank and discounted gain."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import msgspec
from ir_measures import RR, Measure, R, Success, iter_calc, nDCG

from repertory_eval.labelled import LabelledQuery

DEPTH = 10  # hits that are measured
NORMAL_95 = 1.96  # standard errors either side of a mean in a 95 % interval

MEASURES: Mapping[str, Measure] = {
    **{f"recall@{depth}": R @ depth for depth in (1, 3, 5, 10)},
    **{f"hit@{depth}": Success @ depth for depth in (1, 5)},
    "MRR": RR,
    f"nDCG@{DEPTH}": nDCG @ DEPTH,
}
HIDDEN = "hidden"  # the share of queries whose right items only the threshold hides

Search = Callable[[str], Sequence[str]]  # a query's text to the ids of its hits, best first


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one query.

    Attributes:
        query: The query.
        found: The ids of the hits, best first, at most ``DEPTH``.
        values: The value of each of ``MEASURES`` and of ``HIDDEN`` by name, 0…1.
    """

    query: LabelledQuery
    found: tuple[str, ...]
    values: Mapping[str, float]


class Measures(msgspec.Struct, frozen=True, kw_only=True):
    """The measures of one sort of queries.

    Attributes:
        names: Those that are reported.
        judged_by: The one that has to reach a minimum.
        graded_by: The one that grades single queries.
    """

    names: Sequence[str]
    judged_by: str
    graded_by: str


LABELLED = Measures(
    names=("recall@1", "recall@3", "recall@5", "recall@10", "MRR", "nDCG@10"),
    judged_by="recall@5",
    graded_by="nDCG@10",
)
# Any of several right items will do: all are as near to the query.
GENERATED = Measures(
    names=("hit@1", "hit@5", "MRR", HIDDEN),
    judged_by="hit@5",
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
        mean: The mean figure of those.
        example: The one with the lowest figure.
    """

    item: str
    queries: int
    mean: float
    example: Outcome


def outcomes(
    queries: Sequence[LabelledQuery],
    search: Search,
    step: Callable[[int], None],
    without_threshold: Search,
) -> list[Outcome]:
    """Search for every query and measure the hits.

    Args:
        queries: The queries.
        search: The search.
        step: Called with the number of queries that are done.
        without_threshold: The same search with nothing hidden.
    """
    found, hidden = [], []
    for done, query in enumerate(queries, start=1):
        right, ids = query.grades.keys(), tuple(search(query.text)[:DEPTH])
        found.append(ids)
        hidden.append(
            right.isdisjoint(ids) and not right.isdisjoint(without_threshold(query.text)[:DEPTH])
        )
        step(done)
    return measure(queries, found, hidden)


def measure(
    queries: Sequence[LabelledQuery],
    found: Sequence[Sequence[str]],
    hidden: Sequence[bool] | None = None,
) -> list[Outcome]:
    """Measure the hits of some queries.

    Args:
        queries: The queries.
        found: The ids of the hits of each, best first.
        hidden: Whether the threshold alone hides the right items of each.
    """
    judgements, runs = {}, {}
    for number, (query, hits) in enumerate(zip(queries, found, strict=True)):
        # pytrec_eval sees ranks instead of ids: it cuts ids at NUL and crashes on lone surrogates.
        best = hits[:DEPTH]
        ranks = {item: str(rank) for rank, item in enumerate(best)}
        judgements[str(number)] = {
            ranks.get(item, f"missing {place}"): grade
            for place, (item, grade) in enumerate(query.grades.items())
        }
        runs[str(number)] = {str(rank): float(-rank) for rank in range(len(best))}
    values: dict[str, dict[Measure, float]] = defaultdict(dict)
    for one in iter_calc(list(MEASURES.values()), judgements, runs):
        values[one.query_id][one.measure] = one.value
    return [
        Outcome(
            query=query,
            found=tuple(hits[:DEPTH]),
            values={
                **{name: values[str(number)][kind] for name, kind in MEASURES.items()},
                HIDDEN: float(bool(hidden and hidden[number])),
            },
        )
        for number, (query, hits) in enumerate(zip(queries, found, strict=True))
    ]


def figures(results: Sequence[Outcome], measures: Measures = LABELLED) -> list[Figure]:
    """The means over all queries."""
    return [_figure(name, [one.values[name] for one in results]) for name in measures.names]


def by_tag(results: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """The outcomes of the queries with each tag."""
    groups: defaultdict[str, list[Outcome]] = defaultdict(list)
    for one in results:
        for tag in one.query.tags:
            groups[tag].append(one)
    return dict(groups)


def hardest(results: Sequence[Outcome], name: str, limit: int) -> list[Hard]:
    """The items with the lowest mean figures; of equals, those with more queries first.

    Items that every query finds perfectly are left out.

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
    mean = min(sum(values) / count, 1.0)  # rounding may lead just above
    low, high = _interval(mean, sum((value - mean) ** 2 for value in values) / count, count)
    return Figure(name=name, mean=mean, low=low, high=high)


def _interval(mean: float, variance: float, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a mean of values from 0 to 1.

    Values between 0 and 1 vary less than shares do: they count as the number of observations of a
    share that has the same standard error.
    """
    # Own code: scipy's Wilson interval takes whole numbers of successes and trials.
    share_variance = mean * (1 - mean)
    varies = variance / share_variance if share_variance > 0 < variance else 1.0
    weight = NORMAL_95**2 * varies / count
    centre = (mean + weight / 2) / (1 + weight)
    half = math.sqrt(share_variance * weight + weight**2 / 4) / (1 + weight)
    return max(centre - half, 0.0), min(centre + half, 1.0)
