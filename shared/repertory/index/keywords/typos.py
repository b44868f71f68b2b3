"""Strings one edit away from a typed one, at a cost that hardly grows with their number.

One edit (a character dropped, added, replaced, or swapped with its neighbour) leaves either the
first or the last part of a string as it was, if a character stands between the two parts. So the
strings of each length are sorted twice, as they are and backwards; a lookup reads six ranges of
them and measures the distance to each string there.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import OSA

MIN_LENGTH = 4  # characters; one edit in a shorter word makes too many other words

Sorted = NDArray[np.str_]


class OneEdit:
    """Finds the strings within one edit of a given one (optimal string alignment distance).

    A query shorter than ``min_length`` finds nothing.
    """

    def __init__(self, strings: Iterable[str], min_length: int = MIN_LENGTH) -> None:
        self._min_length = min_length
        of_length: defaultdict[int, list[str]] = defaultdict(list)
        for string in strings:
            of_length[len(string)].append(string)
        self._sorted = {
            length: (np.sort(np.array(held)), np.sort(np.array([one[::-1] for one in held])))
            for length, held in of_length.items()
        }

    def near(self, typed: str) -> list[str]:
        """The strings exactly one edit away, sorted; none for a very short one."""
        if len(typed) < self._min_length:
            return []
        found = {
            string
            for length in (len(typed) - 1, len(typed), len(typed) + 1)
            for string in self._sharing_a_part(typed, length)
            if OSA.distance(typed, string, score_cutoff=1) == 1
        }
        return sorted(found)

    def _sharing_a_part(self, typed: str, length: int) -> Iterator[str]:
        """The strings of a length that begin or end like the typed one."""
        if length not in self._sorted:
            return
        part = (length - 1) // 2
        forwards, backwards = self._sorted[length]
        yield from _beginning(forwards, typed[:part])
        yield from (one[::-1] for one in _beginning(backwards, typed[::-1][:part]))


def _beginning(strings: Sorted, part: str) -> list[str]:
    """The strings that begin with a part."""
    first = strings.searchsorted(part)
    found: list[Any] = strings[first : strings.searchsorted(part + "\U0010ffff")].tolist()
    return found
