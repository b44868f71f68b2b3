"""Fits the curves of confidence to labelled queries; see ``search.confidence``."""

from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from repertory.embedding.models import Curve
from repertory.errors import UsageError
from repertory.search.candidates import Candidates
from repertory.search.confidence import confidences, scores, signals
from repertory.search.engine import SearchEngine, reaching
from repertory.search.query import query_of
from repertory.values import Values
from repertory_eval.labelled import LabelledQuery
from repertory_eval.reliability import FIRST, Observed, Reliability, mean, reliability

THRESHOLDS = (0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7)  # that are tried
MIN_OF_EACH = 3  # right and wrong first hits; with fewer a fit follows a few queries
TOLERANCE = 1e-8  # of the gradient; the default does not fix a weight's second decimal
RIDGE = 1e-5  # per query; bounds the weights where signals separate right from wrong


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """The candidates of one labelled query.

    Attributes:
        right: The ids of its right items.
        present: The candidates.
        missing: The candidates with the right items excluded.
    """

    right: frozenset[str]
    present: Candidates
    missing: Candidates


def examples(
    engine: SearchEngine, queries: Sequence[LabelledQuery], step: Callable[[int], None]
) -> list[Example]:
    """Search for every query, with and without its right items; report the progress."""
    found = []
    for done, query in enumerate(queries, start=1):
        right = tuple(query.grades)
        asked = query_of(Values(), query.text)
        present = engine.rank(asked).texts[0].candidates
        missing = engine.rank(asked, exclude=right).texts[0].candidates
        found.append(Example(right=frozenset(right), present=present, missing=missing))
        step(done)
    return found


def fit(sets: Sequence[Sequence[Example]]) -> Curve:
    """Fit the curve that predicts how often first hits are right, by logistic regression.

    Every set has the same weight. Searches with the right items excluded are only for testing.

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
    if min(right, wrong) < MIN_OF_EACH:
        raise UsageError(
            f"Of the first hits {right} are right and {wrong} are wrong: a curve needs at least "
            f"{MIN_OF_EACH} of each. Give sets with more queries, easy and hard ones."
        )
    weight = np.array(weights) / np.mean(weights)
    # The bias is a weight of its own column, so that the penalty bounds it too.
    fitted = LogisticRegression(
        C=1 / (RIDGE * len(rows)), fit_intercept=False, solver="newton-cholesky", tol=TOLERANCE
    ).fit(np.array(rows), labels, weight)
    return Curve(
        **dict(zip(Curve.__struct_fields__, fitted.coef_[0].round(2).tolist(), strict=True))
    )


class Tested(msgspec.Struct, frozen=True, kw_only=True):
    """The reliability of curves, each on the one set that it was not fitted to.

    Attributes:
        sets: By the name of the set.
        mean: Over the sets.
        together: Over all queries of all sets.
        thresholds: The mean over the sets at other thresholds.
    """

    sets: dict[str, Reliability]
    mean: Reliability
    together: Reliability
    thresholds: dict[str, Reliability]


def leave_one_out(sets: Mapping[str, Sequence[Example]], threshold: float) -> Tested:
    """Test each of two sets or more with a curve that was fitted to the others."""
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
    """The effect of confidence on queries, with another curve and threshold."""
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
