"""The ONNX engine on tiny models: pooling, limits, refusals, batches and the cached graph."""

import time
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import Unigram
from tokenizers.pre_tokenizers import Metaspace
from tokenizers.processors import TemplateProcessing

from repertory.embedding.model_files import Format
from repertory.embedding.models import BGE_QUERY_PREFIX, BGE_SMALL, MULTILINGUAL, known
from repertory.embedding.onnx import OnnxEngine, _batches
from repertory.embedding.session import Session
from repertory.embedding.weights import WeightFiles, resolve
from repertory.errors import ModelError
from repertory.system.cancellation import until
from tests.support.model_folders import WORDS, write_model


def engine(folder: Path, tmp_path: Path) -> OnnxEngine:
    """An engine for the model in a folder."""
    return OnnxEngine(weights(folder, tmp_path), tmp_path / "cache")


def weights(folder: Path, tmp_path: Path) -> WeightFiles:
    """The weights in a folder."""
    return resolve(str(folder), Format.ONNX, tmp_path / "data")


@pytest.fixture
def bge(tmp_path: Path) -> OnnxEngine:
    """An engine for a folder with the hub's layout of bge-small-en-v1.5."""
    return engine(write_model(tmp_path / "bge-small-en-v1.5"), tmp_path)


def test_bge_from_a_folder_has_the_properties_of_its_family(bge: OnnxEngine) -> None:
    """Prefix, limit and pooling are as in the table, but the id is its own."""
    own = [getattr(bge.model, name) for name in ("query_prefix", "max_tokens", "pooling")]
    assert own == [BGE_SMALL.query_prefix, BGE_SMALL.max_tokens, BGE_SMALL.pooling]
    assert bge.model.id != BGE_SMALL.id
    assert bge.device == "cpu"


def test_bge_puts_its_prefix_before_queries_only(bge: OnnxEngine) -> None:
    """A query is embedded with the prefix, a text without it."""
    prefixed, plain = bge.embed_texts([BGE_QUERY_PREFIX + "w1 w2", "w1 w2"])
    assert np.allclose(bge.embed_query("w1 w2"), prefixed, atol=1e-6)
    assert not np.allclose(prefixed, plain, atol=1e-2)


def test_bge_pools_by_its_first_token(bge: OnnxEngine, tmp_path: Path) -> None:
    """CLS pooling and mean pooling of the same graph differ, and each follows its definition."""
    table = np.random.default_rng(1).normal(size=(len(WORDS), 384)).astype(np.float32)
    tokens = table[[2, WORDS.index("w1"), WORDS.index("w2"), 3]]
    hidden = tokens + tokens.mean(0)
    mean = engine(write_model(tmp_path / "plain"), tmp_path).embed_texts(["w1 w2"])[0]
    for vector, pooled in ((bge.embed_texts(["w1 w2"])[0], hidden[0]), (mean, hidden.mean(0))):
        assert np.allclose(vector, pooled / np.linalg.norm(pooled), atol=1e-5)


def test_the_limit_is_the_model_s_and_not_the_tokenizer_s(bge: OnnxEngine) -> None:
    """The tokenizer's file limits texts to 128 tokens, the model to 512 with two special ones."""
    words = [WORDS[4 + number % 60] for number in range(700)]
    full, at_limit, below, at_128 = bge.embed_texts(
        [" ".join(words[:count]) for count in (700, 510, 509, 126)]
    )
    assert np.allclose(full, at_limit, atol=1e-6)
    assert not np.allclose(full, below, atol=1e-6)
    assert not np.allclose(full, at_128, atol=1e-3)


def test_lone_surrogates_and_huge_texts_are_embedded(bge: OnnxEngine) -> None:
    """No text that Python can hold makes an engine fail."""
    assert np.isfinite(bge.embed_texts(["\ud800 w1", "w1 " * 1_000_000, "\0"])).all()


def test_a_large_batch_ends_soon_after_its_cancellation(
    bge: OnnxEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the current run is finished."""
    run, lengths = OnnxEngine._run, []

    def noting(self: OnnxEngine, batch: list[list[int]], **how: Any) -> Any:  # noqa: ANN401
        lengths.append(len(batch))
        return run(self, batch, **how)

    monkeypatch.setattr(OnnxEngine, "_run", noting)
    texts = [f"w1 {'w2 ' * number}" for number in range(200)]
    with until(lambda: len(lengths) > 0), pytest.raises(CancelledError):
        bge.embed_texts(texts)
    assert sum(lengths) < len(texts) / 2
    assert len(bge.embed_texts(texts)) == len(texts)


def test_memory_is_released_when_no_other_batch_runs(
    bge: OnnxEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory in use cannot be released, so the last run waits for all others."""
    runs: list[tuple[float, float, bool]] = []
    run = Session.run

    def timed(self: Session, output: str, feed: dict[str, Any], *, is_last: bool) -> object:
        began = time.monotonic()
        # The other runs would end after the last run, unless it waits for them.
        time.sleep(0.002 if is_last else 0.02)
        found = run(self, output, feed, is_last=is_last)
        runs.append((began, time.monotonic(), is_last))
        return found

    monkeypatch.setattr(Session, "run", timed)
    monkeypatch.setattr(bge, "_cores", 2)
    bge.embed_texts([f"w{number} " * 60 for number in range(40)])
    [(last_began, _, _)] = [one for one in runs if one[2]]
    assert max(ended for _, ended, is_last in runs if not is_last) <= last_began


def test_the_output_of_a_graph_with_pooling_is_used_unchanged(tmp_path: Path) -> None:
    """An output of shape [batch, dim] is already pooled."""
    pooled = engine(write_model(tmp_path / "pooled", shape=("batch", 384)), tmp_path)
    hidden = engine(write_model(tmp_path / "hidden"), tmp_path)
    texts = ["w1 w2 w3", "w4"]
    # The mean over h + mean(h) is twice the mean, so both agree once they have unit length.
    assert np.allclose(pooled.embed_texts(texts), hidden.embed_texts(texts), atol=1e-5)


def test_model_onnx_may_lie_beside_its_configuration(tmp_path: Path) -> None:
    """It may also lie in the folder ``onnx``."""
    folder = write_model(tmp_path / "flat", place="model.onnx")
    assert engine(folder, tmp_path).embed_query("w1").shape == (384,)


def test_an_unknown_input_is_refused(tmp_path: Path) -> None:
    """The error names the input."""
    folder = write_model(tmp_path / "odd", extra_input="position_ids")
    with pytest.raises(ModelError, match="asks for the input position_ids"):
        engine(folder, tmp_path)


def test_an_output_of_another_shape_is_refused(tmp_path: Path) -> None:
    """The error has the expected shapes."""
    folder = write_model(tmp_path / "odd", config={"hidden_size": 100})
    with pytest.raises(ModelError, match=r"neither \[batch, sequence, 100\] nor \[batch, 100\]"):
        engine(folder, tmp_path)


@pytest.mark.parametrize(
    ("file", "reason"),
    [("tokenizer.json", "tokenizer"), ("onnx/model.onnx", "ONNX Runtime cannot")],
)
def test_a_damaged_file_is_named(tmp_path: Path, file: str, reason: str) -> None:
    """A damaged file causes a ModelError that says which file it is."""
    folder = write_model(tmp_path / "damaged")
    (folder / file).write_bytes(b"not this")
    with pytest.raises(ModelError, match=reason):
        engine(folder, tmp_path)


def test_the_optimised_graph_is_kept_and_follows_its_source(tmp_path: Path) -> None:
    """It is made again if it is damaged or the weights change. Its vectors are equal."""
    folder = write_model(tmp_path / "model")
    before = engine(folder, tmp_path).embed_query("w1 w2")
    (kept,) = (tmp_path / "cache").glob("*.ort")
    assert np.array_equal(engine(folder, tmp_path).embed_query("w1 w2"), before)

    kept.write_bytes(b"damaged")
    assert np.array_equal(engine(folder, tmp_path).embed_query("w1 w2"), before)

    write_model(folder, seed=2)
    assert not np.allclose(engine(folder, tmp_path).embed_query("w1 w2"), before, atol=1e-2)


def test_the_optimised_graph_follows_the_weights_beside_its_source(tmp_path: Path) -> None:
    """The weights may be replaced without the graph, which only names their file."""
    folder, other = (
        write_model(tmp_path / name, seed=seed, has_weights_beside=True)
        for name, seed in (("model", 1), ("other", 2))
    )
    before = engine(folder, tmp_path).embed_query("w1 w2")
    place = "onnx/model.onnx_data"
    (folder / place).write_bytes((other / place).read_bytes())
    after, expected = (engine(one, tmp_path).embed_query("w1 w2") for one in (folder, other))
    assert not np.allclose(after, before, atol=1e-2)
    assert np.array_equal(after, expected)


def test_queries_and_texts_share_one_session(tmp_path: Path) -> None:
    """Two engines of a model load its weights once, while either is in use."""
    folder = write_model(tmp_path / "model")
    first, second = engine(folder, tmp_path), engine(folder, tmp_path)
    assert first._session is second._session
    vector = first.embed_query("w1 w2")
    del first
    assert np.allclose(second.embed_query("w1 w2"), vector)


def test_queries_in_a_batch_have_the_vectors_of_single_queries(bge: OnnxEngine) -> None:
    """Many queries are embedded in batches."""
    texts = [f"w1 {'w2 ' * length}" for length in range(40)]
    together = bge.embed_queries(texts)
    assert np.allclose(together, [bge.embed_query(text) for text in texts], atol=1e-5)


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    """The engine works without a cache."""
    (tmp_path / "cache").write_text("a file where the folder should be")
    folder = write_model(tmp_path / "model")
    assert engine(folder, tmp_path).embed_query("w1").shape == (384,)
    closed = tmp_path / ("x" * 300)  # too long, so it cannot be opened even by root
    read = OnnxEngine(weights(folder, tmp_path), closed)
    assert read.embed_query("w1").shape == (384,)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=80), st.integers(1, 1_000))
def test_batches_have_each_text_once_within_the_budget(lengths: list[int], budget: int) -> None:
    """Padding counts, long texts come first, and only a single text may exceed the budget."""
    batches = list(_batches([[0] * length for length in lengths], budget))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    longest = [max(lengths[index] for index in batch) for batch in batches]
    assert longest == sorted(longest, reverse=True)
    for batch, length in zip(batches, longest, strict=True):
        assert len(batch) == 1 or len(batch) * length <= budget


def test_the_multilingual_model_works_with_its_kind_of_tokenizer(tmp_path: Path) -> None:
    """It is a Unigram tokenizer with other special tokens; texts are cut at 128 tokens."""
    folder = write_model(tmp_path / "paraphrase-multilingual-MiniLM-L12-v2")
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0)]
    pieces += [("文件", -3.0), ("搜索", -3.0), ("▁поиск", -3.0)]
    tokenizer = Tokenizer(Unigram(pieces, unk_id=3))
    tokenizer.pre_tokenizer = Metaspace()
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.enable_padding(pad_id=1, pad_token="<pad>", length=128)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 128}')
    model = engine(folder, tmp_path)
    assert known("multilingual") is MULTILINGUAL
    assert model.model.max_tokens == MULTILINGUAL.max_tokens
    one, other, both, limit, beyond = model.embed_texts(
        ["文件搜索", "поиск", "文件搜索 поиск", "поиск " * 126, "поиск " * 200]
    )
    assert not np.allclose(one, other, atol=1e-2)
    assert not np.allclose(one, both, atol=1e-2)
    assert np.allclose(limit, beyond, atol=1e-6)
    assert np.allclose(model.embed_query("文件搜索"), one, atol=1e-6)
