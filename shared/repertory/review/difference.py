"""A change as lines of a unified diff, in time that depends on the size of the change."""

import difflib
from collections.abc import Iterable
from itertools import islice, takewhile

import msgspec

from repertory.catalogue.item import Item
from repertory.catalogue.policy import set_fields
from repertory.catalogue.views import SENTENCE_END
from repertory.text import clean

MAX_DIFF_LINES = 200
MAX_DIFF_LINE = 300  # characters; longer lines are split
MAX_COMPARED_LINES = 500  # per version, from the first change on. The diff can take quadratic time


def difference(item: Item, before: Item | None) -> list[str]:
    """The change of an item as lines of a unified diff, without file names.

    Without an earlier version, all lines are new. A diff longer than ``MAX_DIFF_LINES`` is cut, and
    its last line says so.
    """
    old, new = _lines(before) if before else [], _lines(item)
    start, old, new = without_same_ends(old, new, 1)
    is_cut = max(len(old), len(new)) > MAX_COMPARED_LINES
    old, new = old[:MAX_COMPARED_LINES], new[:MAX_COMPARED_LINES]
    lines = list(islice(difflib.unified_diff(old, new, n=1, lineterm=""), 2, MAX_DIFF_LINES + 3))
    if is_cut or len(lines) > MAX_DIFF_LINES:
        lines[MAX_DIFF_LINES:] = ["… and more"]
    return [_moved(line, start) if line.startswith("@@") else line for line in lines]


def _moved(head: str, down: int) -> str:
    """Shift the line numbers in the header of a hunk, such as ``@@ -1,3 +1,4 @@``."""
    begin, *ranges, end = head.split(" ")
    for at, one in enumerate(ranges):
        first, comma, count = one[1:].partition(",")
        ranges[at] = f"{one[0]}{int(first) + down}{comma}{count}"
    return " ".join([begin, *ranges, end])


def _lines(item: Item) -> list[str]:
    """The lines of an item to compare, one for each field, parameter or line of its body."""
    lines = [f"name: {item.name}", *f"description: {item.description}".splitlines()]
    if item.tags:
        lines.append(f"tags: {', '.join(item.tags)}")
    for label, value in (
        ("input", item.input_schema),
        ("output", item.output_schema),
        ("extra", item.extra or None),
        ("policy", set_fields(item.policy) or None),
    ):
        if value is not None:
            text = msgspec.json.format(msgspec.json.encode(value, order="deterministic"), indent=1)
            lines += [f"{label} {line.strip()}" for line in text.decode().splitlines()]
    lines += item.body.splitlines()
    return [piece for line in lines for piece in _pieces(clean(line))]


def _pieces(line: str) -> list[str]:
    """Split a line longer than ``MAX_DIFF_LINE`` into sentences, and these at the same length."""
    if len(line) <= MAX_DIFF_LINE:
        return [line]
    return [
        sentence[start : start + MAX_DIFF_LINE]
        for sentence in SENTENCE_END.split(line)
        for start in range(0, len(sentence), MAX_DIFF_LINE)
    ]


def without_same_ends(
    old: list[str], new: list[str], context: int
) -> tuple[int, list[str], list[str]]:
    """Remove the common prefix and the common suffix of two lists of lines.

    Comparing the rest takes time in proportion to the change.

    Args:
        old: The lines before.
        new: The lines after.
        context: How many common lines to keep at each end.

    Returns:
        The number of lines removed at the beginning, and the rest of both lists.
    """
    first = _same(old, new)
    rest = _same(reversed(old[first:]), reversed(new[first:]))
    start, end = max(first - context, 0), max(rest - context, 0)
    return start, old[start : len(old) - end], new[start : len(new) - end]


def _same(one: Iterable[str], other: Iterable[str]) -> int:
    """The length of the common prefix."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
