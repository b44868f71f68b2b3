"""Finds strings one edit away from a typed one, at a cost that hardly grows with their number.

One edit is a character dropped, added, replaced, or swapped with its neighbour. It leaves either
the first or the last half of a string unchanged, if a middle character is excluded. So the strings
of each length are sorted twice, forwards and backwards. A lookup reads six ranges and measures the
distance to each string there.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import AnyStr

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import OSA

from repertory.index.keywords.packed import ABOVE, Slices, decoded, encoded

MIN_LENGTH = 4  # characters; one edit of a shorter word gives too many other words
MAX_WIDTH = 2**16 - 1  # bytes; longer strings are ignored
NUMBER = 8  # bytes

Sorted = NDArray[np.bytes_]  # UTF-8, which takes a quarter of the memory of NumPy's strings
Bytes = NDArray[np.uint8]  # strings of one width, shape (strings, width)


class OneEdit:
    """Finds the strings within one edit of a given one (optimal string alignment distance).

    A query shorter than ``min_length`` finds nothing.
    """

    def __init__(self, tables: Iterable[Slices], min_length: int = MIN_LENGTH) -> None:
        self._min_length = min_length
        self._sorted: defaultdict[int, list[tuple[Sorted, Sorted]]] = defaultdict(list)
        for strings in tables:
            for length, held in _by_length(strings):
                backwards = _put_in_order(_reversed(held, length))
                self._sorted[length].append((_sorted(held), backwards))

    def near(self, typed: str) -> list[str]:
        """The strings exactly one edit away, sorted; empty for a very short one."""
        if len(typed) < self._min_length:
            return []
        found: set[str] = set()
        backwards = typed[::-1]
        for length in (len(typed) - 1, len(typed), len(typed) + 1):
            for forward, backward in self._sorted.get(length, ()):
                found.update(_near(forward, typed, length))
                found.update(one[::-1] for one in _near(backward, backwards, length))
        return sorted(found)


def _by_length(strings: Slices) -> Iterator[tuple[int, Bytes]]:
    """The non-empty strings, grouped by length in characters and width in bytes."""
    widths = strings.ends - strings.starts
    widths = np.where(widths <= MAX_WIDTH, widths, 0).astype(np.uint16)  # allows a radix sort
    counts = np.bincount(widths)
    by_width = np.argsort(widths, kind="stable")
    ends = np.cumsum(counts)
    for width in (np.flatnonzero(counts[1:]) + 1).tolist():
        places = by_width[ends[width] - counts[width] : ends[width]]
        held = sliding_window_view(strings.text, width)[strings.starts[places]]
        continued = held & 0xC0 == 0x80  # the bytes that continue a character
        if not continued.any():
            yield width, held
            continue
        lengths = width - np.count_nonzero(continued, axis=1)
        for length in np.flatnonzero(np.bincount(lengths)[1:]) + 1:
            yield int(length), held[lengths == length]


def _reversed(strings: Bytes, length: int) -> Bytes:
    """Strings of one length backwards, character by character."""
    width = strings.shape[1]
    if width == length:
        return strings[:, ::-1]
    text = b"".join([encoded(decoded(one.tobytes())[::-1]) for one in strings])
    return np.frombuffer(text, np.uint8).reshape(-1, width)


def _sorted(strings: Bytes) -> Sorted:
    """Sort strings that are nearly in order, which is fast."""
    return np.sort(_joined(strings), kind="stable")


def _put_in_order(strings: Bytes) -> Sorted:
    """Sort strings in any order. They are compared as numbers of eight bytes, which is faster."""
    count, width = strings.shape
    padded = np.zeros((count, -(-width // NUMBER) * NUMBER), np.uint8)
    padded[:, :width] = strings
    numbers = padded.view(">u8").astype(np.uint64)
    return _joined(strings[np.lexsort(numbers.T[::-1])])


def _joined(strings: Bytes) -> Sorted:
    return np.ascontiguousarray(strings).view(f"S{strings.shape[1]}").ravel()


def _near(strings: Sorted, typed: str, length: int) -> list[str]:
    """The strings one edit away that begin with the first half of the typed one."""
    first = encoded(typed[: (length - 1) // 2])
    start, end = bisect_left(strings, first), bisect_left(strings, first + ABOVE)
    if start == end:  # the usual case for a small segment
        return []
    begun = strings[start:end].tolist()
    if typed.isascii() and strings.itemsize == length:  # all are ASCII
        return [*map(decoded, _one_edit_away(encoded(typed), begun))]
    return _one_edit_away(typed, [*map(decoded, begun)])


def _one_edit_away(typed: AnyStr, strings: Sequence[AnyStr]) -> list[AnyStr]:
    found = process.extract(typed, strings, scorer=OSA.distance, score_cutoff=1, limit=None)
    return [string for string, distance, _ in found if distance]
