"""Pages of an index by id. Nothing is sorted, because the rows of segments are in this order."""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice

from repertory.index.keywords.document import Entry
from repertory.index.keywords.parts import Part
from repertory.index.vectors import Filter

Page = tuple[list[Entry], int]


def page_of(parts: Sequence[Part], where: Filter, limit: int, offset: int, after: str) -> Page:
    """The entries of a page, and the total number of entries.

    A few ids of each part are read to find where the page begins, then only its entries.

    Args:
        parts: The parts of an index; no id is in two of them.
        where: Which items are listed.
        limit: The maximum number of entries.
        offset: The number of entries to skip.
        after: The id after which the page begins; empty for the first page.
    """
    runs = [_Run(part, where) for part in parts]
    begins = [bisect_right(run, after) for run in runs] if after else [0 for _ in runs]
    total = sum(map(len, runs))
    first = min(sum(begins) + offset, total)
    left = heapq.merge(
        *(run.pairs(begin) for run, begin in zip(runs, _places(runs, first), strict=True))
    )
    return [part.segment.entry(row) for _, _, part, row in islice(left, limit)], total


class _Run:
    """The ids of a part's items that a filter allows, in order."""

    def __init__(self, part: Part, where: Filter) -> None:
        self._part = part
        self._rows = part.live_rows()
        if where:
            self._rows = self._rows[part.segment.columns.allowed(self._rows, where)]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: int) -> str:
        return self._part.segment.id_of(int(self._rows[place]))

    def pairs(self, begin: int) -> Iterator[tuple[str, int, Part, int]]:
        """The items from a place on, as (id, the part's start, part, row)."""
        for place in range(begin, len(self)):
            yield self[place], self._part.start, self._part, int(self._rows[place])


def _places(runs: Sequence[_Run], number: int) -> list[int]:
    """How many items of each run are among the first ``number`` items of all, by bisection."""
    low, high = [0 for _ in runs], [len(run) for run in runs]
    while low != high:
        widest = max(range(len(runs)), key=lambda one: high[one] - low[one])
        middle = (low[widest] + high[widest]) // 2
        pivot = runs[widest][middle]
        below = [bisect_left(run, pivot, *ends) for run, *ends in zip(runs, low, high, strict=True)]
        if sum(below) >= number:
            high = below
        else:  # the pivot is also among the first items
            low = below
            low[widest] = middle + 1
    return low
