"""The contract of ``EmbeddingEngine``, tested on both engines with installed weights."""

import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import numpy as np
import pytest

from repertory.embedding.engine import EmbeddingEngine, Vectors
from repertory.embedding.model_files import Format
from repertory.embedding.models import ENCODER
from repertory.embedding.onnx import OnnxEngine
from repertory.embedding.weights import WeightFiles, resolve

# On a busy machine the import of torch alone can take a minute.
pytestmark = pytest.mark.timeout(300)

TEXTS = [
    "Read the contents of a file from disk",
    "read_file: reads a text file and returns what is in it",
    "git commit: record changes to the repository with a message",
    "Resize, crop and rotate pictures; convert between PNG, JPEG and WebP.",
    "Run a shell command in a terminal and return its output",
    "Translate a document from German into Portuguese, keeping its layout",
    "Query a PostgreSQL database and explain why a query is slow. " * 6,
    "日本語の文書を検索する",
    "Deploy a container to Kubernetes, watch it, and roll it back when health checks fail.",
    "weather",
    "Fetch a web page, follow redirects and turn its HTML into Markdown.",
    "Create a calendar event, invite people and find a free room. " * 12,
]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Format, str], EmbeddingEngine]:
    """Build an engine, once for each format and prefix."""
    data_dir = tmp_path_factory.mktemp("data")
    built: dict[tuple[Format, str], EmbeddingEngine] = {}

    def engine(form: Format, prefix: str = "") -> EmbeddingEngine:
        if (form, prefix) not in built:
            weights = _offline(form, data_dir)
            model = msgspec.structs.replace(weights.model, query_prefix=prefix)
            weights = msgspec.structs.replace(weights, model=model)
            built[form, prefix] = _engine(form, weights, data_dir)
        return built[form, prefix]

    return engine


def _offline(form: Format, data_dir: Path) -> WeightFiles:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        return resolve(ENCODER.id, form, data_dir)


def _engine(form: Format, weights: WeightFiles, data_dir: Path) -> EmbeddingEngine:
    if form is Format.ONNX:
        return OnnxEngine(weights, data_dir / "cache")
    from repertory.embedding.sentence_transformer import (  # noqa: PLC0415 - imports torch
        SentenceTransformerEngine,
    )

    return SentenceTransformerEngine(weights)


@pytest.fixture(params=list(Format))
def engine(
    request: pytest.FixtureRequest, build: Callable[[Format, str], EmbeddingEngine]
) -> EmbeddingEngine:
    """Each engine in turn."""
    return build(request.param, "")


@pytest.fixture(scope="module")
def embedded() -> Callable[[EmbeddingEngine], Vectors]:
    """Return an engine's vectors of the texts, which it embeds only once."""
    known: dict[EmbeddingEngine, Vectors] = {}

    def vectors(engine: EmbeddingEngine) -> Vectors:
        if engine not in known:
            known[engine] = engine.embed_texts(TEXTS)
        return known[engine]

    return vectors


@pytest.fixture
def expected(engine: EmbeddingEngine, embedded: Callable[[EmbeddingEngine], Vectors]) -> Vectors:
    """The vectors of the texts, embedded together."""
    return embedded(engine)


def test_rows_are_unit_vectors_of_the_models_dimension(
    engine: EmbeddingEngine, expected: Vectors
) -> None:
    """Rows are unit float32 vectors of the model's dimension."""
    assert expected.shape == (len(TEXTS), engine.model.dimension)
    assert expected.dtype == np.float32
    assert np.allclose(np.linalg.norm(expected, axis=1), 1, atol=1e-5)
    assert engine.device == "cpu"


def test_vectors_are_in_the_order_of_the_texts(engine: EmbeddingEngine, expected: Vectors) -> None:
    """Each row belongs to its text, also if the texts are sorted into batches."""
    backwards = engine.embed_texts(TEXTS[::-1])[::-1]
    cosines = (expected * backwards).sum(1)
    assert cosines.min() >= 0.999


def test_a_vector_does_not_depend_on_its_batch(engine: EmbeddingEngine, expected: Vectors) -> None:
    """A text alone and a text among others have the same vector."""
    alone = np.stack([engine.embed_texts([text])[0] for text in TEXTS])
    assert (alone * expected).sum(1).min() >= 0.999


def test_freeing_memory_changes_no_vector(engine: EmbeddingEngine, expected: Vectors) -> None:
    """Freed memory is allocated again, with the same results."""
    engine.free_memory()
    assert (engine.embed_texts(TEXTS) * expected).sum(1).min() >= 0.999


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/status")
def test_free_memory_returns_the_memory_of_a_few_texts(
    build: Callable[[Format, str], EmbeddingEngine],
) -> None:
    """ONNX Runtime keeps its memory for the next texts until ``free_memory`` returns it."""
    engine = build(Format.ONNX, "")

    def own() -> int:
        status = Path("/proc/self/status").read_text("utf-8")
        return int(re.findall(r"^RssAnon:\s+(\d+) kB$", status, re.M)[0])

    engine.embed_texts(TEXTS)
    engine.free_memory()
    before = own()
    engine.embed_texts(TEXTS)
    kept = own() - before
    engine.free_memory()
    assert kept > 4_096
    assert own() - before < kept / 2


def test_no_texts_give_no_vectors(engine: EmbeddingEngine) -> None:
    """The empty result still has the model's dimension."""
    assert engine.embed_texts([]).shape == (0, engine.model.dimension)


def test_an_empty_text_is_allowed(engine: EmbeddingEngine) -> None:
    """Empty and blank texts have unit vectors like any other text."""
    vectors = engine.embed_texts(["", "something", " \n"])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_query_of_unknown_words_is_zero(engine: EmbeddingEngine) -> None:
    """A query of unknown words has a zero vector; others of its batch are embedded."""
    vectors = engine.embed_queries(["weather", "ใบแจ้งหนี้", "погода в городе"])
    assert np.linalg.norm(vectors, axis=1).round(3).tolist() == [1, 0, 0]


def test_a_long_text_is_cut_at_the_models_limit(engine: EmbeddingEngine) -> None:
    """Tokens after the 256th change nothing; tokens after the 128th do."""
    words = " ".join(["garden"] * 200 + ["engine"] * 54)  # 256 tokens with two special ones
    full, cut, half = engine.embed_texts([words + " rocket" * 100_000, words, "garden " * 126])
    assert full @ cut >= 0.9999
    assert full @ half < 0.999


def test_invalid_unicode_is_embedded(engine: EmbeddingEngine) -> None:
    """Lone surrogates and control characters are no error."""
    assert np.isfinite(engine.embed_texts(["\ud800 half a character", "\0\x1b[31m"])).all()


def test_a_query_has_one_vector(engine: EmbeddingEngine) -> None:
    """Without a prefix, a query has the vector of its text."""
    vector = engine.embed_query(TEXTS[0])
    assert vector.shape == (engine.model.dimension,)
    assert vector @ engine.embed_texts(TEXTS[:1])[0] >= 0.9999


@pytest.mark.parametrize("form", list(Format))
def test_the_prefix_is_put_before_queries_only(
    form: Format, build: Callable[[Format, str], EmbeddingEngine]
) -> None:
    """A query is embedded with the prefix, a text without it."""
    plain, prefixed = build(form, ""), build(form, "Represent this: ")
    text = TEXTS[0]
    assert prefixed.embed_query(text) @ plain.embed_query("Represent this: " + text) >= 0.9999
    assert prefixed.embed_query(text) @ plain.embed_query(text) < 0.999
    assert prefixed.embed_texts([text])[0] @ plain.embed_texts([text])[0] >= 0.9999


@pytest.mark.parametrize("form", list(Format))
def test_a_query_vector_does_not_depend_on_its_batch(
    form: Format, build: Callable[[Format, str], EmbeddingEngine]
) -> None:
    """Queries in one call have the same vectors as alone; no queries give no rows."""
    engine = build(form, "Represent this: ")
    together = engine.embed_queries(TEXTS)
    alone = np.stack([engine.embed_query(text) for text in TEXTS])
    assert (together * alone).sum(1).min() >= 0.999
    assert engine.embed_queries([]).shape == (0, engine.model.dimension)


def test_threads_may_share_an_engine(engine: EmbeddingEngine, expected: Vectors) -> None:
    """Concurrent queries and texts have the same vectors as sequential ones."""
    with ThreadPoolExecutor(4) as pool:
        queries = [pool.submit(engine.embed_query, text) for text in TEXTS]
        texts = [pool.submit(engine.embed_texts, TEXTS) for _ in range(3)]
        assert (np.stack([query.result() for query in queries]) * expected).sum(1).min() >= 0.999
        for future in texts:
            assert (future.result() * expected).sum(1).min() >= 0.999


def test_the_engines_of_one_model_agree(
    build: Callable[[Format, str], EmbeddingEngine],
    embedded: Callable[[EmbeddingEngine], Vectors],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The mean cosine over the test texts is at least 0.99 (the test prints it)."""
    one, other = (embedded(build(form, "")) for form in (Format.ONNX, Format.TORCH))
    cosines = (one * other).sum(1)
    with capsys.disabled():
        print(f"\n  engines agree: mean cosine {cosines.mean():.5f}, least {cosines.min():.5f}")
    assert cosines.mean() >= 0.99


def test_a_batch_that_does_not_fit_is_halved(
    build: Callable[[Format, str], EmbeddingEngine],
    embedded: Callable[[EmbeddingEngine], Vectors],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If only two texts fit into memory, the vectors are the same."""
    engine = build(Format.TORCH, "")
    expected = embedded(engine)
    encode = vars(engine)["_encoder"].encode
    sizes: list[int] = []

    def encode_little(texts: list[str], **options: object) -> object:
        if len(texts) > 2:
            raise RuntimeError("MPS backend out of memory")
        sizes.append(len(texts))
        return encode(texts, **options)

    monkeypatch.setattr(vars(engine)["_encoder"], "encode", encode_little)
    monkeypatch.setattr(engine, "_run", 8)
    assert (engine.embed_texts(TEXTS) * expected).sum(1).min() >= 0.999
    assert set(sizes) == {2}
