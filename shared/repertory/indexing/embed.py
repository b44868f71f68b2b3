"""Embeds texts and caches their vectors by content."""

from collections.abc import Mapping

import numpy as np

from repertory.embedding.engine import EmbeddingEngine
from repertory.errors import ModelError
from repertory.index.cache import Vector, VectorCache


def embed(
    texts: Mapping[bytes, str], engine: EmbeddingEngine, cache: VectorCache
) -> dict[bytes, Vector]:
    """Embed one batch of texts and store their vectors in the cache.

    Args:
        texts: The texts, by the keys of their vectors; preferably of similar length.
        engine: Embeds them.
        cache: Stores the vectors.

    Returns:
        The vectors, by key.

    Raises:
        ModelError: The engine failed, or a vector is not finite.
    """
    if not texts:
        return {}
    vectors = engine.embed_texts(list(texts.values()))
    if not np.isfinite(vectors).all():  # half precision may overflow
        raise ModelError(
            f"The model {engine.model.id} gave a vector that is not finite for one of "
            f"{len(texts)} texts; shorten it, or use another model or the CPU."
        )
    found = dict(zip(texts, vectors.astype(np.float32), strict=True))
    cache.put(found)
    return found
