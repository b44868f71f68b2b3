"""Pages of an index by id: the rows of each segment are in this order, so nothing is sorted."""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice

from repertory.index.keywords.document import Entry
from repertory.index.keywords.part import Part
from repertory.index.vectors import Filter

Page = tuple[list[Entry], int]


def page_of(parts: Sequence[Part], where: Filter, limit: int, offset: int, after: str) -> Page:
    """The entries of a page, and how many all pages have.

    It reads a few ids of each part to find where the page begins, and then its own entries.

    Args:
        parts: The parts of an index; no id is in two of them.
        where: Which items are listed.
        limit: How many at most.
        offset: How many are left out before.
        after: The id that the page comes after; empty for the first one.
    """
    runs = [_Run(part, where) for part in parts]
    begins = [bisect_right(run, after) for run in runs] if after else [0 for _ in runs]
    total = sum(map(len, runs))
    first = min(sum(begins) + offset, total)
    left = heapq.merge(
        *(run.pairs(begin) for run, begin in zip(runs, _places(runs, first), strict=True))
    )
    return [part.segment.entry(row) for _, _, part, row in islice(left, limit)], total


class _Run(Sequence[str]):
    """The ids of a part's items that a filter allows, in order."""

    def __init__(self, part: Part, where: Filter) -> None:
        self._part = part
        self._rows = part.left()
        if where:
            self._rows = self._rows[part.segment.columns.allowed(self._rows, where)]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: int) -> str:  # type: ignore[override]  # slices are not needed
        return self._part.segment.id_of(int(self._rows[place]))

    def pairs(self, begin: int) -> Iterator[tuple[str, int, Part, int]]:
        """The id, a number of the part, the part and the row of each item from a place on."""
        for place in range(begin, len(self)):
            yield self[place], self._part.start, self._part, int(self._rows[place])


def _places(runs: Sequence[_Run], number: int) -> list[int]:
    """How many items of each run are among the first ones of all, by bisection."""
    low, high = [0 for _ in runs], [len(run) for run in runs]
    while low != high:
        widest = max(range(len(runs)), key=lambda one: high[one] - low[one])
        middle = (low[widest] + high[widest]) // 2
        pivot = runs[widest][middle]
        below = [bisect_left(run, pivot, *ends) for run, *ends in zip(runs, low, high, strict=True)]
        if sum(below) >= number:
            high = below
        else:  # the pivot is one of the first, too
            low = below
            low[widest] = middle + 1
    return low
