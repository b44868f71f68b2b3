"""The nearest points of a collection down to a score, for searches without a fixed limit."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from repertory.index.vectors import Collection, Filter, Match

if TYPE_CHECKING:  # as in ``vectors``
    import numpy as np
    from numpy.typing import NDArray


def nearest(
    collection: Collection,
    vector: "NDArray[np.float32]",
    limit: int,
    is_enough: Callable[[Sequence[Match]], bool],
    where: Filter | None = None,
) -> list[Match]:
    """Search with a growing limit until the matches are enough or complete.

    Args:
        collection: The points.
        vector: Unit length.
        limit: The first limit, at least 1.
        is_enough: Whether a full list of matches, best first, goes far enough.
        where: Filters the points.
    """
    while True:
        matches = collection.search(vector, limit, where)
        if len(matches) < limit or is_enough(matches):
            return matches
        limit *= 4
