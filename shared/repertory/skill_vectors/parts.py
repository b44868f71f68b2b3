"""The parts of a file that are embedded beside the whole of it."""

import re
from collections.abc import Iterator

SHORTEST = 80  # characters; what is shorter is left with what follows
TOKEN = 3  # bytes, at least, of a token of most texts: one ideograph, or most of a short word

# Where a part begins, by how a file's name ends.
_BEGINNINGS = {
    ".md": re.compile(r"#{1,2}\s"),
    ".ns.txt": re.compile(r"\s*DEFINE\s+PROCEDURE\b"),
}


def parts(path: str, text: str, max_tokens: int) -> list[str]:
    """Take a text apart, so that none of it lies beyond a model's limit.

    A part is a section of a Markdown file, a procedure of a NeuroScript file, or as many lines as
    the model reads at once. All of the text is in one of them.

    Args:
        path: The file; its name tells what its parts are.
        text: What it holds.
        max_tokens: The model's limit, which is only estimated to be kept.

    Returns:
        The parts in order; none where the text is a single one.
    """
    begins = next((mark for end, mark in _BEGINNINGS.items() if path.endswith(end)), None)
    found = [""]
    size = 0
    for line in _lines(text, max_tokens):
        length = len(line.encode())
        is_new = begins is not None and begins.match(line) and len(found[-1]) >= SHORTEST
        if found[-1] and (is_new or size + length > TOKEN * max_tokens):
            found.append("")
            size = 0
        found[-1] += line
        size += length
    return found if len(found) > 1 else []


def _lines(text: str, longest: int) -> Iterator[str]:
    """The lines of a text with their ends, long ones in pieces."""
    for line in text.splitlines(keepends=True):
        for start in range(0, len(line), longest):
            yield line[start : start + longest]
