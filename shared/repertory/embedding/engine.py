"""The port of an embedding engine."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from repertory.embedding.models import Model

Vectors = NDArray[np.float32]

CPU_BATCH = 128  # texts: a few seconds' work when they are long
GPU_BATCH = 1_024


def unit(vectors: Vectors) -> Vectors:
    """Rows scaled to unit length; a row of zeros stays zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(norms, 1e-12), np.float32)


class EmbeddingEngine(Protocol):
    """Runs one model on one device. Engines of one model agree (mean cosine at least 0.99).

    Safe to call from several threads at once. Texts longer than the model's limit are cut there.
    """

    @property
    def model(self) -> Model:
        """The model that this engine runs."""
        ...

    @property
    def device(self) -> str:
        """The device it runs on: ``cpu``, ``cuda``, ``mps`` or ``rocm``."""
        ...

    @property
    def batch(self) -> int:
        """The number of texts per call from which more are no faster, and a failure costs more."""
        ...

    def embed_texts(
        self, texts: Sequence[str], done: Callable[[int], None] | None = None
    ) -> Vectors:
        """Embed texts as they are stored, without the query prefix.

        Args:
            texts: Any number of texts, in any order; an empty text is allowed.
            done: Called with the number of texts just finished, from any thread.

        Returns:
            An array of shape ``(len(texts), model.dimension)``, rows of unit length, in the order
            of the texts.

        Raises:
            ModelError: The engine failed; the message names the input.
        """
        ...

    def embed_query(self, text: str) -> Vectors:
        """Embed one query, with the model's query prefix: shape ``(model.dimension,)``."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed queries together, each as ``embed_query`` does: rows in the order of the texts."""
        ...


class ModelEngine(EmbeddingEngine):
    """The part that all engines share which run a model themselves.

    Args:
        model: The model.
        device: The device that it runs on.
    """

    def __init__(self, model: Model, device: str) -> None:
        self._model = model
        self._device = device

    @property
    @override
    def model(self) -> Model:
        return self._model

    @property
    @override
    def device(self) -> str:
        return self._device

    @property
    @override
    def batch(self) -> int:
        return CPU_BATCH if self._device == "cpu" else GPU_BATCH

    @override
    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self.embed_queries([text])[0]
        return vector
