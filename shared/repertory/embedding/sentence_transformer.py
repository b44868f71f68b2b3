"""The torch engine, based on sentence-transformers, mainly for GPU workers.

Import this module only to use it, because importing torch takes seconds.
"""

import logging
import threading
from collections.abc import Sequence

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from typing_extensions import override

from repertory.embedding.engine import GPU_BATCH, Vectors, unit
from repertory.embedding.model_engine import ModelEngine
from repertory.embedding.weights import WeightFiles
from repertory.errors import ModelError

CPU_RUN = 8  # texts per run; measured: 31 texts/s, against 22 with 32 texts and 18 with 256

_log = logging.getLogger(__name__)


class SentenceTransformerEngine(ModelEngine):
    """Runs a model on torch: half precision on a GPU, full precision on the CPU.

    The batch size is halved until a batch fits into GPU memory. One call runs at a time.
    """

    def __init__(self, weights: WeightFiles, device: str = "cpu") -> None:
        super().__init__(weights, device)
        # Texts per run; halved whenever the GPU runs out of memory.
        self._run = CPU_RUN if device == "cpu" else GPU_BATCH
        self._lock = threading.Lock()
        try:
            self._encoder = SentenceTransformer(
                str(weights.file.parent),
                device="cuda" if device == "rocm" else device,  # torch calls both cuda
                local_files_only=True,
                trust_remote_code=False,  # explicit, in case a later version changes the default
                model_kwargs={
                    "dtype": torch.float32 if device == "cpu" else torch.float16,
                    "use_safetensors": True,  # a pickle would run code
                },
            )
        except Exception as exc:  # a broken folder can raise anything
            raise ModelError(
                f"sentence-transformers cannot load {weights.file.parent} on {device}: "
                f"{str(exc)[:300]}."
            ) from exc
        self._encoder.max_seq_length = weights.model.max_tokens

    @override
    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        vectors = self.embed_texts([self.model.query_prefix + text for text in texts])
        self.forget_unknown(vectors, texts)
        return vectors

    @override
    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        vectors = np.empty((len(texts), self.model.dimension), np.float32)
        cut = [self.model.cut(text) for text in texts]
        order = sorted(range(len(cut)), key=lambda i: len(cut[i]), reverse=True)
        with self._lock:
            while order:
                batch = order[: self._run]
                try:
                    vectors[batch] = self._encode([cut[i] for i in batch])
                except RuntimeError as exc:  # Metal has no narrower class for out of memory
                    if "out of memory" not in str(exc).lower():
                        raise ModelError(
                            f"torch failed on {self.device} with a batch of {len(batch)} texts: "
                            f"{str(exc)[:300]}."
                        ) from exc
                    self._halve(len(batch), exc)
                    continue
                order = order[len(batch) :]
        return vectors

    def _encode(self, texts: list[str]) -> Vectors:
        vectors = self._encoder.encode(
            texts,
            prompt="",  # queries have their prefix already
            batch_size=len(texts),
            show_progress_bar=False,
        )
        return unit(np.asarray(vectors, np.float32))

    def _halve(self, size: int, exc: Exception) -> None:
        if size == 1:
            raise ModelError(
                f"One text does not fit into the memory of {self.device}; use the CPU."
            ) from exc
        self._run = size // 2
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        _log.debug("embedding_batch_halved", extra={"batch": self._run})
