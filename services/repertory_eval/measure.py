"""The figures of a ranking: recall, hits, reciprocal rank and discounted gain."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import msgspec

from repertory_eval.labelled import LabelledQuery

DEPTH = 10  # hits that are looked at
NORMAL_95 = 1.96  # standard errors either side of a mean that hold it 95 times in 100

Search = Callable[[str], Sequence[str]]  # a query's text to the ids of its hits, best first


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How one query fared.

    Attributes:
        found: The ids of the hits, best first, ``DEPTH`` at most.
        ndcg: Normalised discounted cumulative gain at 10, 0…1 (Järvelin and Kekäläinen 2002).
        reciprocal_rank: 1 divided by the place of the first right hit; 0 if there is none.
        is_hidden: Whether there would be a right hit, had no threshold hidden it.
    """

    query: LabelledQuery
    found: tuple[str, ...]
    ndcg: float
    reciprocal_rank: float
    is_hidden: bool = False

    def recall(self, depth: int) -> float:
        """The share of the right items among the first hits."""
        right = sum(item in self.query.grades for item in self.found[:depth])
        return right / len(self.query.grades)

    def hit(self, depth: int) -> float:
        """1 if any right item is among the first hits, else 0."""
        return float(any(item in self.query.grades for item in self.found[:depth]))


Measure = Callable[[Outcome], float]


class Measures(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured on one sort of queries.

    Attributes:
        by_name: All measures.
        judged_by: The one that has to reach a least value.
        graded_by: The one that tells how well a single query fared.
    """

    by_name: Mapping[str, Measure]
    judged_by: str
    graded_by: str


LABELLED = Measures(
    by_name={
        "recall@1": lambda one: one.recall(1),
        "recall@3": lambda one: one.recall(3),
        "recall@5": lambda one: one.recall(5),
        "recall@10": lambda one: one.recall(10),
        "MRR": lambda one: one.reciprocal_rank,
        "nDCG@10": lambda one: one.ndcg,
    },
    judged_by="recall@5",
    graded_by="nDCG@10",
)
# Of several right items any will do: all are as near to what was typed.
GENERATED = Measures(
    by_name={
        "hit@1": lambda one: one.hit(1),
        "hit@5": lambda one: one.hit(5),
        "MRR": lambda one: one.reciprocal_rank,
        "hidden": lambda one: float(one.is_hidden),
    },
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
        queries: How many queries it answers.
        mean: The mean figure of those.
        example: The one that fared worst.
    """

    item: str
    queries: int
    mean: float
    example: Outcome


def outcome(query: LabelledQuery, found: Sequence[str]) -> Outcome:
    """How a query fared, given what was found for it, best first."""
    found = tuple(found[:DEPTH])
    gain = sum(query.grades.get(item, 0.0) / math.log2(k + 2) for k, item in enumerate(found))
    best = sorted(query.grades.values(), reverse=True)[:DEPTH]
    ideal = sum(grade / math.log2(k + 2) for k, grade in enumerate(best))
    ranks = (k + 1 for k, item in enumerate(found) if item in query.grades)
    first = next(ranks, None)
    return Outcome(
        query=query,
        found=found,
        ndcg=gain / ideal,
        reciprocal_rank=1 / first if first else 0.0,
    )


def outcomes(
    queries: Sequence[LabelledQuery],
    search: Search,
    done: Callable[[], None],
    without_threshold: Search,
) -> list[Outcome]:
    """Search for every query.

    Args:
        queries: What is asked.
        search: The search.
        done: Told after each query.
        without_threshold: The same, but it hides nothing.
    """
    results = []
    for query in queries:
        result = outcome(query, search(query.text))
        if not result.reciprocal_rank:
            hidden = outcome(query, without_threshold(query.text)).reciprocal_rank > 0
            result = msgspec.structs.replace(result, is_hidden=hidden)
        results.append(result)
        done()
    return results


def figures(results: Sequence[Outcome], measures: Measures = LABELLED) -> list[Figure]:
    """The means over all queries."""
    return [
        _figure(name, [measure(one) for one in results])
        for name, measure in measures.by_name.items()
    ]


def by_tag(results: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """The outcomes of the queries with each tag."""
    groups: defaultdict[str, list[Outcome]] = defaultdict(list)
    for one in results:
        for tag in one.query.tags:
            groups[tag].append(one)
    return dict(groups)


def hardest(results: Sequence[Outcome], measure: Measure, most: int) -> list[Hard]:
    """The items whose queries fare worst on average; of equals, those with more queries first.

    Items whose queries all fare as well as can be are none of them.
    """
    of_item: defaultdict[str, list[Outcome]] = defaultdict(list)
    for one in results:
        for item in one.query.grades:
            of_item[item].append(one)
    items = [
        Hard(
            item=item,
            queries=len(those),
            mean=sum(map(measure, those)) / len(those),
            example=min(those, key=measure),
        )
        for item, those in of_item.items()
    ]
    items.sort(key=lambda hard: (hard.mean, -hard.queries, hard.item))
    return [hard for hard in items[:most] if hard.mean < 1]


def _figure(name: str, values: Sequence[float]) -> Figure:
    count = len(values)
    mean = min(sum(values) / count, 1.0)  # rounding may lead just above
    low, high = _interval(mean, sum((value - mean) ** 2 for value in values) / count, count)
    return Figure(name=name, mean=mean, low=low, high=high)


def _interval(mean: float, variance: float, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a mean of values from 0 to 1.

    It never leaves 0…1 and is not empty where all values are 0 or all are 1, as that of the
    normal approximation is. Values between 0 and 1 vary less than shares do: they count as so many
    observations of a share as have the same standard error.
    """
    most = mean * (1 - mean)  # the variance of shares
    varies = variance / most if most > 0 < variance else 1.0
    weight = NORMAL_95**2 * varies / count
    centre = (mean + weight / 2) / (1 + weight)
    half = math.sqrt(most * weight + weight**2 / 4) / (1 + weight)
    return max(centre - half, 0.0), min(centre + half, 1.0)
