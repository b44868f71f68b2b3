"""The third stage: vectors for texts, from the cache where it has them, from the engine else."""

from collections.abc import Callable, Iterable

import numpy as np

from repertory.embedding.engine import EmbeddingEngine
from repertory.errors import ModelError
from repertory.index.cache import VectorCache, vector_key


def embed_missing(
    texts: Iterable[str],
    engine: EmbeddingEngine,
    cache: VectorCache,
    progress: Callable[[int, int], None],
) -> int:
    """Embed the texts whose vectors the cache lacks, and put them there.

    Texts of like length are embedded together, the longest first, so that the rest of the time
    can only be overestimated. A crash costs one batch.

    Args:
        texts: Repeats are embedded once.
        engine: Embeds them.
        cache: Keeps the vectors.
        progress: Called with how many were just embedded, and how many there are in all.

    Returns:
        How many were embedded.

    Raises:
        ModelError: The engine failed, or gave what is no vector.
    """
    keys = {vector_key(engine.model, text): text for text in texts}
    known = cache.get(list(keys))
    missing = sorted(
        ((key, text) for key, text in keys.items() if key not in known),
        key=lambda pair: (-len(pair[1]), pair[0]),
    )
    for start in range(0, len(missing), engine.batch):
        chunk = missing[start : start + engine.batch]
        vectors = engine.embed_texts(
            [text for _, text in chunk], lambda done: progress(done, len(missing))
        )
        if not np.isfinite(vectors).all():  # as half precision may when numbers grow too large
            raise ModelError(
                f"The model {engine.model.id} gave what is no number for one of {len(chunk)} "
                "texts; shorten it, or use another model or the CPU."
            )
        cache.put({key: vector for (key, _), vector in zip(chunk, vectors, strict=True)})
    return len(missing)
