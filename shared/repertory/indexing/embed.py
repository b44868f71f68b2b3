"""Embeds each text once: vectors are cached by content, and workers claim the texts they embed."""

import time
from collections.abc import Iterable, Mapping
from itertools import islice

import numpy as np

from repertory.coordination.claims import Claims
from repertory.embedding.engine import EmbeddingEngine
from repertory.errors import ModelError
from repertory.index.cache import Vector, VectorCache, vector_key

CLAIM_S = 15.0  # how long other workers leave a batch of texts to the worker that claimed it
POLL_INTERVAL_S = 0.05  # while another worker embeds the texts

Texts = Mapping[bytes, str]  # by the keys of their vectors
Vectors = dict[bytes, Vector]  # by key


def embed(
    texts: Iterable[str], engine: EmbeddingEngine, cache: VectorCache, claims: Claims
) -> tuple[Vectors, int]:
    """Look up the vectors of texts in the cache, and embed and cache the missing ones in batches.

    Texts that another worker has claimed are left to it until their vectors are in the cache, or
    its claim ends.

    Returns:
        The vectors by ``vector_key``, and the number of texts that this call has embedded.

    Raises:
        StoreError: The cache or the claims are unavailable.
        ModelError: The engine failed, or a vector is not finite.
    """
    # Texts of a batch have similar lengths.
    ordered = sorted(set(texts), key=len, reverse=True)
    missing = {vector_key(engine.model, text): text for text in ordered}
    vectors: Vectors = {}
    embedded = 0
    while missing:
        vectors |= cache.get([*missing])
        missing = _without(missing, vectors)
        found: Vectors = {}
        for start in range(0, len(missing), engine.batch):
            batch = dict(islice(missing.items(), start, start + engine.batch))
            some, number = _embed_unclaimed(batch, engine, cache, claims)
            found |= some
            embedded += number
        if missing and not found:
            time.sleep(POLL_INTERVAL_S)
        vectors |= found
        missing = _without(missing, found)
    return vectors, embedded


def _embed_unclaimed(
    batch: Texts, engine: EmbeddingEngine, cache: VectorCache, claims: Claims
) -> tuple[Vectors, int]:
    """The vectors of the texts that no other worker has claimed; see ``embed``."""
    claimed = claims.take([key.hex() for key in batch], CLAIM_S)
    try:
        ours = {key: text for key, text in batch.items() if key.hex() in claimed}
        # Another worker may have embedded some while this one did an earlier batch.
        vectors = cache.get([*ours])
        ours = _without(ours, vectors)
        if ours:
            new = _embed_batch(ours, engine)
            cache.put(new)
            vectors |= new
        return vectors, len(ours)
    finally:
        claims.release(claimed)


def _embed_batch(texts: Texts, engine: EmbeddingEngine) -> Vectors:
    vectors = engine.embed_texts([*texts.values()])
    if not np.isfinite(vectors).all():  # half precision may overflow
        raise ModelError(
            f"The model {engine.model.id} gave a vector that is not finite for one of "
            f"{len(texts)} texts; shorten it, or use another model or the CPU."
        )
    return dict(zip(texts, vectors.astype(np.float32), strict=True))


def _without(texts: Texts, vectors: Vectors) -> dict[bytes, str]:
    return {key: text for key, text in texts.items() if key not in vectors}
