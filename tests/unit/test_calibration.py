"""The calibration of models: the fit to the reference pairs, and its file."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from typing_extensions import override

from repertory.embedding.engine import CPU_BATCH, EmbeddingEngine, Vectors, unit
from repertory.embedding.load import load_engine
from repertory.embedding.models import ENCODER, MINILM, Model
from repertory.embedding.published import (
    BGE_SMALL_GRAPH,
    BGE_SMALL_TOKENIZER,
    MINILM_GRAPH,
    MINILM_SMALL_GRAPH,
    MINILM_SMALL_TOKENIZER,
    MINILM_TOKENIZER,
    published,
)
from repertory.errors import ModelError
from repertory.index.keywords.tokens import terms
from repertory.search.calibration import (
    GOOD,
    PACKAGED,
    REFERENCE,
    Pair,
    calibrate,
    file_name,
    fit,
    fit_line,
    stored,
)

DIMENSION = 256


class MadeUp(EmbeddingEngine):
    """An engine whose vectors are sums of one random vector for each word.

    Args:
        files: The files of its model.
        least: The cosine of texts that have nothing in common.
        by_word: False gives each whole text its own random vector, so there is no signal.
    """

    device = "cpu"
    batch = CPU_BATCH

    def __init__(self, *files: Path, least: float = 0.0, by_word: bool = True) -> None:
        self.model = Model(id="made-up", slug="made-up", dimension=DIMENSION + 1, max_tokens=100)
        self.files = files
        self.embedded = 0
        self._least = least
        self._by_word = by_word

    @override
    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        self.embedded += len(texts)
        vectors = unit(np.stack([self._vector(text) for text in texts]))
        constant = np.full((len(texts), 1), self._least**0.5, np.float32)
        return np.hstack([vectors * (1.0 - self._least) ** 0.5, constant], dtype=np.float32)

    @override
    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self.embed_texts(texts)

    def _vector(self, text: str) -> Vectors:
        parts = terms(text) if self._by_word else [text]
        seeds = (int(hashlib.sha256(part.encode()).hexdigest()[:8], 16) for part in parts)
        vectors = [np.random.default_rng(seed).normal(size=DIMENSION) for seed in seeds]
        return np.asarray(np.sum(vectors, axis=0), np.float32)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """The files of a model."""
    weights, tokenizer = tmp_path / "model.onnx", tmp_path / "tokenizer.json"
    weights.write_bytes(b"weights")
    tokenizer.write_bytes(b"tokenizer")
    return weights, tokenizer


def test_the_reference_pairs_are_consistent() -> None:
    """Each item has one description, pairs are unique, and all grades occur."""
    pairs = msgspec.json.Decoder(Pair).decode_lines(REFERENCE.read_bytes())
    by_id = {pair.item.id: pair.item for pair in pairs}
    assert all(by_id[pair.item.id] == pair.item for pair in pairs)
    assert len({(pair.query, pair.item.id) for pair in pairs}) == len(pairs) >= 300
    assert {pair.grade for pair in pairs} == {0, 1, 2, 3}
    assert 0.15 < np.mean([pair.grade >= GOOD for pair in pairs]) < 0.35


@pytest.mark.parametrize(("least", "greatest"), [(0.0, 1.0), (0.6, 0.9), (-0.2, 0.3)])
def test_the_fit_recovers_slope_and_bias(least: float, greatest: float) -> None:
    """The cosines may have any range, and each pair any offset."""
    random = np.random.default_rng(1)
    share = random.uniform(size=50_000)
    cosine = least + (greatest - least) * share
    offset = random.normal(scale=2.0, size=share.size)
    odds = -3.0 + 5.0 * share + offset
    is_good = random.uniform(size=share.size) < 1.0 / (1.0 + np.exp(-odds))
    found = fit_line(cosine, offset, is_good, np.ones_like(cosine))
    assert found.slope * (greatest - least) == pytest.approx(5.0, abs=0.2)
    assert found.slope * least + found.bias == pytest.approx(-3.0, abs=0.1)


def test_the_fit_survives_pairs_that_the_cosine_separates() -> None:
    """The ridge keeps the slope finite."""
    cosine = np.linspace(0.0, 1.0, 100)
    found = fit_line(cosine, np.full(100, 30.0), cosine > 0.5, np.ones(100))
    assert 5.0 < found.slope < 1000.0
    assert found.bias < -30.0


def test_the_range_of_the_cosines_makes_no_difference() -> None:
    """Models with cosines above 0.6 and above 0 give the same confidences."""
    wide, narrow = fit(MadeUp()), fit(MadeUp(least=0.6))
    assert narrow.auc == pytest.approx(wide.auc, abs=0.001)
    assert narrow.error == pytest.approx(wide.error, abs=0.005)
    for cosine in (0.0, 0.3, 0.7):
        raised = 0.6 + 0.4 * cosine
        assert narrow.calibration.slope * raised + narrow.calibration.bias == pytest.approx(
            wide.calibration.slope * cosine + wide.calibration.bias, abs=0.02
        )


def test_a_model_without_signal_gets_no_slope() -> None:
    """Random cosines hardly change a confidence, and the slope is never negative."""
    random = MadeUp(by_word=False)
    found = fit(random).calibration
    spread = 1.0 / DIMENSION**0.5  # of cosines of random vectors
    assert 0.0 <= found.slope * spread < 0.4
    assert fit_line(
        np.linspace(0.0, 1.0, 100), np.zeros(100), np.arange(100) < 50, np.ones(100)
    ).slope == pytest.approx(0.0)


def test_vectors_that_are_not_finite_are_refused() -> None:
    """The error names the model."""

    class Broken(MadeUp):
        @override
        def embed_texts(self, texts: Sequence[str]) -> Vectors:
            return super().embed_texts(texts) * np.float32("nan")

    with pytest.raises(ModelError, match="made-up"):
        fit(Broken())


def test_a_calibration_is_fitted_once(tmp_path: Path, files: tuple[Path, Path]) -> None:
    """The next engine with the same files reads the stored calibration."""
    first, second = MadeUp(*files), MadeUp(*files)
    steps: list[tuple[str, int, int]] = []
    assert stored(first, tmp_path) is None
    calibrate(first, tmp_path, lambda *step: steps.append(step))
    calibrate(second, tmp_path, lambda *step: steps.append(step))
    assert first.embedded
    assert not second.embedded
    assert steps == [
        ("Calibrating the confidence of made-up", 0, 1),
        ("Calibrating the confidence of made-up", 1, 1),
    ]
    fitted = stored(second, tmp_path)
    assert fitted
    assert first.model.calibration == second.model.calibration == fitted.calibration


def test_weights_may_come_with_their_calibration(tmp_path: Path, files: tuple[Path, Path]) -> None:
    """It is read from the folder of the weights, and nothing is fitted or written."""
    first, second = MadeUp(*files), MadeUp(*files)
    calibrate(first, files[0].parent)
    calibrate(second, tmp_path / "models")
    assert first.model.calibration == second.model.calibration
    assert not second.embedded
    assert not (tmp_path / "models" / "calibrations").exists()


@pytest.mark.parametrize("model", [ENCODER.id, MINILM.id])
def test_the_published_calibration_equals_a_new_fit(tmp_path: Path, model: str) -> None:
    """After a change of the fit, the pairs, or the evidence of words, it must be fitted again."""
    engine = load_engine(model, "cpu", tmp_path)
    brought = stored(engine, tmp_path)
    assert brought
    fitted = fit(engine).calibration
    assert brought.calibration.slope == pytest.approx(fitted.slope, rel=0.01)
    assert brought.calibration.bias == pytest.approx(fitted.bias, rel=0.02)


def test_the_usual_models_have_a_calibration() -> None:
    """Their first search needs no fit, and no obsolete calibration is packaged.

    To fit one again: search with the model, whose hub or package has the weights, and copy
    ``models/calibrations`` of the data directory.
    """
    usual = (
        (BGE_SMALL_GRAPH, BGE_SMALL_TOKENIZER),
        (MINILM_GRAPH, MINILM_TOKENIZER),
        (MINILM_SMALL_GRAPH, MINILM_SMALL_TOKENIZER),
    )
    names = set()
    for graph, tokenizer in usual:
        model = published([graph], tokenizer)
        assert model
        names.add(file_name(model, [graph, tokenizer]))
    assert {file.name for file in PACKAGED.iterdir()} == names


@pytest.mark.parametrize("number", [0, 1])
def test_changed_files_are_calibrated_again(
    tmp_path: Path, files: tuple[Path, Path], number: int
) -> None:
    """Other weights or another tokenizer are another model."""
    calibrate(MadeUp(*files), tmp_path)
    files[number].write_bytes(b"other ones")
    changed = MadeUp(*files)
    assert stored(changed, tmp_path) is None
    calibrate(changed, tmp_path)
    assert changed.embedded


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"calibration": {}}', b"\xff"])
def test_a_damaged_calibration_is_fitted_again(
    tmp_path: Path, files: tuple[Path, Path], content: bytes
) -> None:
    """Its file counts as missing."""
    calibrate(MadeUp(*files), tmp_path)
    (file,) = (tmp_path / "calibrations").iterdir()
    file.write_bytes(content)
    again = MadeUp(*files)
    calibrate(again, tmp_path)
    assert again.embedded
    assert stored(again, tmp_path)


def test_an_unwritable_folder_does_not_prevent_calibration(
    tmp_path: Path, files: tuple[Path, Path]
) -> None:
    """The model is calibrated, but the calibration is not stored."""
    models = tmp_path / "models"
    models.write_bytes(b"a file")
    engine = MadeUp(*files)
    calibrate(engine, models)
    assert engine.model.calibration
    assert stored(engine, models) is None


def test_an_engine_without_files_is_fitted_in_every_process(tmp_path: Path) -> None:
    """Without files, nothing identifies its model."""
    engine = MadeUp()
    calibrate(engine, tmp_path)
    assert engine.model.calibration
    assert not list(tmp_path.iterdir())
