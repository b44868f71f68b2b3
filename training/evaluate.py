"""nDCG@10 of an encoder without the search around it: cosines of queries and whole items."""

from collections.abc import Sequence
from math import log2
from typing import cast
from zlib import crc32

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch.nn import Module

from repertory.index.keywords.query_words import plain
from training.dataset import Item, Query

CUT = 10


def transformer_of(model: SentenceTransformer) -> Module:
    """The transformer of a sentence encoder, without pooling."""
    return cast("Module", model[0].auto_model)


def ndcg(model: SentenceTransformer, asked: Sequence[Query], of: dict[str, Item]) -> float:
    """The mean nDCG@10, 0…100, of queries among their items and a fourth of the other items.

    The ids decide which ones, so neither the order nor the number of the items does.
    """
    right = {query.item for query in asked}
    pool = [item for item in of.values() if item.id in right or not crc32(item.id.encode()) % 4]
    with torch.autocast(model.device.type, torch.bfloat16):
        texts = model.encode(
            [item.texts()[0] for item in pool], batch_size=16, normalize_embeddings=True
        )
        vectors = model.encode(
            [plain(query.text) for query in asked], batch_size=16, normalize_embeddings=True
        )
    place = {item.id: number for number, item in enumerate(pool)}
    gains = []
    for query, scores in zip(asked, np.asarray(vectors) @ np.asarray(texts).T, strict=True):
        rank = int((scores > scores[place[query.item]]).sum()) + 1
        gains.append(1 / log2(rank + 1) if rank <= CUT else 0.0)
    return 100 * float(np.mean(gains))
