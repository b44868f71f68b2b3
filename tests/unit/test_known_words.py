"""A model knows the words of a text, or its tokenizer only spells them out."""

# ruff: noqa: RUF001 - these tests are about letters of other scripts

from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from repertory import embedding
from repertory.embedding.known_words import knows
from repertory.embedding.model_files import Format
from repertory.embedding.models import ENCODER, MINILM
from repertory.embedding.weights import Origin, WeightFiles, resolve
from tests.support.model_folders import Unrun


@pytest.fixture(scope="module")
def english(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """The tokenizer of an English model."""
    weights = resolve(ENCODER.id, Format.ONNX, tmp_path_factory.mktemp("data"))
    return Tokenizer.from_file(str(weights.tokenizer))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "++",
        "create_issue",
        "a b c d",
        "naïve résumé",
        "Rechnung auf Fehler prüfen",
        "łączenie gałęzi",
        "kg µm Ω",
        "“quoted” – text",
        "deploy a 클러스터 with helm",
        "fill in a 表格 form",
        "北京",
    ],
)
def test_words_of_a_latin_script_are_known(english: Tokenizer, text: str) -> None:
    """So are English texts with some words of another script, and characters that are tokens."""
    assert knows(english, text)


@pytest.mark.parametrize(
    "text",
    [
        "погода в городе",
        "έλεγχος τιμολογίου",
        "نسخة احتياطية",
        "סיכום פגישה",
        "बिजली का बिल",
        "ใบแจ้งหนี้",
        "ガソリン",
        "消費税",
        "数据库备份",
        "고양이",
        "클러스터",
        "🎉",
    ],
)
def test_a_text_that_is_unknown_or_spelled_out_is_not_known(english: Tokenizer, text: str) -> None:
    """The model knows only single letters of the script, or nothing."""
    assert not knows(english, text)


def test_padding_tokens_are_not_known_words() -> None:
    """The tokenizer file of all-MiniLM-L6-v2 pads every text to 128 tokens; the engine must not."""
    file = Path(embedding.__file__).parent / "minilm" / "tokenizer.json"
    assert knows(Tokenizer.from_file(str(file)), "ใบแจ้งหนี้"), "the file fills it up"
    weights = WeightFiles(model=MINILM, file=file, tokenizer=file, origin=Origin.PACKAGE)
    vectors = np.ones((2, 1), np.float32)
    Unrun(weights, "cpu").forget_unknown(vectors, ["ใบแจ้งหนี้", "weather"])
    assert vectors.ravel().tolist() == [0, 1]
