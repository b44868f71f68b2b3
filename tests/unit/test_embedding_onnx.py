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

from repertory.cancellation import until
from repertory.embedding.folder import Format
from repertory.embedding.models import BGE_QUERY_PREFIX, BGE_SMALL, MULTILINGUAL, known
from repertory.embedding.onnx import OnnxEngine, _batches
from repertory.embedding.session import Session
from repertory.embedding.weights import WeightFiles, resolve
from repertory.errors import ModelError
from tests.support.model_folders import WORDS, write_model


def engine(folder: Path, tmp_path: Path) -> OnnxEngine:
    """An engine on a folder."""
    return OnnxEngine(weights(folder, tmp_path), tmp_path / "cache")


def weights(folder: Path, tmp_path: Path) -> WeightFiles:
    """The weights of a folder."""
    return resolve(str(folder), Format.ONNX, tmp_path / "data")


@pytest.fixture
def bge(tmp_path: Path) -> OnnxEngine:
    """A folder with the hub's layout of bge-small-en-v1.5."""
    return engine(write_model(tmp_path / "bge-small-en-v1.5"), tmp_path)


def test_bge_from_a_folder_has_the_ways_of_its_family(bge: OnnxEngine) -> None:
    """Its prefix, limit and pooling are the table's; its name does not make it that model."""
    own = [getattr(bge.model, name) for name in ("query_prefix", "max_tokens", "pooling")]
    assert own == [BGE_SMALL.query_prefix, BGE_SMALL.max_tokens, BGE_SMALL.pooling]
    assert bge.model.id != BGE_SMALL.id
    assert bge.device == "cpu"


def test_bge_puts_its_prefix_before_queries_only(bge: OnnxEngine) -> None:
    """A query is embedded as prefix and text; a text as it is."""
    prefixed, plain = bge.embed_texts([BGE_QUERY_PREFIX + "w1 w2", "w1 w2"])
    assert np.allclose(bge.embed_query("w1 w2"), prefixed, atol=1e-6)
    assert not np.allclose(prefixed, plain, atol=1e-2)


def test_bge_pools_by_its_first_token(bge: OnnxEngine, tmp_path: Path) -> None:
    """CLS pooling and mean pooling of one graph differ, and each follows its definition."""
    table = np.random.default_rng(1).normal(size=(len(WORDS), 384)).astype(np.float32)
    tokens = table[[2, WORDS.index("w1"), WORDS.index("w2"), 3]]
    hidden = tokens + tokens.mean(0)
    mean = engine(write_model(tmp_path / "plain"), tmp_path).embed_texts(["w1 w2"])[0]
    for vector, pooled in ((bge.embed_texts(["w1 w2"])[0], hidden[0]), (mean, hidden.mean(0))):
        assert np.allclose(vector, pooled / np.linalg.norm(pooled), atol=1e-5)


def test_the_limit_is_the_models_and_not_the_tokenizer_files(bge: OnnxEngine) -> None:
    """The file cuts at 128 tokens, the model at 512 with two special tokens among them."""
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


def test_a_large_batch_ends_soon_once_its_vectors_are_not_wanted(
    bge: OnnxEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what runs at this moment is finished."""
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


def test_memory_is_given_back_when_no_other_batch_runs(
    bge: OnnxEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another run uses could not be; the last one waits for all others."""
    runs: list[tuple[float, float, bool]] = []
    run = Session.run

    def timed(self: Session, output: str, feed: dict[str, Any], *, is_last: bool) -> object:
        began = time.monotonic()
        time.sleep(0.002 if is_last else 0.02)  # so that others would run longer than the last
        found = run(self, output, feed, is_last=is_last)
        runs.append((began, time.monotonic(), is_last))
        return found

    monkeypatch.setattr(Session, "run", timed)
    monkeypatch.setattr(bge, "_cores", 2)
    bge.embed_texts([f"w{number} " * 60 for number in range(40)])
    [(last_began, _, _)] = [one for one in runs if one[2]]
    assert max(ended for _, ended, is_last in runs if not is_last) <= last_began


def test_a_graph_that_pools_by_itself_is_taken_as_it_is(tmp_path: Path) -> None:
    """An output [batch, dim] needs no pooling."""
    pooled = engine(write_model(tmp_path / "pooled", shape=("batch", 384)), tmp_path)
    hidden = engine(write_model(tmp_path / "hidden"), tmp_path)
    texts = ["w1 w2 w3", "w4"]
    # The mean over h + mean(h) is twice the mean, so both agree once they have unit length.
    assert np.allclose(pooled.embed_texts(texts), hidden.embed_texts(texts), atol=1e-5)


def test_model_onnx_may_lie_beside_its_configuration(tmp_path: Path) -> None:
    """Both layouts of a folder work."""
    folder = write_model(tmp_path / "flat", place="model.onnx")
    assert engine(folder, tmp_path).embed_query("w1").shape == (384,)


def test_an_input_that_we_cannot_feed_is_refused(tmp_path: Path) -> None:
    """The refusal names it."""
    folder = write_model(tmp_path / "odd", extra_input="position_ids")
    with pytest.raises(ModelError, match="asks for the input position_ids"):
        engine(folder, tmp_path)


def test_an_output_of_another_shape_is_refused(tmp_path: Path) -> None:
    """The refusal has the actual and the expected shapes."""
    folder = write_model(tmp_path / "odd", config={"hidden_size": 100})
    with pytest.raises(ModelError, match=r"neither \[batch, sequence, 100\] nor \[batch, 100\]"):
        engine(folder, tmp_path)


@pytest.mark.parametrize(
    ("file", "reason"),
    [("tokenizer.json", "tokenizer"), ("onnx/model.onnx", "ONNX Runtime cannot")],
)
def test_a_damaged_file_is_named(tmp_path: Path, file: str, reason: str) -> None:
    """A damaged file leads to a ModelError that names it."""
    folder = write_model(tmp_path / "damaged")
    (folder / file).write_bytes(b"not this")
    with pytest.raises(ModelError, match=reason):
        engine(folder, tmp_path)


def test_the_optimised_graph_is_kept_and_follows_its_source(tmp_path: Path) -> None:
    """It is made once, and again if it is damaged or the weights change, with the same vectors."""
    folder = write_model(tmp_path / "model")
    before = engine(folder, tmp_path).embed_query("w1 w2")
    (kept,) = (tmp_path / "cache").glob("*.ort")
    assert np.array_equal(engine(folder, tmp_path).embed_query("w1 w2"), before)

    kept.write_bytes(b"damaged")
    assert np.array_equal(engine(folder, tmp_path).embed_query("w1 w2"), before)

    write_model(folder, seed=2)
    assert not np.allclose(engine(folder, tmp_path).embed_query("w1 w2"), before, atol=1e-2)


def test_the_optimised_graph_follows_the_weights_beside_its_source(tmp_path: Path) -> None:
    """They may be replaced without the graph, in which only their place is written."""
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
    """Two engines of one model load its weights once, as long as one of them is used."""
    folder = write_model(tmp_path / "model")
    first, second = engine(folder, tmp_path), engine(folder, tmp_path)
    assert first._session is second._session
    vector = first.embed_query("w1 w2")
    del first
    assert np.allclose(second.embed_query("w1 w2"), vector)


def test_many_queries_have_the_vectors_of_single_ones(bge: OnnxEngine) -> None:
    """They are embedded in batches, whose memory is given back."""
    texts = [f"w1 {'w2 ' * length}" for length in range(40)]
    together = bge.embed_queries(texts)
    assert np.allclose(together, [bge.embed_query(text) for text in texts], atol=1e-5)


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    """The engine then works without one."""
    (tmp_path / "cache").write_text("a file where the folder should be")
    folder = write_model(tmp_path / "model")
    assert engine(folder, tmp_path).embed_query("w1").shape == (384,)
    closed = tmp_path / ("x" * 300)  # as if it could not be entered: root may enter all others
    read = OnnxEngine(weights(folder, tmp_path), closed)
    assert read.embed_query("w1").shape == (384,)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=80), st.integers(1, 1_000))
def test_batches_hold_every_text_once_within_the_budget(lengths: list[int], budget: int) -> None:
    """Padding counts, the longest come first, and only a text alone may exceed the budget."""
    batches = list(_batches([[0] * length for length in lengths], budget))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    longest = [max(lengths[index] for index in batch) for batch in batches]
    assert longest == sorted(longest, reverse=True)
    for batch, length in zip(batches, longest, strict=True):
        assert len(batch) == 1 or len(batch) * length <= budget


def test_the_multilingual_model_is_run_with_its_kind_of_tokenizer(tmp_path: Path) -> None:
    """Its tokenizer is a Unigram with other special tokens; its texts are cut at 128."""
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
