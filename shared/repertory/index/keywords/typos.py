"""Strings one edit away from a typed one, at a cost that hardly grows with their number.

One edit (a character dropped, added, replaced, or swapped with its neighbour) leaves either the
first or the last part of a string as it was, if a character stands between the two parts. So the
strings of each length are sorted twice, as they are and backwards; a lookup reads six ranges of
them and measures the distance to each string there.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import AnyStr

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import OSA

from repertory.index.keywords.packed import ABOVE, decoded, encoded

MIN_LENGTH = 4  # characters; one edit in a shorter word makes too many other words

Sorted = NDArray[np.bytes_]  # UTF-8, which takes a quarter of what numpy's own strings take


class OneEdit:
    """Finds the strings within one edit of a given one (optimal string alignment distance).

    A query shorter than ``min_length`` finds nothing.
    """

    def __init__(self, strings: Iterable[str], min_length: int = MIN_LENGTH) -> None:
        self._min_length = min_length
        # By characters and bytes. No list of strings: it would leave holes in the memory.
        text: defaultdict[tuple[int, int], tuple[bytearray, bytearray]]
        text = defaultdict(lambda: (bytearray(), bytearray()))
        for string in strings:
            forward = encoded(string)
            both = text[len(string), len(forward)]
            both[0].extend(forward)
            both[1].extend(encoded(string[::-1]))
        self._sorted: defaultdict[int, list[tuple[Sorted, Sorted]]] = defaultdict(list)
        for (length, width), (onward, reverse) in text.items():
            if length:
                self._sorted[length].append((_sorted(onward, width), _sorted(reverse, width)))

    def near(self, typed: str) -> list[str]:
        """The strings exactly one edit away, sorted; none for a very short one."""
        if len(typed) < self._min_length:
            return []
        found: set[str] = set()
        backwards = typed[::-1]
        for length in (len(typed) - 1, len(typed), len(typed) + 1):
            part = (length - 1) // 2
            for forward, backward in self._sorted.get(length, ()):
                found.update(_near(forward, typed, part))
                found.update(one[::-1] for one in _near(backward, backwards, part))
        return sorted(found)


def _sorted(text: bytearray, width: int) -> Sorted:
    return np.unique(np.frombuffer(text, f"S{width}"))


def _near(strings: Sorted, typed: str, part: int) -> list[str]:
    """The strings one edit away that begin with as many characters of the typed one."""
    first = encoded(typed[:part])
    begun = strings[bisect_left(strings, first) : bisect_left(strings, first + ABOVE)].tolist()
    if typed.isascii() and b"".join(begun).isascii():  # their bytes are their characters
        return [*map(decoded, _one_edit_away(encoded(typed), begun))]
    return _one_edit_away(typed, [*map(decoded, begun)])


def _one_edit_away(typed: AnyStr, strings: Sequence[AnyStr]) -> list[AnyStr]:
    found = process.extract(typed, strings, scorer=OSA.distance, score_cutoff=1, limit=None)
    return [string for string, distance, _ in found if distance]
