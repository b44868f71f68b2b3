"""The model that a folder of files describes."""

import json
from pathlib import Path

import pytest

from repertory.embedding.folder import Format, check_modules, describe, weights_in
from repertory.embedding.models import (
    BGE_QUERY_PREFIX,
    BGE_SMALL,
    MINILM,
    Pooling,
    known,
)
from repertory.errors import ModelError
from tests.support.model_folders import write_model

DIGEST = "ab" * 32


def test_a_name_is_known_in_any_case() -> None:
    """The table finds a model by each of its names, whatever the case."""
    assert known("baai/BGE-small-en-v1.5") is BGE_SMALL
    assert known("all-minilm-l6-v2") is MINILM
    assert known("someone/else") is None


@pytest.mark.parametrize(
    "name",
    [
        "bge-small-en-v1.5",
        "Xenova--bge-small-en-v1.5",
        "models--BAAI--bge-small-en-v1.5/snapshots/1",
    ],
)
def test_a_folder_named_like_a_model_of_the_table_holds_it(tmp_path: Path, name: str) -> None:
    """A plain folder, this cache and the hub's cache are all recognised by their names."""
    assert describe(write_model(tmp_path / name), DIGEST) is BGE_SMALL


def test_a_folder_within_one_named_like_a_model_is_not_that_model(tmp_path: Path) -> None:
    """Only the folder's own name counts."""
    folder = write_model(tmp_path / "bge-small-en-v1.5" / "tuned" / "second")
    assert describe(folder, DIGEST).id == "second@abababababab"


def test_a_folder_that_contradicts_the_table_is_described_by_its_own_files(tmp_path: Path) -> None:
    """A pooling other than the table's makes it another model, which keeps the family's prefix."""
    model = describe(write_model(tmp_path / "bge-small-en-v1.5", pooling="mean_tokens"), DIGEST)
    assert model.id == "bge-small-en-v1.5@abababababab"
    assert model.pooling is Pooling.MEAN
    assert model.query_prefix == BGE_QUERY_PREFIX


def test_an_unknown_folder_is_described_by_its_own_files(tmp_path: Path) -> None:
    """Dimension, limit and pooling come from the files, name and slug from the folder."""
    folder = write_model(tmp_path / "My Encoder", dimension=16, pooling="cls_token")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 200}')
    model = describe(folder, DIGEST)
    assert (model.dimension, model.max_tokens, model.pooling) == (16, 200, Pooling.CLS)
    assert (model.id, model.slug) == ("My Encoder@abababababab", "my-encoder-abababab")
    assert model.query_prefix == ""


def test_other_weights_in_the_same_folder_are_another_model(tmp_path: Path) -> None:
    """Id and slug change with the weights, so that vectors of the two never mix."""
    folder = write_model(tmp_path / "encoder")
    one, other = describe(folder, "a" * 64), describe(folder, "b" * 64)
    assert one.id != other.id
    assert one.slug != other.slug


def test_the_bge_family_is_recognised_by_its_base_model(tmp_path: Path) -> None:
    """A fine-tuned BGE model that names its base model gets the prefix and CLS pooling."""
    folder = write_model(tmp_path / "tuned", config={"_name_or_path": "BAAI/bge-base-en-v1.5"})
    model = describe(folder, DIGEST)
    assert (model.query_prefix, model.pooling) == (BGE_QUERY_PREFIX, Pooling.CLS)


def test_positions_after_the_padding_token_are_not_counted(tmp_path: Path) -> None:
    """RoBERTa's 514 positions hold 512 tokens."""
    config = {"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}
    assert describe(write_model(tmp_path / "roberta", config=config), DIGEST).max_tokens == 512


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"architectures": ["GPT2LMHeadModel"]}, "decoder that generates text"),
        ({"architectures": ["LlamaForCausalLM"]}, "decoder that generates text"),
        ({"architectures": ["BertForSequenceClassification"]}, "classifier or reranker"),
        ({"is_encoder_decoder": True}, "encoder-decoder"),
        ({"is_decoder": True}, "is a decoder"),
        ({"hidden_size": "many"}, "no hidden_size"),
        ({"max_position_embeddings": None}, "no max_position_embeddings"),
    ],
)
def test_a_model_that_is_not_a_sentence_encoder_is_refused(
    tmp_path: Path, config: dict[str, object], reason: str
) -> None:
    """The message says exactly why."""
    with pytest.raises(ModelError, match=reason):
        describe(write_model(tmp_path / "model", config=config), DIGEST)


def test_unsupported_pooling_is_refused(tmp_path: Path) -> None:
    """Only mean and cls are known."""
    with pytest.raises(ModelError, match="max_tokens, neither mean nor cls"):
        describe(write_model(tmp_path / "model", pooling="max_tokens"), DIGEST)


def test_layers_behind_the_pooling_are_refused(tmp_path: Path) -> None:
    """An ONNX graph of the encoder lacks them, so its vectors would differ."""
    folder = write_model(tmp_path / "model")
    modules = [{"type": "sentence_transformers.models.Pooling"}, {"type": "x.models.Dense"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ModelError, match="type Dense"):
        check_modules(folder)


@pytest.mark.parametrize("missing", ["config.json", "tokenizer.json", "onnx/model.onnx"])
def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    """The refusal says which file the folder lacks."""
    folder = write_model(tmp_path / "model")
    (folder / missing).unlink()
    with pytest.raises(ModelError, match=missing):
        weights_in(folder, Format.ONNX)


@pytest.mark.parametrize("content", ["{", "[]", '"text"', "\xff"])
def test_a_broken_configuration_is_named(tmp_path: Path, content: str) -> None:
    """Any content of config.json leads to a ModelError that names the file."""
    folder = write_model(tmp_path / "model")
    (folder / "config.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(ModelError, match=r"config\.json cannot be read"):
        describe(folder, DIGEST)
