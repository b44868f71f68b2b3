"""A change of a file as a unified diff, in time that depends on the size of the change."""

import difflib
from collections.abc import Iterable
from itertools import takewhile

CONTEXT = 3  # lines around the change


def changed_lines(before: str, after: str, name: str) -> list[str]:
    """The lines of a unified diff; none if nothing changes."""
    old, new = before.splitlines(), after.splitlines()
    if old == new:
        return []
    first = _same(old, new)
    rest = _same(reversed(old[first:]), reversed(new[first:]))
    start = max(first - CONTEXT, 0)
    cut_old = old[start : len(old) - max(rest - CONTEXT, 0)]
    cut_new = new[start : len(new) - max(rest - CONTEXT, 0)]
    lines = difflib.unified_diff(cut_old, cut_new, name, name, lineterm="", n=len(cut_old))
    head = f"@@ -{start + 1},{len(cut_old)} +{start + 1},{len(cut_new)} @@"
    return [head if line.startswith("@@") else line for line in lines]


def _same(one: Iterable[str], other: Iterable[str]) -> int:
    """How many lines are the same at the beginning."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
