"""Total scores of the rows that a query matches, at a cost proportional to these rows only."""

import threading
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from repertory.index.keywords.packed import Rows
from repertory.index.keywords.postings import Scores

_thread = threading.local()


class Totals(NamedTuple):
    """The totals of some rows.

    Attributes:
        rows: The rows, unordered; a row may occur several times.
        values: The total of each row.
        times: The maximum number of times that a row occurs.
    """

    rows: Rows
    values: Scores
    times: int

    @classmethod
    def of(cls, read: Sequence[tuple[Rows, Scores]], size: int, total: np.ufunc = np.add) -> Self:
        """Total the scores of rows.

        Args:
            read: Arrays of distinct rows, each with their scores, which are above 0.
            size: The number of rows of the index.
            total: Combines a score with a total: the sum or the maximum.
        """
        if not read:
            return cls(np.zeros(0, np.int32), np.zeros(0, np.float32), 0)
        totals = _zeros(size)
        for rows, scores in read:
            totals[rows] = total(totals[rows], scores)
        rows = np.concatenate([rows for rows, _ in read])
        values = totals[rows]
        totals[rows] = 0
        _thread.zeros = totals
        return cls(rows, values, len(read))

    def highest(self, count: int) -> "Totals":
        """The ``count`` rows with the highest totals above 0, and any that tie with the last.

        The rows are distinct and ascending.
        """
        held = _are_highest(self.values, count * self.times)
        rows, places = np.unique(self.rows[held], return_index=True)
        values = self.values[held][places]
        highest = _are_highest(values, count)
        return Totals(rows[highest], values[highest], 1)


def _zeros(size: int) -> Scores:
    """A zero for each row, in memory that this thread reuses.

    With a million rows, most of a query's time was spent on new memory pages, each for a few bytes.
    After an exception the array is not reused, because it may contain values other than 0.
    """
    found: Scores | None = _thread.__dict__.pop("zeros", None)
    return np.zeros(size, np.float32) if found is None or len(found) < size else found


def _are_highest(values: Scores, count: int) -> NDArray[np.bool_]:
    if len(values) <= count:
        return values > 0
    least = np.partition(values, -count)[-count]
    highest: NDArray[np.bool_] = (values >= least) & (values > 0)
    return highest
