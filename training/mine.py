"""Hard negatives: wrong items that the current encoder ranks high, or that share the server.

A query gets up to ``CHOICES`` negatives of each kind: the best ranked items of other servers, and
the best ranked siblings on the right item's server. Items that are nearly the same as the right one
are excluded because they may answer the query too. Items that are not used in training are excluded
as well.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from training.dataset import Item, Part

CHOICES = 6
SAME = 0.88  # minimum cosine at which two items may answer the same query
EQUAL = 0.97  # the same for two items of one server, whose texts are often similar
NEAREST = 80  # the nearest items, from which items of other servers are chosen
BLOCK = 1_000  # queries that are compared with all items at once
Vectors = NDArray[np.float32]
Pairs = NDArray[np.bool_]


def alike(items: Sequence[Item], texts: Vectors) -> Pairs:
    """Find the pairs of items that are nearly the same, so that both may answer a query.

    Args:
        items: All items.
        texts: The unit vectors of the items from the base model.

    Returns:
        Whether two items are nearly the same; shape ``(items, items)``.
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
        vectors: The unit vectors of the queries from the current encoder.
        right: The index of each query's item.
        items: All items.
        texts: The unit vectors of the items from the current encoder.
        same: The result of ``alike``.

    Returns:
        The indices of items of other servers, and of siblings, by query. If one kind is missing,
        the other kind replaces it.
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
