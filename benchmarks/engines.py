"""The embedding engine compared with sentence-transformers and with plain ONNX Runtime."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # ships no types
from tokenizers import Tokenizer

from benchmarks.indexing import MODEL
from benchmarks.measure import Figure, medians
from benchmarks.texts import descriptions
from repertory.embedding.load import load_engine
from repertory.embedding.model_files import Format
from repertory.embedding.onnx import BATCH_TOKENS
from repertory.embedding.weights import resolve

TEXTS = 300
ROUNDS = 3
THREADS = 2


def run(data: Path) -> list[Figure]:
    """Embed real texts with each engine in turn."""
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - loads torch

    texts = [f"{name}: {text}" for name, text in descriptions(TEXTS)]
    engine = load_engine(MODEL, "cpu", data)
    by_hand = _by_hand(texts, data)
    peer = SentenceTransformer(str(resolve(MODEL, Format.TORCH, data).file.parent), device="cpu")
    works = (
        lambda: engine.embed_texts(texts),
        lambda: peer.encode(texts, show_progress_bar=False),
        by_hand,
    )
    for work in works:
        work()
    ours, theirs, floor = (TEXTS / taken for taken in medians(works, ROUNDS))
    return [
        Figure(
            name="embed real texts",
            ours=ours,
            other=theirs,
            against="SentenceTransformer.encode, its defaults",
            unit="texts/s",
            target=1.6,
            at_least=True,
        ),
        Figure(
            name="embed real texts",
            ours=ours,
            other=floor,
            against="ONNX Runtime fed the same batches by hand",
            unit="texts/s",
            target=0.9,
            at_least=True,
        ),
    ]


def _by_hand(texts: list[str], data: Path) -> Callable[[], None]:
    """The minimum work of embedding: tokenise, sort, batch, run on two threads, pool."""
    weights = resolve(MODEL, Format.ONNX, data)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        str(weights.file), options, providers=["CPUExecutionProvider"]
    )
    tokenizer = Tokenizer.from_file(str(weights.tokenizer))
    tokenizer.no_padding()
    tokenizer.enable_truncation(weights.model.max_tokens)

    def embed(batch: list[list[int]]) -> None:
        ids = np.zeros((len(batch), len(batch[0])), np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = np.asarray(session.run(None, feed)[0])
        pooled = (hidden * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        pooled /= np.linalg.norm(pooled, axis=1, keepdims=True)

    def run() -> None:
        tokens = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
        batches: list[list[list[int]]] = [[]]
        for one in sorted(tokens, key=len, reverse=True):
            if batches[-1] and (len(batches[-1]) + 1) * len(batches[-1][0]) > BATCH_TOKENS:
                batches.append([])
            batches[-1].append(one)
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(embed, batches))

    return run
