"""The engine that stands in while no model can be had: items are found by their words alone."""

from collections.abc import Callable, Sequence

import numpy as np

from repertory.embedding.engine import CPU_BATCH, Vectors
from repertory.embedding.models import Model
from repertory.errors import ModelError

WORDS = Model(id="", slug="keywords", dimension=1, max_tokens=1)


class WordsEngine:
    """Gives every text the same vector, so that items can be stored; it embeds no query.

    Args:
        reason: Why there is no model.
    """

    model = WORDS
    device = "cpu"
    batch = CPU_BATCH

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def embed_texts(
        self, texts: Sequence[str], done: Callable[[int], None] | None = None
    ) -> Vectors:
        """The same vector for each text: shape ``(len(texts), 1)``."""
        if done:
            done(len(texts))
        return np.ones((len(texts), 1), np.float32)

    def embed_query(self, text: str) -> Vectors:  # noqa: ARG002 - the port's
        """Refuse: there is nothing to compare a query with."""
        raise self._error()

    def embed_queries(self, texts: Sequence[str]) -> Vectors:  # noqa: ARG002 - likewise
        """Refuse likewise."""
        raise self._error()

    def _error(self) -> ModelError:
        return ModelError(f"Only words are searched: {self.reason}")
