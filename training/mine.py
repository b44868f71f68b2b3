"""Hard negatives: items that the base model, or their server, puts near the right one.

For each query up to ``CHOICES`` of both kinds: the items of other servers that the base model ranks
best, and the siblings on the same server, the nearest first. An item that is nearly the same as the
right one (cosine of their texts) may answer the query too, and is left out. So is what is not
trained on.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from training.dataset import Item, Part

CHOICES = 6
SAME = 0.86  # cosine of two items' texts from which both may answer
EQUAL = 0.97  # the same on one server, whose tools differ by little
NEAREST = 80  # items among which the others are chosen
BLOCK = 1_000  # queries that are compared with all items at once
Vectors = NDArray[np.float32]


def mine(
    vectors: Vectors, right: Sequence[int], items: Sequence[Item], texts: Vectors
) -> list[tuple[list[int], list[int]]]:
    """The hard negatives of each query.

    Args:
        vectors: Of the queries, by the base model, of unit length.
        right: The place of each query's item.
        items: All items.
        texts: Their vectors.

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
        scores, near = vectors[start : start + BLOCK] @ texts.T, texts[block] @ texts.T
        best = np.argpartition(-scores, NEAREST)[:, :NEAREST]
        for row, own in enumerate(block):
            likely = best[row][np.argsort(-scores[row, best[row]])].tolist()
            others = [
                place
                for place in likely
                if near[row, place] < SAME
                and items[place].group != items[own].group
                and items[place].part is Part.TRAIN
            ]
            group = groups[items[own].group]
            siblings = [place for place in group if near[row, place] < EQUAL and place != own]
            siblings.sort(key=(-scores[row]).__getitem__)
            found.append(((others or siblings)[:CHOICES], (siblings or others)[:CHOICES]))
    return found
