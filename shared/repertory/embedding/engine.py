"""The port of an embedding engine."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

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

    Attributes:
        model: The model that it runs.
        device: The device it runs on: ``cpu``, ``cuda``, ``mps`` or ``rocm``.
        batch: The number of texts per call from which more are no faster, and a failure costs more.
        files: The files of the model; empty if it has none.
    """

    model: Model
    device: str
    batch: int
    files: tuple[Path, ...] = ()

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """Embed texts as they are stored, without the query prefix.

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

        The row of a query whose words the model does not know is zero; see ``known_words``.
        """
        ...

    def embed_query(self, text: str) -> Vectors:
        """Embed one query: shape ``(model.dimension,)``."""
        vector: Vectors = self.embed_queries([text])[0]
        return vector

    def rest(self) -> None:
        """Give back the memory that is kept for the next texts; they take it again."""
        return
