"""The checkpoints from which training resumes, and the checks of exported files."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from training.checkpoints import STATE, newest
from training.mine import Vectors

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

pytestmark = pytest.mark.timeout(180)  # on a busy machine the import of torch takes a while

ENCODER = Path(__file__).parents[2] / "encoder" / "repertory_encoder"


class OtherModel:
    """A model with random vectors."""

    def encode(self, texts: Sequence[str], *, normalize_embeddings: bool) -> Vectors:
        """Random unit vectors."""
        assert normalize_embeddings
        vectors = np.random.default_rng(1).normal(size=(len(texts), 384)).astype(np.float32)
        unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


OTHER = cast("SentenceTransformer", OtherModel())


def test_training_resumes_from_the_newest_complete_checkpoint(tmp_path: Path) -> None:
    """A checkpoint without its state is incomplete: training stopped while it was written."""
    assert newest(tmp_path) is None
    for step in (50, 950, 1000):
        (tmp_path / f"checkpoint-{step}").mkdir()
    assert newest(tmp_path) is None
    for step in (50, 950):
        (tmp_path / f"checkpoint-{step}" / STATE).touch()
    assert newest(tmp_path) == tmp_path / "checkpoint-950"


def test_a_graph_that_was_not_compressed_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is recognised by its size."""
    from training.export import MAX_SIZE, check  # noqa: PLC0415 - imports torch

    with (tmp_path / "model.onnx").open("wb") as graph:
        graph.truncate(MAX_SIZE + 1)
    with pytest.raises(SystemExit) as ended:
        check(tmp_path, OTHER)
    assert ended.value.code == 2
    assert "model.onnx has 25,000,001 bytes" in capsys.readouterr().err


def test_a_graph_with_other_vectors_than_its_model_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A graph with the same vectors is accepted."""
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - imports torch

    from training.export import check  # noqa: PLC0415 - as above

    (tmp_path / "model").mkdir()
    shutil.copyfile(ENCODER / "model.onnx", tmp_path / "model.onnx")
    shutil.copyfile(ENCODER / "model" / "tokenizer.json", tmp_path / "model" / "tokenizer.json")
    check(tmp_path, SentenceTransformer(str(ENCODER / "model"), device="cpu"))
    with pytest.raises(SystemExit) as ended:
        check(tmp_path, OTHER)
    assert ended.value.code == 2
    assert "have a cosine of" in capsys.readouterr().err
