"""The interface of an embedding engine."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from repertory.embedding.models import Model

Vectors = NDArray[np.float32]

CPU_BATCH = 128  # texts; long ones take a few seconds per batch
GPU_BATCH = 1_024


def unit(vectors: Vectors) -> Vectors:
    """Rows scaled to unit length; a row of zeros stays zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(norms, 1e-12), np.float32)


class EmbeddingEngine(Protocol):
    """Runs one model on one device.

    Engines that run the same model give nearly the same vectors (mean cosine at least 0.99). Safe
    to call from several threads at once. Texts are truncated to the model's limit.

    Attributes:
        model: The model.
        device: The device: ``cpu``, ``cuda``, ``mps`` or ``rocm``.
        batch: The recommended number of texts per call. More are no faster, and lose more work if
            the call fails.
        files: The files of the model; empty if it has none.
    """

    model: Model
    device: str
    batch: int
    files: tuple[Path, ...] = ()

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """Embed texts to be indexed, without the query prefix.

        Args:
            texts: Any number of texts, in any order; an empty text is allowed.

        Returns:
            An array of shape ``(len(texts), model.dimension)``, rows of unit length, in the order
            of the texts.

        Raises:
            ModelError: The engine failed; the message names the input.
        """
        ...

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed queries, with the model's query prefix; otherwise like ``embed_texts``.

        A row is zero if the model knows fewer than half of the query's words; see ``known_words``.
        """
        ...

    def embed_query(self, text: str) -> Vectors:
        """Embed one query: shape ``(model.dimension,)``."""
        vector: Vectors = self.embed_queries([text])[0]
        return vector

    def free_memory(self) -> None:
        """Free the memory kept for the next texts; it is allocated again when needed."""
        return
