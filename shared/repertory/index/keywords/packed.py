"""Tables from strings to rows, packed into a few arrays each.

Packed tables take a tenth of the memory of dictionaries, and are loaded from a snapshot unchanged.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import merge
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int32]
Offsets = NDArray[np.int64]
Arrays = Mapping[str, NDArray[Any]]

SORT_SIZE = 1_000_000  # rows that are sorted at once
HEAD, SKIPPED = 8, 16  # bytes of a head, and the interval of the strings whose heads are kept
ABOVE = b"\xff"  # above every character, because this byte does not occur in UTF-8


class Slices(NamedTuple):
    """Parts of a text: the text as UTF-8 bytes, and where each part starts and ends."""

    text: NDArray[np.uint8]
    starts: Offsets
    ends: Offsets


class Strings:
    """Sorted unique strings. A string's place is found by bisection.

    Args:
        text: All strings as UTF-8, one after the other.
        offsets: The start of each string, and the end of the last one.
    """

    def __init__(self, text: bytes, offsets: Offsets) -> None:
        self._text = text
        self.offsets = offsets
        self._offsets = numbers(offsets)

    @classmethod
    def of(cls, strings: Iterable[str]) -> Self:
        """Pack sorted strings."""
        return cls(*packed(map(encoded, strings)))

    @classmethod
    def merged(
        cls, parts: Sequence["Strings"], used: Sequence[NDArray[np.integer]]
    ) -> tuple[Self, list[NDArray[np.int64]]]:
        """Merge the used strings of several parts; ``used`` are their places, ascending.

        This makes no list of strings, because hundreds of thousands would fragment the heap.

        Returns:
            The strings, and for each part an array of the new places by the old ones. Only the
            values for used strings are meaningful.
        """

        def numbered(number: int) -> Iterator[tuple[bytes, int]]:
            return ((parts[number]._bytes(place), number) for place in numbers(used[number]))

        places = [array("q") for _ in parts]
        text, ends, last = bytearray(), array("q", [0]), None
        for string, number in merge(*map(numbered, range(len(parts)))):
            if string != last:
                text += string
                ends.append(len(text))
                last = string
            places[number].append(len(ends) - 2)
        moved = [np.zeros(len(part), np.int64) for part in parts]
        for new, mine, place in zip(moved, used, places, strict=True):
            new[mine] = place
        return cls(bytes(text), np.array(ends, np.int64)), moved

    @classmethod
    def from_arrays(cls, name: str, arrays: Arrays) -> Self:
        """The inverse of ``arrays``; KeyError if one is missing."""
        return cls(arrays[f"{name}.text"].tobytes(), arrays[f"{name}.offsets"])

    def arrays(self, name: str) -> Arrays:
        """Its arrays, with names that begin with a name."""
        return {f"{name}.text": self.text, f"{name}.offsets": self.offsets}

    @property
    def text(self) -> NDArray[np.uint8]:
        """All strings as an array of bytes."""
        return np.frombuffer(self._text, np.uint8)

    @property
    def slices(self) -> Slices:
        """The strings as parts of the text."""
        return Slices(self.text, self.offsets[:-1], self.offsets[1:])

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, place: int) -> str:
        return decoded(self._bytes(place))

    def __iter__(self) -> Iterator[str]:
        return map(self.__getitem__, range(len(self)))

    def find(self, string: str) -> int | None:
        """The place of a string; None if it is missing."""
        key = encoded(string)
        place = self._first(key)
        return place if place < len(self) and self._bytes(place) == key else None

    def beginning_with(self, prefix: str) -> range:
        """The places of the strings that begin with a prefix or equal it."""
        key = encoded(prefix)
        return range(self._first(key), self._first(key + ABOVE))

    def _first(self, key: bytes) -> int:
        """The place of the first string not less than a key. UTF-8 sorts like its characters."""
        head = int.from_bytes(key[:HEAD].ljust(HEAD, b"\0"), "big")
        heads, text, offsets = self._heads, self._text, self._offsets
        above = bisect_left(heads, head)
        low = max(0, above - 1) * SKIPPED
        if above < len(heads) and heads[above] == head:
            above = bisect_right(heads, head, above)
        high = min(above * SKIPPED, len(self))
        while low < high:
            middle = (low + high) // 2
            if text[offsets[middle] : offsets[middle + 1]] < key:
                low = middle + 1
            else:
                high = middle
        return low

    @cached_property
    def _heads(self) -> memoryview:
        """The heads of every ``SKIPPED``th string as numbers, which are faster to compare."""
        starts, ends = self.offsets[:-1:SKIPPED, None], self.offsets[1::SKIPPED, None]
        places = starts + np.arange(HEAD)
        text = np.append(self.text, np.zeros(HEAD, np.uint8))
        heads = np.where(places < ends, text[places], 0).astype(np.uint8)
        return numbers(heads.view(">u8").astype(np.uint64).ravel())

    def _bytes(self, place: int) -> bytes:
        return self._text[self._offsets[place] : self._offsets[place + 1]]


class Table:
    """A table from strings to rows.

    Args:
        keys: The strings.
        offsets: The rows of key ``k`` are ``rows[offsets[k]:offsets[k + 1]]``, ascending.
        rows: The rows of all keys.
    """

    def __init__(self, keys: Strings, offsets: Offsets, rows: Rows) -> None:
        self.keys = keys
        self.offsets = offsets
        self.rows = rows

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, int]]) -> Self:
        """Make a table from pairs of a key and a row; empty keys are left out."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for key, row in pairs:
            if key:
                found[key].append(row)
        keys = sorted(found)
        offsets = np.zeros(len(keys) + 1, np.int64)
        np.cumsum([len(found[key]) for key in keys], out=offsets[1:])
        rows = [row for key in keys for row in found[key]]
        return cls(Strings.of(keys), offsets, np.array(rows, np.int32))

    @classmethod
    def merged(
        cls, tables: Sequence["Table"], moved: Sequence[Rows]
    ) -> tuple[Self, NDArray[np.intp]]:
        """Merge tables.

        Args:
            tables: The tables.
            moved: For each table, the new row of each of its rows, or -1 to drop it.

        Returns:
            The merged table, and for each of its rows the place in the concatenated rows of the
            tables.
        """
        counts = [table._counts(new) for table, new in zip(tables, moved, strict=True)]
        used = [np.flatnonzero(count) for count in counts]
        keys, renumbered = Strings.merged([table.keys for table in tables], used)
        offsets = np.zeros(len(keys) + 1, np.int64)
        for count, mine, new in zip(counts, used, renumbered, strict=True):
            offsets[1 + new[mine]] += count[mine]
        np.cumsum(offsets, out=offsets)
        rows, places = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int64)
        starts = np.cumsum([0, *(len(table.rows) for table in tables)]).tolist()
        first = 0
        while first < len(keys):
            # Merge the keys in batches, because all at once need a multiple of the table's memory.
            last = max(
                first + 1, int(offsets.searchsorted(offsets[first] + SORT_SIZE, "right")) - 1
            )
            found = [
                table._between(first, last, new, mine, to, start)
                for table, new, mine, to, start in zip(
                    tables, moved, used, renumbered, starts[:-1], strict=True
                )
            ]
            of_keys, of_items, at = map(np.concatenate, zip(*found, strict=True))
            order = _order(of_keys, of_items)
            part = slice(offsets[first], offsets[last])
            rows[part], places[part] = of_items[order], at[order]
            first = last
        return cls(keys, offsets, rows), places

    @classmethod
    def arranged(
        cls, keys: Strings, numbers: NDArray[np.int64], rows: Rows
    ) -> tuple[Self, NDArray[np.intp]]:
        """Make a table from rows in any order; ``numbers`` has the number of each row's key.

        Returns:
            The table, and for each of its rows the place in ``rows``.
        """
        order = _order(numbers, rows)
        offsets = np.zeros(len(keys) + 1, np.int64)
        np.cumsum(np.bincount(numbers, minlength=len(keys)), out=offsets[1:])
        return cls(keys, offsets, rows[order]), order

    @classmethod
    def from_arrays(cls, name: str, arrays: Arrays) -> Self:
        """The inverse of ``arrays``; KeyError if one is missing."""
        keys = Strings.from_arrays(f"{name}.keys", arrays)
        return cls(keys, arrays[f"{name}.offsets"], arrays[f"{name}.rows"])

    def arrays(self, name: str) -> Arrays:
        """Its arrays, with names that begin with a name."""
        own: Arrays = {f"{name}.offsets": self.offsets, f"{name}.rows": self.rows}
        return {**self.keys.arrays(f"{name}.keys"), **own}

    def _counts(self, moved: Rows) -> NDArray[np.int64]:
        """How many rows each key keeps."""
        kept = np.zeros(len(self.rows) + 1, np.int64)
        np.cumsum(moved[self.rows] >= 0, out=kept[1:])
        return np.diff(kept[self.offsets])

    def _between(
        self,
        first: int,
        last: int,
        moved: Rows,
        used: NDArray[np.int64],
        renumbered: NDArray[np.int64],
        start: int,
    ) -> tuple[NDArray[np.int64], Rows, NDArray[np.int64]]:
        """The kept rows of this table under a range of keys of the merged table.

        Args:
            first: The first key of the range, as a number in the merged table.
            last: The key after the last one, also as a number in the merged table.
            moved: The new row of each row, or -1.
            used: The keys of this table that keep rows.
            renumbered: The numbers of this table's keys in the merged table.
            start: The place of this table's first row in the concatenated rows of all tables.

        Returns:
            For each kept row the number of its key in the merged table, the new row, and its place
            in the concatenated rows.
        """
        of_keys = used[slice(*renumbered[used].searchsorted([first, last]))]
        begin, end = (int(of_keys[0]), int(of_keys[-1]) + 1) if len(of_keys) else (0, 0)
        rows = moved[self.rows[self.offsets[begin] : self.offsets[end]]]
        numbers = np.repeat(renumbered[begin:end], np.diff(self.offsets[begin : end + 1]))
        kept = np.flatnonzero(rows >= 0)
        return numbers[kept], rows[kept], kept + (start + self.offsets[begin])

    def under(self, key: str) -> Rows:
        """The rows under a string."""
        place = self.keys.find(key)
        return self.rows[:0] if place is None else self.at(place)

    def at(self, place: int) -> Rows:
        """The rows under the string at a place."""
        return self.rows[self.offsets[place] : self.offsets[place + 1]]


def _order(numbers: NDArray[np.int64], rows: Rows) -> NDArray[np.intp]:
    """The order of rows by the numbers of their keys, then by row."""
    items = int(rows.max()) + 1 if len(rows) else 0
    # Merged rows are already sorted within each part, which makes a stable sort 20 times faster.
    return np.argsort(numbers * items + rows, kind="stable")


def numbers(offsets: NDArray[np.integer]) -> memoryview:
    """The numbers of an array as a memoryview, which is faster to read one by one."""
    return np.ascontiguousarray(offsets).data


def encoded(string: str) -> bytes:
    """A string as UTF-8, which sorts like its characters. Lone surrogates are kept."""
    return string.encode("utf-8", "surrogatepass")


def decoded(text: bytes) -> str:
    """The inverse of ``encoded``."""
    return text.decode("utf-8", "surrogatepass")


def packed(parts: Iterable[bytes]) -> tuple[bytes, Offsets]:
    """The concatenated bytes, and the start of each part and the end of the last one."""
    held = list(parts)
    offsets = np.zeros(len(held) + 1, np.int64)
    np.cumsum([len(part) for part in held], out=offsets[1:])
    return b"".join(held), offsets


def rearranged(arrays: Sequence[NDArray[Any]], moved: Sequence[Rows]) -> NDArray[Any]:
    """Merge arrays, with each value at the new place of its row; values at -1 are dropped."""
    kept = [new >= 0 for new in moved]
    found = np.empty(sum(map(np.count_nonzero, kept)), arrays[0].dtype)
    for values, new, left in zip(arrays, moved, kept, strict=True):
        found[new[left]] = values[left]
    return found
