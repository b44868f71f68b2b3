"""Hard negatives: items that the current encoder, or their server, puts near the right one.

For each query up to ``CHOICES`` of both kinds: the items of other servers that the encoder ranks
best, and the siblings on the same server, the nearest first. An item that is nearly the same as the
right one may answer the query too, and is left out. So is what is not trained on.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from training.dataset import Item, Part

CHOICES = 6
SAME = 0.88  # cosine of two items' texts from which both may answer
EQUAL = 0.97  # the same on one server, whose tools differ by little
NEAREST = 80  # items among which the others are chosen
BLOCK = 1_000  # queries that are compared with all items at once
Vectors = NDArray[np.float32]
Pairs = NDArray[np.bool_]


def alike(items: Sequence[Item], texts: Vectors) -> Pairs:
    """Which items are nearly the same, so that both may answer a query.

    Args:
        items: All items.
        texts: Their vectors by the base model, of unit length.

    Returns:
        A matrix of all pairs: shape ``(items, items)``.
    """
    _, group = np.unique([item.group for item in items], return_inverse=True)
    limit = np.where(group[:, None] == group, np.float32(EQUAL), np.float32(SAME))
    found: Pairs = texts @ texts.T >= limit
    return found


def mine(
    vectors: Vectors, right: Sequence[int], items: Sequence[Item], texts: Vectors, same: Pairs
) -> list[tuple[list[int], list[int]]]:
    """The hard negatives of each query.

    Args:
        vectors: Of the queries, by the current encoder, of unit length.
        right: The place of each query's item.
        items: All items.
        texts: Their vectors.
        same: Which of them are alike.

    Returns:
        For each query the places of items: of other servers, and siblings. If one kind is
        missing, the other takes its place.
    """
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(items):
        if item.part is Part.TRAIN:
            groups[item.group].append(place)
    found = []
    for start in range(0, len(right), BLOCK):
        block = right[start : start + BLOCK]
        scores = vectors[start : start + BLOCK] @ texts.T
        best = np.argpartition(-scores, NEAREST)[:, :NEAREST]
        for row, own in enumerate(block):
            likely = best[row][np.argsort(-scores[row, best[row]])].tolist()
            others = [
                place
                for place in likely
                if not same[own, place]
                and items[place].group != items[own].group
                and items[place].part is Part.TRAIN
            ]
            group = groups[items[own].group]
            siblings = [place for place in group if not same[own, place]]
            siblings.sort(key=(-scores[row]).__getitem__)
            found.append(((others or siblings)[:CHOICES], (siblings or others)[:CHOICES]))
    return found
