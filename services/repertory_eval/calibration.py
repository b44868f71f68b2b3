"""Fits the curves of confidence to labelled queries; see ``search.confidence``."""

from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from repertory.embedding.models import Curve
from repertory.errors import UsageError
from repertory.search.candidates import Candidates
from repertory.search.confidence import confidences, scores, signals
from repertory.search.engine import SearchEngine, reaching
from repertory.search.query import Query
from repertory_eval.labelled import LabelledQuery
from repertory_eval.reliability import FIRST, Observed, Reliability, mean, reliability

THRESHOLDS = (0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7)  # that are tried
STEPS = 30
LARGEST = 30.0  # log odds
LEAST_OF_EACH = 3  # right and wrong first hits; without them a fit follows a few queries
RIDGE = 1e-5  # keeps Newton's method from running off where a signal is always the same


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """What was found for one labelled query.

    Attributes:
        right: The ids of its right items.
        present: What was found.
        missing: What was found with the right items passed over.
    """

    right: frozenset[str]
    present: Candidates
    missing: Candidates


def examples(
    engine: SearchEngine, queries: Sequence[LabelledQuery], done: Callable[[], None]
) -> list[Example]:
    """Search for every query, with and without its right items."""
    found = []
    for query in queries:
        right = tuple(query.grades)
        present = engine.rank(Query(text=query.text)).candidates
        missing = engine.rank(Query(text=query.text), exclude=right).candidates
        found.append(Example(right=frozenset(right), present=present, missing=missing))
        done()
    return found


def fit(sets: Sequence[Sequence[Example]]) -> Curve:
    """The curve under which first hits are right as often as they are sure.

    A logistic regression by Newton's method. Every set weighs the same, whatever its size. Queries
    whose right items are missing are left out: they belong to what is tested.

    Raises:
        UsageError: Hardly any first hit is right, or hardly any is wrong.
    """
    rows, labels, weights = [], [], []
    for of_set in sets:
        for example in of_set:
            found = example.present
            if len(found.rows):
                score = scores(found)
                rows.append([*msgspec.structs.astuple(signals(found, score)), 1.0])
                labels.append(found.entry(int(score.argmax())).id in example.right)
                weights.append(1.0 / len(of_set))
    right, wrong = sum(labels), len(labels) - sum(labels)
    if min(right, wrong) < LEAST_OF_EACH:
        raise UsageError(
            f"Of the first hits {right} are right and {wrong} are wrong: a curve needs at least "
            f"{LEAST_OF_EACH} of each. Give sets with more queries, easy and hard ones."
        )
    x, y, w = np.array(rows), np.array(labels, float), np.array(weights)
    w /= w.mean()
    ridge = RIDGE * len(x) * np.eye(x.shape[1])
    weighing = np.zeros(x.shape[1])
    for _ in range(STEPS):
        likely = 1.0 / (1.0 + np.exp(-np.clip(x @ weighing, -LARGEST, LARGEST)))
        slope = x.T @ (w * (likely - y)) + ridge @ weighing
        curvature = (x.T * (w * likely * (1.0 - likely))) @ x + ridge
        weighing -= np.linalg.solve(curvature, slope)
    return Curve(**dict(zip(Curve.__struct_fields__, weighing.round(2).tolist(), strict=True)))


class Tested(msgspec.Struct, frozen=True, kw_only=True):
    """What curves are worth, each on the one set that it was not fitted to.

    Attributes:
        sets: By set.
        mean: Over the sets.
        together: Over all queries of all sets.
        thresholds: The mean over the sets at other thresholds.
    """

    sets: dict[str, Reliability]
    mean: Reliability
    together: Reliability
    thresholds: dict[str, Reliability]


def leave_one_out(sets: Mapping[str, Sequence[Example]], threshold: float) -> Tested:
    """Test every set with a curve that was fitted to the others, of which there is at least one."""
    curves = {
        name: fit([examples for other, examples in sets.items() if other != name]) for name in sets
    }

    def at(threshold: float) -> dict[str, list[Observed]]:
        return {name: observed(sets[name], curve, threshold) for name, curve in curves.items()}

    seen = at(threshold)
    by_set = {name: reliability(of_set) for name, of_set in seen.items()}
    return Tested(
        sets=by_set,
        mean=mean(by_set.values()),
        together=reliability([one for of_set in seen.values() for one in of_set]),
        thresholds={
            f"{value:g}": mean(map(reliability, at(value).values())) for value in THRESHOLDS
        },
    )


def observed(of_set: Sequence[Example], curve: Curve, threshold: float) -> list[Observed]:
    """What confidence would do for queries with another curve and threshold."""
    return [_observed(example, curve, threshold) for example in of_set]


def _observed(example: Example, curve: Curve, threshold: float) -> Observed:
    found = example.present
    confidence = confidences(found, scores(found), curve)
    order = np.argsort(-confidence, kind="stable")[:FIRST]
    right = np.array([found.entry(place).id in example.right for place in order], np.bool_)
    shown: NDArray[np.bool_] = reaching(found, confidence, threshold)[order]
    missing = confidences(example.missing, scores(example.missing), curve)
    return Observed(
        stated=float(confidence[order[0]]) if len(order) else 0.0,
        is_right=bool(right[:1].any()),
        is_found=bool(right.any()),
        is_kept=bool((right & shown).any()),
        is_rejected=not reaching(example.missing, missing, threshold).any(),
    )
