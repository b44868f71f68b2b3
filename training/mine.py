"""Hard negatives: items that the base model, or their server, puts near the right one.

For each query up to ``CHOICES`` of both kinds: the items of other servers that the base model ranks
best, and the siblings on the same server, the nearest first. An item that is nearly the same as the
right one (cosine of their texts) may answer the query too, and is left out.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from training.dataset import Item, Query

CHOICES = 6
SAME = 0.86  # cosine of two items' texts from which both may answer
EQUAL = 0.97  # the same on one server, whose tools differ by little
Vectors = NDArray[np.float32]


def mine(
    queries: Sequence[Query], vectors: Vectors, items: dict[str, Item], texts: Vectors
) -> list[tuple[list[int], list[int]]]:
    """The hard negatives of each query.

    Args:
        queries: The queries.
        vectors: Of the queries, by the base model, of unit length.
        items: The items by id, in the order of ``texts``.
        texts: The vectors of the items.

    Returns:
        For each query the places of items: of other servers, and siblings.
    """
    place = {item: number for number, item in enumerate(items)}
    servers: defaultdict[str, list[int]] = defaultdict(list)
    server_of = [_server(item) for item in items.values()]
    for number, server in enumerate(server_of):
        servers[server].append(number)
    alike = texts @ texts.T
    found = []
    for query, vector in zip(queries, vectors, strict=True):
        right = place[query.item]
        near = alike[right]
        scores = texts @ vector
        best = np.argsort(-scores)[:80]
        others = [
            int(one) for one in best if near[one] < SAME and server_of[one] != server_of[right]
        ]
        own = servers[server_of[right]]
        siblings = [one for one in own if near[one] < EQUAL and one != right]
        siblings.sort(key=lambda one: -scores[one])
        found.append((others[:CHOICES], siblings[:CHOICES]))
    return found


def _server(item: Item) -> str:
    """What an item belongs to: its server, or the repository of a skill."""
    return item.server or item.provenance.partition("@")[0]
