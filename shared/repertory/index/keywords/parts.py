"""The parts of an index: each is a segment and which of its rows are live."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from repertory.catalogue.item import KEY_BYTES
from repertory.index.keywords.columns import Columns
from repertory.index.keywords.document import Entry
from repertory.index.keywords.name_tables import NameTables
from repertory.index.keywords.packed import Rows, Table, rearranged
from repertory.index.keywords.postings import Postings, Scores
from repertory.index.keywords.segment import KEY, Keys, Segment

RowPlaces = NDArray[np.intp] | slice


class Part:
    """A segment within an index: its first row there, and which of its rows are live.

    Args:
        segment: The segment.
        start: The index row of the segment's first row.
        alive: Which of its rows are live; None for all.
    """

    def __init__(
        self, segment: Segment, start: int = 0, alive: NDArray[np.bool_] | None = None
    ) -> None:
        self.segment = segment
        self.start = start
        self.alive = alive
        self.size = len(segment) if alive is None else int(np.count_nonzero(alive))

    def at(self, start: int) -> "Part":
        """This part with another first row."""
        return self if start == self.start else Part(self.segment, start, self.alive)

    def without(self, rows: NDArray[np.integer]) -> "Part":
        """This part without some of its segment's rows."""
        if not len(rows):
            return self
        alive = np.ones(len(self.segment), np.bool_) if self.alive is None else self.alive.copy()
        alive[rows] = False
        return Part(self.segment, self.start, alive)

    def live_rows(self) -> Rows:
        """The live rows of the segment."""
        if self.alive is None:
            return np.arange(len(self.segment), dtype=np.int32)
        return np.flatnonzero(self.alive).astype(np.int32)

    def rows(self, rows: Rows) -> Rows:
        """The index rows for rows of the segment, without removed ones."""
        if self.alive is not None:
            rows = rows[self.alive[rows]]
        return rows + np.int32(self.start)

    def beginning_with(self, prefix: str, table: Table) -> Iterator[str]:
        """The strings of a table of the segment that start with a prefix and have a live row.

        They are ordered by length in bytes, and read lazily because there may be many.
        """
        found = table.keys.beginning_with(prefix)
        places = np.arange(found.start, found.stop)
        if self.alive is not None and found:
            starts, end = table.offsets[places], table.offsets[found.stop]
            left = self.alive[table.rows[starts[0] : end]]
            places = places[np.logical_or.reduceat(left, starts - starts[0])]
        lengths = table.keys.offsets[places + 1] - table.keys.offsets[places]
        return map(table.keys.__getitem__, places[np.argsort(lengths, kind="stable")].tolist())

    def has_term(self, term: str) -> bool:
        """Whether a live item contains a term."""
        postings = self.segment.postings
        start, end = postings.span(term)
        # A frequent term is usually in more items than were removed, so a live item has it.
        if self.alive is None or start == end or end - start > len(self.segment) - self.size:
            return start < end
        return bool(self.alive[postings.rows[start:end]].any())

    def frequency(self, term: str) -> int:
        """How many live items contain a term."""
        postings = self.segment.postings
        start, end = postings.span(term)
        if self.alive is None or start == end:
            return end - start
        return int(np.count_nonzero(self.alive[postings.rows[start:end]]))

    def of_term(self, term: str) -> tuple[Rows, Scores]:
        """The index rows that contain a term, ascending, and its weight in each."""
        rows, weights = self.segment.postings.of_term(term)
        if self.alive is not None:
            is_left = self.alive[rows]
            rows, weights = rows[is_left], weights[is_left]
        return rows + np.int32(self.start), weights

    def places_of(self, keys: Keys) -> tuple[NDArray[np.intp], Rows]:
        """The positions of the keys that belong to live items, and the segment's row of each."""
        segment = self.segment
        if not len(segment):
            return np.zeros(0, np.intp), np.zeros(0, np.int32)
        at = np.minimum(segment.sorted_keys.searchsorted(keys), len(segment) - 1)
        places = np.flatnonzero(segment.sorted_keys[at] == keys)
        rows = segment.by_key[at[places]]
        if self.alive is not None:
            is_left = self.alive[rows]
            places, rows = places[is_left], rows[is_left]
        return places, rows


def merged(parts: Sequence[Part]) -> Segment:
    """The live items of some parts as one segment.

    Arrays are merged directly, because objects for all of the items would fragment the heap.
    """
    segments = [part.segment for part in parts]
    kept = [(at, row) for at, part in enumerate(parts) for row in part.live_rows().tolist()]
    ids = [segments[at].id_of(row) for at, row in kept]
    moved = [np.full(len(segment), -1, np.int32) for segment in segments]
    text, offsets = bytearray(), np.zeros(len(kept) + 1, np.int64)
    for new, place in enumerate(sorted(range(len(kept)), key=ids.__getitem__)):
        at, row = kept[place]
        text += segments[at].stored(row)
        offsets[new + 1] = len(text)
        moved[at][row] = new
    policies = [new[segment.policies] for segment, new in zip(segments, moved, strict=True)]
    with_policy = np.sort(np.concatenate(policies))
    return Segment(
        entries=memoryview(bytes(text)),
        offsets=offsets,
        keys=rearranged([segment.keys for segment in segments], moved),
        policies=with_policy[with_policy >= 0],
        postings=Postings.merged([one.postings for one in segments], moved),
        names=NameTables.merged([one.names for one in segments], moved),
        columns=Columns.merged([one.columns for one in segments], moved),
    )


def as_keys(keys: Sequence[int]) -> Keys:
    """Keys of items as an array."""
    return np.frombuffer(b"".join([key.to_bytes(KEY_BYTES, "big") for key in keys]), KEY)


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
