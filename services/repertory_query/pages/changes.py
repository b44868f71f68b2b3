"""A change of a file as a unified diff, computed in time that depends on the change's size."""

import difflib

from repertory.review.difference import without_same_ends

CONTEXT = 3  # lines around the change


def changed_lines(before: str, after: str, name: str) -> list[str]:
    """The lines of a unified diff; empty if nothing changes."""
    old, new = before.splitlines(), after.splitlines()
    if old == new:
        return []
    start, cut_old, cut_new = without_same_ends(old, new, CONTEXT)
    lines = difflib.unified_diff(cut_old, cut_new, name, name, lineterm="", n=len(cut_old))
    head = f"@@ -{start + 1},{len(cut_old)} +{start + 1},{len(cut_new)} @@"
    return [head if line.startswith("@@") else line for line in lines]
