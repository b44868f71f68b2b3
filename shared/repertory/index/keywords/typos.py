"""Strings one edit away from a typed one, at a cost that does not grow with their number.

One edit (a character dropped, added, replaced, or swapped with its neighbour) leaves either the
first or the last part of a string as it was, if a character stands between the two parts. So
strings are grouped by length and first part, and by length and last part; a lookup reads six groups
and measures the distance to each string in them.
"""

from collections import defaultdict
from collections.abc import Iterable

from rapidfuzz.distance import OSA

MIN_LENGTH = 4  # characters; one edit in a shorter word makes too many other words

Groups = dict[str, list[str]]


class OneEdit:
    """Finds the strings within one edit of a given one (optimal string alignment distance).

    A query shorter than ``min_length`` finds nothing.
    """

    def __init__(self, strings: Iterable[str], min_length: int = MIN_LENGTH) -> None:
        self._min_length = min_length
        self._of_length: defaultdict[int, list[str]] = defaultdict(list)
        for string in strings:
            self._of_length[len(string)].append(string)
        # Built per length on first use: a query needs three of some sixty lengths.
        self._by_length: dict[int, tuple[Groups, Groups]] = {}

    def near(self, typed: str) -> list[str]:
        """The strings exactly one edit away, sorted; none for a very short one."""
        if len(typed) < self._min_length:
            return []
        found: set[str] = set()
        for length in (len(typed) - 1, len(typed), len(typed) + 1):
            part = (length - 1) // 2
            firsts, lasts = self._groups(length)
            near = (*firsts.get(typed[:part], ()), *lasts.get(typed[len(typed) - part :], ()))
            found.update(s for s in near if OSA.distance(typed, s, score_cutoff=1) == 1)
        return sorted(found)

    def _groups(self, length: int) -> tuple[Groups, Groups]:
        """The strings of a length by their first part, and by their last."""
        if length not in self._by_length:
            firsts: defaultdict[str, list[str]] = defaultdict(list)
            lasts: defaultdict[str, list[str]] = defaultdict(list)
            part = (length - 1) // 2
            for string in self._of_length.get(length, ()):
                firsts[string[:part]].append(string)
                lasts[string[length - part :]].append(string)
            self._by_length[length] = dict(firsts), dict(lasts)
        return self._by_length[length]
