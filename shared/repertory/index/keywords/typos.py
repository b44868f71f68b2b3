"""Strings one edit away from a typed one, at a cost that does not grow with how many there are.

One edit (a character dropped, added, replaced, or swapped with its neighbour) leaves either the
first or the last part of a string as it was, if a character stands between the two parts. So
strings are filed under their length with their first part, and under their length with their last
part; a look-up checks six pigeonholes and measures the distance to what lies in them.
"""

from collections import defaultdict
from collections.abc import Iterable

from rapidfuzz.distance import OSA

SHORTEST = 4  # characters; one edit in a shorter word makes too many other words


class OneEdit:
    """Finds the strings within one edit of a given one (optimal string alignment distance)."""

    def __init__(self, strings: Iterable[str]) -> None:
        self._holes: defaultdict[str, list[str]] = defaultdict(list)
        for string in strings:
            part = (len(string) - 1) // 2
            if part:
                self._holes[f"{len(string)}<{string[:part]}"].append(string)
                self._holes[f"{len(string)}>{string[-part:]}"].append(string)

    def near(self, typed: str) -> list[str]:
        """The strings exactly one edit away, sorted; none for a very short one."""
        if len(typed) < SHORTEST:
            return []
        found: set[str] = set()
        for length in (len(typed) - 1, len(typed), len(typed) + 1):
            part = (length - 1) // 2
            for key in (f"{length}<{typed[:part]}", f"{length}>{typed[-part:]}"):
                for string in self._holes.get(key, ()):
                    if OSA.distance(typed, string, score_cutoff=1) == 1:
                        found.add(string)
        return sorted(found)
