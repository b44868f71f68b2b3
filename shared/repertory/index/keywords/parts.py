"""The consecutive parts of an index, and the part that contains a row."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from repertory.index.keywords.document import Entry
from repertory.index.keywords.part import Part

RowPlaces = NDArray[np.intp] | slice


class Parts:
    """The consecutive parts of an index, without empty ones.

    Attributes:
        all: The parts, each with its first row set.
        rows: A bound above every row.
    """

    def __init__(self, parts: Iterable[Part]) -> None:
        self.all: list[Part] = []
        self.rows = 0
        for part in parts:
            if part.size:
                self.all.append(part.at(self.rows))
                self.rows += len(part.segment)
        self._starts = np.array([part.start for part in self.all], np.int64)

    def of(self, row: int) -> Part:
        """The part that contains a row."""
        one = len(self.all) == 1
        return self.all[0 if one else int(self._starts.searchsorted(row, "right")) - 1]

    def entry(self, row: int) -> Entry:
        """The entry of a row."""
        part = self.of(row)
        return part.segment.entry(row - part.start)

    def divided(self, rows: NDArray[np.integer]) -> Sequence[tuple[Part, RowPlaces]]:
        """The parts that contain some rows, each with the positions of its rows among them."""
        if len(self.all) == 1:
            return [(self.all[0], slice(None))]
        numbers = self._starts.searchsorted(rows, "right") - 1
        places = [np.flatnonzero(numbers == number) for number in range(len(self.all))]
        return [(part, own) for part, own in zip(self.all, places, strict=True) if len(own)]
