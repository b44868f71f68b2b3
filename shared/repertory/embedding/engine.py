"""The port of an embedding engine."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from repertory.embedding.models import Model

Vectors = NDArray[np.float32]

CPU_BATCH = 128  # texts: a few seconds' work when they are long
GPU_BATCH = 1_024


def unit(vectors: Vectors) -> Vectors:
    """Rows scaled to unit length; a row of zeros stays one."""
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
        """How many texts to give it at once: more are no faster, and are held up by a failure."""
        ...

    def embed_texts(
        self, texts: Sequence[str], done: Callable[[int], None] | None = None
    ) -> Vectors:
        """Embed texts as they are stored, without the query prefix.

        Args:
            texts: Any number of texts, in any order; an empty text is allowed.
            done: Called with the number of texts that were just finished, from any thread.

        Returns:
            An array of shape ``(len(texts), model.dimension)``, rows of unit length, in the order
            of the texts.

        Raises:
            ModelError: The engine failed; the message says on what.
        """
        ...

    def embed_query(self, text: str) -> Vectors:
        """Embed one query, with the model's query prefix: shape ``(model.dimension,)``."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed queries together, each as ``embed_query`` does: rows in the order of the texts."""
        ...
