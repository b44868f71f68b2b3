"""The engine for use without a model, when items are found by keywords alone."""

from collections.abc import Sequence

import numpy as np
from typing_extensions import override

from repertory.embedding.engine import CPU_BATCH, EmbeddingEngine, Vectors
from repertory.embedding.models import Model
from repertory.errors import ModelError

WORDS_MODEL = Model(id="", slug="keywords", dimension=1, max_tokens=1)


class WordsEngine(EmbeddingEngine):
    """Gives every text the same vector, so that items can be stored. Cannot embed queries.

    Args:
        reason: Why no model is available.
    """

    model = WORDS_MODEL
    device = "cpu"
    batch = CPU_BATCH

    def __init__(self, reason: str) -> None:
        self.reason = reason

    @override
    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        return np.ones((len(texts), 1), np.float32)

    @override
    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        raise ModelError(f"Only words are searched: {self.reason}")
