"""The ONNX Runtime engine, mainly for the CPU, for queries and for indexing."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import numpy as np
import onnxruntime as ort  # type: ignore[import-untyped]  # ships no types
from typing_extensions import override

from repertory.embedding.device import cores
from repertory.embedding.engine import Vectors, unit
from repertory.embedding.model_engine import ModelEngine
from repertory.embedding.models import Pooling
from repertory.embedding.session import open_session
from repertory.embedding.weights import WeightFiles
from repertory.errors import ModelError
from repertory.system.cancellation import checkpoint

# Activations are the bottleneck, not weights, so batches should fit into the processor's cache.
# Measured on two cores, 300 descriptions, texts/s at a budget of 128 … 2,048 tokens:
# 103, 107, 106 (384), 102 (512), 102, 96, 73.
BATCH_TOKENS = 384
GPU_BATCH_TOKENS = 16_384
MAX_KEPT = 16  # texts; small calls keep their memory, because reallocating it costs 0.1 s
WINDOW = 4_096  # texts tokenised and sorted together; limits the memory for tokens

_INTEGERS: dict[str, np.dtype[np.signedinteger]] = {
    "tensor(int64)": np.dtype(np.int64),
    "tensor(int32)": np.dtype(np.int32),
}
_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}


class _Signature(msgspec.Struct, frozen=True):
    """The inputs of a graph, and the output that holds the vectors."""

    inputs: dict[str, np.dtype[np.signedinteger]]
    output: str


class OnnxEngine(ModelEngine):
    """Runs a model on ONNX Runtime.

    Up to one thread per core shares one session. Each run uses one thread, for a batch of texts of
    similar length. Queries run on the caller's thread. With two threads per run, a query would take
    3.5 ms instead of 4.9 ms on two idle cores, but 10 ms instead of 6 ms during indexing.
    """

    def __init__(self, weights: WeightFiles, cache: Path, device: str = "cpu") -> None:
        super().__init__(weights, device)
        self._weights = weights
        self._cores = cores()
        self._budget = BATCH_TOKENS if device == "cpu" else GPU_BATCH_TOKENS
        self._session = open_session(weights.file, cache, device)
        self._signature = _check(self._session.graph, weights)

    @override
    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        vectors = np.empty((len(texts), self.model.dimension), np.float32)
        tokens = self._tokenize([self.model.query_prefix + text for text in texts])
        batches = list(_batches(tokens, self._budget))
        are_many = len(texts) > MAX_KEPT
        for batch in batches:
            is_last = are_many and batch is batches[-1]
            vectors[batch] = self._run([tokens[i] for i in batch], is_last=is_last)
        if are_many:
            self._session.free_memory()
        self.forget_unknown(vectors, texts)
        return vectors

    @override
    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        vectors = np.empty((len(texts), self.model.dimension), np.float32)
        for start in range(0, len(texts), WINDOW):
            tokens = self._tokenize(texts[start : start + WINDOW])
            self._fill(vectors[start : start + WINDOW], tokens)
        if len(texts) > MAX_KEPT:
            self._session.free_memory()
        return vectors

    @override
    def free_memory(self) -> None:
        self._run([self._tokenizer.encode("").ids], is_last=True)
        self._session.free_memory()

    def _fill(self, vectors: Vectors, tokens: list[list[int]]) -> None:
        batches = list(_batches(tokens, self._budget))
        threads = min(len(batches), self._cores if self.device == "cpu" else 1)
        # The last batch runs alone: memory in use by a concurrent run would not be freed.
        last = batches.pop() if len(tokens) > MAX_KEPT else None

        check = checkpoint()

        def embed(batch: list[int], *, is_last: bool = False) -> None:
            check()
            vectors[batch] = self._run([tokens[i] for i in batch], is_last=is_last)

        with ThreadPoolExecutor(threads, "embed") as pool:
            for _ in pool.map(embed, batches):
                pass
        if last:
            embed(last, is_last=True)

    def _tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        if len(texts) == 1:
            # ``encode`` keeps the GIL, unlike ``encode_batch``. So the keyword arm, on another
            # thread, gets the GIL while the graph runs and not before.
            return [self._tokenizer.encode(self.model.cut(texts[0])).ids]
        encodings = self._tokenizer.encode_batch([self.model.cut(text) for text in texts])
        return [encoding.ids for encoding in encodings]

    def _run(self, batch: list[list[int]], *, is_last: bool) -> Vectors:
        longest = max(map(len, batch))
        ids = np.zeros((len(batch), longest), np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        values = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        feed = {name: values[name].astype(kind) for name, kind in self._signature.inputs.items()}
        try:
            output = self._session.run(self._signature.output, feed, is_last=is_last)
        except Exception as exc:  # ONNX Runtime's errors share no narrower base
            raise ModelError(
                f"ONNX Runtime failed on {self._weights.file} with a batch of {ids.shape}: "
                f"{str(exc)[:300]}."
            ) from exc
        return unit(self._pool(np.asarray(output, np.float32), mask))

    def _pool(self, output: Vectors, mask: np.ndarray) -> Vectors:
        if output.ndim == 2:  # the graph includes the pooling
            return output
        if self.model.pooling is Pooling.CLS:
            return output[:, 0]
        weights = mask.astype(np.float32)
        pooled: Vectors = (weights[:, None, :] @ output)[:, 0] / weights.sum(1, keepdims=True)
        return pooled


def _batches(tokens: list[list[int]], budget: int) -> Iterator[list[int]]:
    """The indices of texts, in batches of similar length whose padded size is within the budget.

    The longest texts come first, so that all threads finish at about the same time.
    """
    batch: list[int] = []
    for index in sorted(range(len(tokens)), key=lambda i: len(tokens[i]), reverse=True):
        if batch and (len(batch) + 1) * len(tokens[batch[0]]) > budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _check(session: ort.InferenceSession, weights: WeightFiles) -> _Signature:
    """The signature of a graph; ModelError unless it is a sentence encoder with known inputs."""

    def refusal(reason: str) -> ModelError:
        return ModelError(
            f"The ONNX model {weights.file} cannot be used: {reason}; choose a sentence encoder."
        )

    inputs = {}
    for given in session.get_inputs():
        if given.name not in _INPUTS or given.type not in _INTEGERS:
            raise refusal(f"it asks for the input {given.name} of type {given.type}")
        inputs[given.name] = _INTEGERS[given.type]
    if "input_ids" not in inputs:
        raise refusal("it has no input input_ids")
    dimension = weights.model.dimension
    outputs = session.get_outputs()
    for rank in (3, 2):  # prefer token vectors to vectors of whole texts
        for output in outputs:
            last = output.shape[-1] if len(output.shape) == rank else 0
            if last == dimension or isinstance(last, str):  # str: a symbolic size
                return _Signature(inputs, output.name)
    shapes = ", ".join(f"{output.name} {output.shape}" for output in outputs)
    raise refusal(
        f"it gives {shapes}, neither [batch, sequence, {dimension}] nor [batch, {dimension}]"
    )
