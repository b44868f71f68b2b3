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

Holes = dict[str, list[str]]


class OneEdit:
    """Finds the strings within one edit of a given one (optimal string alignment distance).

    Args:
        strings: Where to look.
        shortest: Nothing is near what is shorter than this.
    """

    def __init__(self, strings: Iterable[str], shortest: int = SHORTEST) -> None:
        self._shortest = shortest
        self._of_length: defaultdict[int, list[str]] = defaultdict(list)
        for string in strings:
            self._of_length[len(string)].append(string)
        # Filed when a length is first asked for: a query asks for three of some sixty.
        self._filed: dict[int, tuple[Holes, Holes]] = {}

    def near(self, typed: str) -> list[str]:
        """The strings exactly one edit away, sorted; none for a very short one."""
        if len(typed) < self._shortest:
            return []
        found: set[str] = set()
        for length in (len(typed) - 1, len(typed), len(typed) + 1):
            part = (length - 1) // 2
            firsts, lasts = self._holes(length)
            near = (*firsts.get(typed[:part], ()), *lasts.get(typed[len(typed) - part :], ()))
            found.update(s for s in near if OSA.distance(typed, s, score_cutoff=1) == 1)
        return sorted(found)

    def _holes(self, length: int) -> tuple[Holes, Holes]:
        """The strings of a length by their first part, and by their last."""
        if length not in self._filed:
            firsts: defaultdict[str, list[str]] = defaultdict(list)
            lasts: defaultdict[str, list[str]] = defaultdict(list)
            part = (length - 1) // 2
            for string in self._of_length.get(length, ()):
                firsts[string[:part]].append(string)
                lasts[string[length - part :]].append(string)
            self._filed[length] = dict(firsts), dict(lasts)
        return self._filed[length]
