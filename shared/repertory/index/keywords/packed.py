"""Strings and the rows that are found under them, packed: each table is a few arrays.

Packed tables take a tenth of the memory of dictionaries and are read from a snapshot as they are.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

Rows = NDArray[np.int32]
Offsets = NDArray[np.int64]
Arrays = Mapping[str, NDArray[Any]]

ABOVE = b"\xff"  # no character has this byte in UTF-8


class Strings(Sequence[str]):
    """Sorted strings, each once. A string's place is found by bisection.

    Args:
        text: All of them as UTF-8.
        offsets: Where each begins, and the end of the last one.
    """

    def __init__(self, text: bytes, offsets: Offsets) -> None:
        self._text = text
        self.offsets = offsets
        self._offsets = numbers(offsets)

    @classmethod
    def of(cls, strings: Iterable[str]) -> Self:
        """Pack sorted strings."""
        return cls(*packed(map(encoded, strings)))

    @property
    def text(self) -> NDArray[np.uint8]:
        """All of them as an array of bytes."""
        return np.frombuffer(self._text, np.uint8)

    @override
    def __len__(self) -> int:
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    @override
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        return decoded(self._bytes(place))

    def find(self, string: str) -> int | None:
        """The place of a string; None if it is missing."""
        key = encoded(string)
        place = self._first(key)
        return place if place < len(self) and self._bytes(place) == key else None

    def beginning_with(self, prefix: str) -> range:
        """The places of the strings that begin with a prefix, which may be one of them."""
        key = encoded(prefix)
        return range(self._first(key), self._first(key + ABOVE))

    def _first(self, key: bytes) -> int:
        """The place of the first string that is not less: UTF-8 sorts as characters do."""
        low, high = 0, len(self)
        text, offsets = self._text, self._offsets
        while low < high:
            middle = (low + high) // 2
            if text[offsets[middle] : offsets[middle + 1]] < key:
                low = middle + 1
            else:
                high = middle
        return low

    def _bytes(self, place: int) -> bytes:
        return self._text[self._offsets[place] : self._offsets[place + 1]]


class Table:
    """The rows under each of some strings.

    Args:
        keys: The strings.
        offsets: The rows of key ``k`` are ``rows[offsets[k]:offsets[k + 1]]``, ascending.
        rows: All of them.
    """

    def __init__(self, keys: Strings, offsets: Offsets, rows: Rows) -> None:
        self.keys = keys
        self.offsets = offsets
        self.rows = rows

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, int]]) -> Self:
        """The table of some keys with a row each; empty keys are left out."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for key, row in pairs:
            if key:
                found[key].append(row)
        keys = sorted(found)
        offsets = np.zeros(len(keys) + 1, np.int64)
        np.cumsum([len(found[key]) for key in keys], out=offsets[1:])
        rows = [row for key in keys for row in found[key]]
        return cls(Strings.of(keys), offsets, np.array(rows, np.int32))

    def under(self, key: str) -> Rows:
        """The rows under a string."""
        place = self.keys.find(key)
        return self.rows[:0] if place is None else self.at(place)

    def at(self, place: int) -> Rows:
        """The rows under the string at a place."""
        return self.rows[self.offsets[place] : self.offsets[place + 1]]


def numbers(offsets: Offsets) -> memoryview:
    """The numbers of an array as plain ones, which are quicker to read one by one."""
    return np.ascontiguousarray(offsets).data


def encoded(string: str) -> bytes:
    """A string as UTF-8, which sorts as its characters do; with lone surrogates, if it has any."""
    return string.encode("utf-8", "surrogatepass")


def decoded(text: bytes) -> str:
    """The string that ``encoded`` was given."""
    return text.decode("utf-8", "surrogatepass")


def packed(parts: Iterable[bytes]) -> tuple[bytes, Offsets]:
    """Bytes one after the other, with the place where each begins and the end of the last one."""
    held = list(parts)
    offsets = np.zeros(len(held) + 1, np.int64)
    np.cumsum([len(part) for part in held], out=offsets[1:])
    return b"".join(held), offsets


def named(name: str, arrays: Arrays) -> Iterator[tuple[str, NDArray[Any]]]:
    """Some arrays under names that begin with the name of what they are a part of."""
    for part, array in arrays.items():
        yield f"{name}.{part}", array


def arrays_of(what: Strings | Table) -> dict[str, NDArray[Any]]:
    """What is packed, as arrays by name."""
    if isinstance(what, Strings):
        return {"text": what.text, "offsets": what.offsets}
    return {**dict(named("keys", arrays_of(what.keys))), "offsets": what.offsets, "rows": what.rows}
