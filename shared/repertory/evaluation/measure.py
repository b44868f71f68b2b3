"""The figures of a ranking: recall, reciprocal rank and discounted gain."""

import math
from collections.abc import Callable, Sequence

import msgspec

from repertory.evaluation.labelled import LabelledQuery

DEPTH = 10  # hits that are looked at
NORMAL_95 = 1.96  # standard errors either side of a mean that hold it 95 times in 100


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How one query fared.

    Attributes:
        found: The ids of the hits, best first, ``DEPTH`` at most.
        ndcg: Normalised discounted cumulative gain at 10, 0…1 (Järvelin and Kekäläinen 2002).
        reciprocal_rank: 1 divided by the place of the first right hit; 0 if there is none.
    """

    query: LabelledQuery
    found: tuple[str, ...]
    ndcg: float
    reciprocal_rank: float

    def recall(self, depth: int) -> float:
        """The share of the right items among the first hits."""
        right = sum(item in self.query.grades for item in self.found[:depth])
        return right / len(self.query.grades)


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A mean over queries, and half the width of its 95 % confidence interval."""

    name: str
    mean: float
    margin: float


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
    search: Callable[[str], Sequence[str]],
    done: Callable[[], None],
) -> list[Outcome]:
    """Search for every query; ``search`` gives the ids of its hits, best first."""
    results = []
    for query in queries:
        results.append(outcome(query, search(query.text)))
        done()
    return results


def figures(results: Sequence[Outcome]) -> list[Figure]:
    """The means over all queries."""
    measures: dict[str, Callable[[Outcome], float]] = {
        "recall@1": lambda one: one.recall(1),
        "recall@3": lambda one: one.recall(3),
        "recall@5": lambda one: one.recall(5),
        "recall@10": lambda one: one.recall(10),
        "MRR": lambda one: one.reciprocal_rank,
        "nDCG@10": lambda one: one.ndcg,
    }
    return [_figure(name, [measure(one) for one in results]) for name, measure in measures.items()]


def _figure(name: str, values: Sequence[float]) -> Figure:
    mean = sum(values) / len(values)
    spread = sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1)
    return Figure(name=name, mean=mean, margin=NORMAL_95 * math.sqrt(spread / len(values)))
