"""The calibration of a model: fitted to graded pairs at its first use, then read from a file.

Models may come with a calibration, in a folder ``calibrations`` beside their weights; our own
encoder does. The calibrations of the usual models are in that folder beside this module.

The log odds that an item is good for a query are ``slope * cosine + bias``, plus the evidence of
the words. That evidence is the same for every model, so only these two numbers are fitted. The
reference set in ``reference.jsonl`` has 330 graded pairs of a query and an item.
"""

import contextlib
import hashlib
import itertools
import logging
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from repertory.catalogue.item import Item, Kind
from repertory.embedding.digests import sha256
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.models import Calibration, Model
from repertory.errors import ModelError
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.query_words import plain
from repertory.search.candidates import all_candidates
from repertory.search.evidence import BESIDE_VECTORS, log_odds_of_words
from repertory.search.keyword_arm import search_keywords
from repertory.search.query import Query
from repertory.system.files import write_atomically
from repertory.system.progress import Progress

# Raise it when the fit, the log odds of words or the views of an item without a body change, so
# that every model is fitted again.
VERSION = 3
FOLDER = "calibrations"
REFERENCE = Path(__file__).with_name("reference.jsonl")
PACKAGED = Path(__file__).with_name(FOLDER)
GOOD = 2  # the lowest grade of a good pair
# The weight of a good pair; a bad one has 1. A search finds more bad items, and harder ones, than
# the reference set has. With this weight the probabilities are also right on the judged pairs.
GOOD_WEIGHT = 0.186
# The pairs resemble first results, whose cosines are all high, so a fit to them underestimates the
# slope. With this factor the labelled sets are ordered best.
STEEPER = 1.33
RIDGE = 1.0  # pulls the slope towards 0, which matters if the cosines tell little
STEPS = 30
MAX_STEP = 2.0  # keeps Newton's method out of the flat parts of the curve

Numbers = NDArray[np.float64]

_log = logging.getLogger(__name__)


class Pair(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A query, an item, and its grade for the query, 0…3. A skill has an empty ``server``."""

    query: str
    server: str
    name: str
    description: str
    grade: int

    @property
    def item(self) -> Item:
        """The item."""
        return Item(
            id=f"{self.server}__{self.name}",
            kind=Kind.TOOL if self.server else Kind.SKILL,
            name=self.name,
            source=self.server or "skills",
            server=self.server,
            description=self.description,
        )


class Fitted(msgspec.Struct, frozen=True, kw_only=True):
    """A calibration and its quality on the pairs that it was fitted to.

    Attributes:
        calibration: The calibration.
        pairs: The number of pairs.
        error: The expected calibration error, 0…1, in ten bins.
        auc: How often, 0…1, a good pair has a higher confidence than a bad one.
        at: When it was fitted, in Unix seconds.
    """

    calibration: Calibration
    pairs: int
    error: float
    auc: float
    at: float


def calibrate(engine: EmbeddingEngine, models: Path, progress: Progress | None = None) -> None:
    """Set the calibration of an engine's model, and fit it if none is stored.

    Args:
        engine: The engine that embeds queries.
        models: The folder of models. If it is not writable, every process fits again.
        progress: Called with the progress of a fit.

    Raises:
        ModelError: The engine failed.
    """
    if engine.model.calibration:
        return
    fitted = stored(engine, models)
    if fitted is None:
        stage = f"Calibrating the confidence of {engine.model.slug}"
        if progress:
            progress(stage, 0, 1)
        fitted = fit(engine)
        if progress:
            progress(stage, 1, 1)
        with contextlib.suppress(OSError):
            write_atomically(_file(engine, models), msgspec.json.encode(fitted))
        _log.info("model_calibrated", extra={"model": engine.model.id, "auc": fitted.auc})
    engine.model = msgspec.structs.replace(engine.model, calibration=fitted.calibration)


def stored(engine: EmbeddingEngine, models: Path) -> Fitted | None:
    """The stored calibration of an engine's model; None if no file has a readable one."""
    with contextlib.suppress(OSError):
        file = _file(engine, models)
        for folder in (file.parent, engine.files[0].parent / FOLDER, PACKAGED):
            with contextlib.suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
                return msgspec.json.decode((folder / file.name).read_bytes(), type=Fitted)
    return None


def _file(engine: EmbeddingEngine, models: Path) -> Path:
    """The path of the stored calibration.

    Raises:
        OSError: The model has no files, or they cannot be read.
    """
    if not engine.files:
        raise FileNotFoundError(engine.model.id)
    parts = [sha256(file, models / "digests") for file in engine.files]
    return models / FOLDER / file_name(engine.model, parts)


def file_name(model: Model, files: Sequence[str]) -> str:
    """The name of a calibration's file: a digest of everything that it depends on.

    Args:
        model: The model.
        files: The SHA-256 of its weights and its tokenizer, in hex.
    """
    model = msgspec.structs.replace(model, calibration=None)
    reference = hashlib.sha256(REFERENCE.read_bytes()).hexdigest()
    key = msgspec.json.encode([VERSION, BESIDE_VECTORS, model, *files, reference])
    return f"{hashlib.sha256(key).hexdigest()[:32]}.json"


def fit(engine: EmbeddingEngine) -> Fitted:
    """Fit a calibration to the reference pairs, in seconds.

    Raises:
        ModelError: The engine failed, or gave a vector that is not finite.
    """
    pairs = msgspec.json.Decoder(Pair).decode_lines(REFERENCE.read_bytes())
    cosine, words = _cosines(engine, pairs), _words(pairs)
    if not np.isfinite(cosine).all():
        raise ModelError(f"The model {engine.model.id} gave a vector that is not finite.")
    is_good = np.array([pair.grade >= GOOD for pair in pairs])
    weight = np.where(is_good, GOOD_WEIGHT, 1.0)
    slope = STEEPER * fit_line(cosine, words, is_good, weight).slope
    level = fit_line(np.zeros_like(cosine), words + slope * cosine, is_good, weight)
    calibration = Calibration(slope=slope, bias=level.bias)
    z = calibration.slope * cosine + calibration.bias + words
    return Fitted(
        calibration=calibration,
        pairs=len(pairs),
        error=_error(1.0 / (1.0 + np.exp(-z)), is_good, weight),
        auc=float(np.mean(z[is_good][:, None] > z[~is_good])),
        at=time.time(),
    )


def fit_line(
    cosine: Numbers, offset: Numbers, is_good: NDArray[np.bool_], weight: Numbers
) -> Calibration:
    """Logistic regression of ``is_good`` on the cosine, with an offset, by Newton's method.

    The slope is never negative. All arguments have one value per pair.
    """
    # Standardise the cosines, so that the ridge does not depend on their range.
    mean, scale = cosine.mean(), max(float(cosine.std()), 1e-6)
    x = np.stack([(cosine - mean) / scale, np.ones_like(cosine)])
    ridge = np.array([RIDGE, 1e-3])
    theta = np.zeros(2)
    for _ in range(STEPS):
        p = 1.0 / (1.0 + np.exp(-(theta @ x + offset)))
        gradient = x @ (weight * (is_good - p)) - ridge * theta
        hessian = (x * (weight * p * (1.0 - p))) @ x.T + np.diag(ridge)
        theta += np.clip(np.linalg.solve(hessian, gradient), -MAX_STEP, MAX_STEP)
    if theta[0] < 0.0:
        return fit_line(np.zeros_like(cosine), offset, is_good, weight)
    slope = float(theta[0] / scale)
    return Calibration(slope=slope, bias=float(theta[1] - slope * mean))


def _cosines(engine: EmbeddingEngine, pairs: Sequence[Pair]) -> Numbers:
    """The cosine of each query with the nearest view of its item."""
    views = [[view.text for view in pair.item.views()] for pair in pairs]
    queries = [plain(pair.query) for pair in pairs]
    texts, asked = list(dict.fromkeys(itertools.chain(*views))), list(dict.fromkeys(queries))
    items = dict(zip(texts, engine.embed_texts(texts), strict=True))
    vectors = dict(zip(asked, engine.embed_queries(asked), strict=True))
    nearest = [
        max(float(vectors[query] @ items[text]) for text in of_item)
        for query, of_item in zip(queries, views, strict=True)
    ]
    return np.array(nearest)


def _words(pairs: Sequence[Pair]) -> Numbers:
    """The log odds of each pair from all evidence except the meaning."""
    index = KeywordIndex.empty().updated((), {pair.item.id: pair.item for pair in pairs}.values())
    odds = np.empty(len(pairs))
    for text in dict.fromkeys(pair.query for pair in pairs):
        own = [place for place, pair in enumerate(pairs) if pair.query == text]
        ids = [pairs[place].item.id for place in own]
        rows = [row for item in ids if (row := index.row_of(item)) is not None]
        query = Query(text=text)
        found = all_candidates(query, index, search_keywords(query, index, rows), None)
        odds[own] = log_odds_of_words(found)[[found.place_of[row] for row in rows]]
    return odds


def _error(confidence: Numbers, is_good: NDArray[np.bool_], weight: Numbers) -> float:
    """The expected calibration error in ten bins of equal width (Guo et al. 2017)."""
    bins = np.minimum((confidence * 10).astype(int), 9)
    gaps = np.bincount(bins, weight * (confidence - is_good))
    return float(np.abs(gaps).sum() / weight.sum())
