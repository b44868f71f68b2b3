"""Fit the weights of ``search.evidence``: `python -m benchmarks.quality.fit DATA`.

The same weights must rank the right items of labelled queries first and give the probability that
a judged item is good. The loss is therefore a sum of negative log likelihoods, averaged over the
queries or pairs of each set. For labelled queries, it is the likelihood of the right items among
the candidates (softmax, ListNet's top one). For judged pairs, it is the likelihood of the grades
(logistic), whose log odds are the same weighted sum times a scale.

Two changes are made by hand: the weight of a different action is at most -0.4, and the bias is
divided between words and the model's calibration.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from benchmarks.quality.__main__ import CACHE, MODEL
from repertory.search.calibration import GOOD
from repertory.search.engine import SearchEngine
from repertory.search.evidence import EvidenceWeights, evidence_of_words
from repertory.search.query import query_of
from repertory.settings import load
from repertory.values import Values
from repertory_eval.corpus import open_corpus
from repertory_eval.labelled import LabelledQuery, evenly, read_sets

QUERIES = 400  # queries per set
JUDGED_WEIGHT = 3.0  # weight of the judged pairs' mean loss, relative to one set's mean loss
RIDGE = 1e-4
COLUMNS = ("cosine", *EvidenceWeights.__struct_fields__)
OF_QUERY = [COLUMNS.index(name) for name in ("length", "rarity", "bias")]  # do not affect the order

Array = NDArray[np.float64]


class Candidates(msgspec.Struct, frozen=True, kw_only=True):
    """The candidates of one query.

    Attributes:
        evidence: Shape ``(candidates, COLUMNS)``.
        grades: The grade of each candidate; -1 if it was not judged.
    """

    evidence: Array
    grades: NDArray[np.int64]


def main() -> int:
    """Fit with and without vectors, and print both sets of weights."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality.fit", description=__doc__)
    parser.add_argument("data", type=Path, help="The folder with retrieval.")
    folders = sorted(parser.parse_args().data.glob("retrieval/*"))
    settings = load({"data_dir": str(CACHE / "data"), "model": MODEL}, CACHE)
    ordered: list[list[Candidates]] = []
    judged: list[Candidates] = []
    sets = read_sets(folders)
    asked = {query.text for one in sets for query in one.judged}
    for one in sets:
        print(one.name, file=sys.stderr)
        with open_corpus(settings, one.folder) as repertory:
            repertory.index()
            if one.judged:
                judged = [*_candidates(repertory.engine, one.judged)]
                continue
            # The judged queries also belong to another set; using both would overfit them.
            queries = [query for query in one.queries if query.text not in asked]
            found = _candidates(repertory.engine, evenly(queries, QUERIES))
            ordered.append([of for of in found if (of.grades > 0).any()])
    for title, absent in (("BESIDE_VECTORS", "named"), ("WORDS_ALONE", "cosine")):
        fitted = fit(ordered, judged, COLUMNS.index(absent))
        print(title, {name: round(float(x), 2) for name, x in zip(COLUMNS, fitted, strict=True)})
    return 0


def fit(ordered: list[list[Candidates]], judged: list[Candidates], absent: int) -> Array:
    """Fit the weights of the log odds, by column; the weight of column ``absent`` is 0."""
    pairs = np.concatenate([of.evidence[of.grades >= 0] for of in judged])
    good = np.concatenate([of.grades[of.grades >= 0] >= GOOD for of in judged]).astype(float)
    used = np.ones(len(COLUMNS))
    used[absent] = 0.0
    orders = used.copy()
    orders[OF_QUERY] = 0.0

    def loss(theta: Array) -> tuple[float, Array]:
        scale, weights = np.exp(theta[-1]), theta[:-1]
        total, gradient = RIDGE * float(theta @ theta), 2 * RIDGE * theta
        for of_set in ordered:
            for of in of_set:
                z, right = of.evidence @ (orders * weights), of.grades > 0
                all_of_them, of_right = logsumexp(z), logsumexp(z[right])
                total += float(all_of_them - of_right) / len(of_set)
                slope = np.exp(z - all_of_them) - np.where(right, np.exp(z - of_right), 0.0)
                gradient[:-1] += orders * (slope @ of.evidence) / len(of_set)
        z = scale * (pairs @ (used * weights))
        total += JUDGED_WEIGHT * float(np.mean(np.logaddexp(0.0, z) - good * z))
        slope = JUDGED_WEIGHT * (expit(z) - good) / len(good)
        gradient[:-1] += scale * used * (slope @ pairs)
        gradient[-1] += float(slope @ z)
        return total, gradient

    found = minimize(loss, np.zeros(len(COLUMNS) + 1), jac=True, method="L-BFGS-B").x
    weights: Array = np.exp(found[-1]) * used * found[:-1]
    return weights


def _candidates(engine: SearchEngine, queries: Sequence[LabelledQuery]) -> Iterator[Candidates]:
    """The candidates of each query, searched as a whole, including all its judged items."""
    index = engine.keywords
    for query in queries:
        also = [row for item in query.grades if (row := index.row_of(item)) is not None]
        found = engine.rank(query_of(Values(), query.text), also=also).texts[0].candidates
        ids = [found.entry(place).id for place in range(len(found.rows))]
        yield Candidates(
            evidence=np.column_stack([found.cosine, evidence_of_words(found)]).astype(float),
            grades=np.array([query.grades.get(item, -1) for item in ids]),
        )


if __name__ == "__main__":
    sys.exit(main())
