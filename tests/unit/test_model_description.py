"""Which model a folder of files is."""

import json
import tomllib
from pathlib import Path

import pytest

from repertory.embedding.description import MAX_CONFIG_SIZE, check_modules, describe, of_files
from repertory.embedding.model_files import Digests, Format, weights_in
from repertory.embedding.models import (
    BGE_QUERY_PREFIX,
    BGE_SMALL,
    MINILM,
    Pooling,
    known,
)
from repertory.embedding.published import BGE_SMALL_TOKENIZER, WEIGHTS
from repertory.errors import ModelError
from tests.support.model_folders import write_model

GENUINE = Digests(
    tuple(one for one, model in WEIGHTS.items() if model is BGE_SMALL), BGE_SMALL_TOKENIZER
)
OTHER = Digests(("ab" * 32,), "cd" * 32)


def test_a_model_is_known_by_its_names_in_any_case() -> None:
    """The table has several names for each model."""
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
def test_a_folder_is_not_identified_by_its_name(tmp_path: Path, name: str) -> None:
    """A folder named like a model of the table has its own id, even in a cache."""
    model = describe(write_model(tmp_path / name), OTHER)
    assert model.id.startswith("bge-small-en-v1.5@")
    assert model.slug != BGE_SMALL.slug


def test_published_files_identify_a_model_of_the_table(tmp_path: Path) -> None:
    """The folder's name does not matter."""
    assert describe(write_model(tmp_path / "mine"), GENUINE) is BGE_SMALL


@pytest.mark.parametrize(
    "digests",
    [
        Digests(GENUINE.weights, "ab" * 32),
        Digests(OTHER.weights, GENUINE.tokenizer),
        Digests((*GENUINE.weights, "ab" * 32), GENUINE.tokenizer),
    ],
    ids=["another tokenizer", "another graph", "an additional file of weights"],
)
def test_every_file_must_be_published(tmp_path: Path, digests: Digests) -> None:
    """Any other tokenizer, graph or weights file makes it another model."""
    assert "@" in describe(write_model(tmp_path / "bge-small-en-v1.5"), digests).id


def test_repositories_of_the_same_name_are_different_models(tmp_path: Path) -> None:
    """Their ids and slugs differ. A slug names a collection."""
    folder = write_model(tmp_path / "evil--bge-small-en-v1.5")
    evil = describe(folder, repository="evil/bge-small-en-v1.5")
    other = describe(folder, repository="other/bge-small-en-v1.5")
    assert (evil.id, other.id) == ("evil/bge-small-en-v1.5", "other/bge-small-en-v1.5")
    assert len({evil.slug, other.slug, BGE_SMALL.slug}) == 3


def test_a_folder_that_contradicts_the_table_is_described_by_its_own_files(tmp_path: Path) -> None:
    """Another pooling makes it another model, which keeps the query prefix of the family."""
    folder = write_model(tmp_path / "bge-small-en-v1.5", pooling="mean_tokens")
    model = describe(folder, GENUINE)
    assert model.id.startswith("bge-small-en-v1.5@")
    assert model.pooling is Pooling.MEAN
    assert model.query_prefix == BGE_QUERY_PREFIX


def test_an_unknown_folder_is_described_by_its_own_files(tmp_path: Path) -> None:
    """Dimension, limit and pooling come from the files, the name and slug from the folder."""
    folder = write_model(tmp_path / "My Encoder", dimension=16, pooling="cls_token")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 200}')
    model = describe(folder, OTHER)
    assert (model.dimension, model.max_tokens, model.pooling) == (16, 200, Pooling.CLS)
    name, _, digest = model.id.partition("@")
    assert (name, model.slug) == ("My Encoder", f"my-encoder-{digest[:16]}")
    assert model.query_prefix == ""


def test_a_model_of_the_table_with_other_files_has_its_own_slug() -> None:
    """The files in its repository may have changed since the table was written."""
    assert of_files(BGE_SMALL, GENUINE) is BGE_SMALL
    other = of_files(BGE_SMALL, Digests(GENUINE.weights, tokenizer="0" * 64))
    assert (other.id, other.dimension) == (BGE_SMALL.id, BGE_SMALL.dimension)
    assert other.slug.startswith(f"{BGE_SMALL.slug}-")


@pytest.mark.parametrize(
    ("stated", "tokenizer", "limit"),
    [
        ({}, {"model_max_length": 128}, 128),
        ({"max_seq_length": None}, {"model_max_length": 128}, 128),
        ({"max_seq_length": 256}, {"model_max_length": 128}, 256),
        ({}, {"model_max_length": int(1e30)}, 512),
        ({}, {}, 512),
    ],
)
def test_the_token_limit_is_that_of_sentence_transformers(
    tmp_path: Path, stated: dict[str, int], tokenizer: dict[str, int], limit: int
) -> None:
    """Version 6 stores the limit with the tokenizer. The number of positions is a maximum."""
    folder = write_model(tmp_path / "encoder")
    (folder / "sentence_bert_config.json").write_text(json.dumps(stated))
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    assert describe(folder, OTHER).max_tokens == limit


def test_a_repository_with_another_token_limit_has_its_own_collection(tmp_path: Path) -> None:
    """The id, which settings name, stays. The slug changes, because the vectors differ."""
    folder = write_model(tmp_path / "encoder")
    whole = describe(folder, repository="team/encoder")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 64}')
    cut = describe(folder, repository="team/encoder")
    assert whole.id == cut.id == "team/encoder"
    assert whole.slug != cut.slug


def test_other_weights_in_the_same_folder_are_another_model(tmp_path: Path) -> None:
    """Id and slug depend on weights, tokenizer and pooling, so vectors never mix."""
    folder = write_model(tmp_path / "encoder")
    models = [describe(folder, OTHER), describe(folder, Digests(("a" * 64,), OTHER.tokenizer))]
    models.append(describe(folder, Digests(OTHER.weights, "a" * 64)))
    write_model(folder, pooling="cls_token")
    models.append(describe(folder, OTHER))
    assert len({model.id for model in models}) == len({model.slug for model in models}) == 4


def test_the_bge_family_is_recognised_by_its_base_model(tmp_path: Path) -> None:
    """A fine-tuned BGE model that names its base model has the prefix and CLS pooling."""
    folder = write_model(tmp_path / "tuned", config={"_name_or_path": "BAAI/bge-base-en-v1.5"})
    model = describe(folder, OTHER)
    assert (model.query_prefix, model.pooling) == (BGE_QUERY_PREFIX, Pooling.CLS)


def test_positions_after_the_padding_token_are_not_counted(tmp_path: Path) -> None:
    """RoBERTa's 514 positions hold 512 tokens."""
    config = {"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}
    assert describe(write_model(tmp_path / "roberta", config=config), OTHER).max_tokens == 512


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"architectures": ["GPT2LMHeadModel"]}, "decoder that generates text"),
        ({"architectures": ["LlamaForCausalLM"]}, "decoder that generates text"),
        ({"architectures": ["BertForSequenceClassification"]}, "classifier or reranker"),
        ({"is_encoder_decoder": True}, "encoder-decoder"),
        ({"is_decoder": True}, "is a decoder"),
        ({"hidden_size": "many"}, "hidden_size"),
        ({"hidden_size": 0}, "no hidden_size"),
        ({"max_position_embeddings": None}, "no max_position_embeddings"),
        ({"architectures": 5}, "architectures"),
        ({"model_type": []}, "model_type"),
        ({"pad_token_id": "0"}, "pad_token_id"),
        ({"model_type": "roberta", "pad_token_id": 600}, "leaves no position for a token"),
    ],
)
def test_a_model_that_is_not_a_sentence_encoder_is_refused(
    tmp_path: Path, config: dict[str, object], reason: str
) -> None:
    """The message gives the reason."""
    with pytest.raises(ModelError, match=reason):
        describe(write_model(tmp_path / "model", config=config), OTHER)


def test_unsupported_pooling_is_refused(tmp_path: Path) -> None:
    """Only mean and CLS pooling are supported."""
    with pytest.raises(ModelError, match="max_tokens, neither mean nor cls"):
        describe(write_model(tmp_path / "model", pooling="max_tokens"), OTHER)


@pytest.mark.parametrize(
    "kind", ["x.models.Dense", "evil.Pooling", "Pooling", "sentence_transformers.models.Dense", ""]
)
def test_only_the_plain_layers_are_accepted(tmp_path: Path, kind: str) -> None:
    """The encoder's ONNX graph lacks other layers, and torch may import their code."""
    folder = write_model(tmp_path / "model")
    modules = [{"type": "sentence_transformers.models.Transformer"}, {"type": kind}]
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ModelError, match=f"type {kind}"):
        check_modules(folder)


def test_the_plain_layers_have_two_names(tmp_path: Path) -> None:
    """Newer versions of sentence-transformers write the new paths of the classes."""
    folder = write_model(tmp_path / "model")
    kinds = [
        "sentence_transformers.models.Transformer",
        "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
        "sentence_transformers.base.modules.normalize.Normalize",
    ]
    (folder / "modules.json").write_text(json.dumps([{"type": kind} for kind in kinds]))
    check_modules(folder)


@pytest.mark.parametrize("missing", ["config.json", "tokenizer.json", "onnx/model.onnx"])
def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    """The refusal says which file the folder lacks."""
    folder = write_model(tmp_path / "model")
    (folder / missing).unlink()
    with pytest.raises(ModelError, match=missing):
        weights_in(folder, Format.ONNX)


@pytest.mark.parametrize("content", ["{", "[]", '"text"', "\xff", '{"a":' + "[" * 10_000])
def test_a_broken_configuration_is_named(tmp_path: Path, content: str) -> None:
    """Any invalid content of config.json causes a ModelError that names the file."""
    folder = write_model(tmp_path / "model")
    (folder / "config.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(ModelError, match=r"config\.json cannot be read"):
        describe(folder, OTHER)


def test_a_large_configuration_is_read_up_to_a_limit(tmp_path: Path) -> None:
    """A tokenizer's configuration may list hundreds of thousands of tokens."""
    folder = write_model(tmp_path / "encoder")
    tokenizer = {"added_tokens_decoder": "x" * 1_200_000, "model_max_length": 64}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    assert describe(folder, OTHER).max_tokens == 64
    (folder / "tokenizer_config.json").write_text(" " * MAX_CONFIG_SIZE + "{}")
    with pytest.raises(ModelError, match=r"tokenizer_config\.json .* more than 16,777,216 bytes"):
        describe(folder, OTHER)


def test_no_version_that_runs_a_model_s_code_is_allowed() -> None:
    """Before 6.0, sentence-transformers imports the code that a model's modules.json names."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    torch = project["project"]["optional-dependencies"]["torch"]
    assert "sentence-transformers>=6.0" in torch
