"""The third stage: texts become vectors, which are stored by content."""

from collections.abc import Mapping

import numpy as np

from repertory.embedding.engine import EmbeddingEngine
from repertory.errors import ModelError
from repertory.index.cache import Vector, VectorCache


def embed(
    texts: Mapping[bytes, str], engine: EmbeddingEngine, cache: VectorCache
) -> dict[bytes, Vector]:
    """Embed texts and store their vectors in the cache.

    Texts of similar length are embedded together. A crash costs one batch.

    Args:
        texts: The texts, by the keys of their vectors.
        engine: Embeds them.
        cache: Stores the vectors.

    Returns:
        The vectors, by key.

    Raises:
        ModelError: The engine failed, or a vector is not finite.
    """
    ordered = sorted(texts, key=lambda key: (-len(texts[key]), key))
    found: dict[bytes, Vector] = {}
    for start in range(0, len(ordered), engine.batch):
        keys = ordered[start : start + engine.batch]
        vectors = engine.embed_texts([texts[key] for key in keys])
        if not np.isfinite(vectors).all():  # half precision may overflow
            raise ModelError(
                f"The model {engine.model.id} gave a vector that is not finite for one of "
                f"{len(keys)} texts; shorten it, or use another model or the CPU."
            )
        batch = dict(zip(keys, vectors.astype(np.float32), strict=True))
        cache.put(batch)
        found |= batch
    return found
