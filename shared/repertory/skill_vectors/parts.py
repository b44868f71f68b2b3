"""The parts of a file that are embedded in addition to the whole."""

import re
from collections.abc import Iterator

MIN_LENGTH = 80  # characters; a shorter part is joined with the next one
BYTES_PER_TOKEN = 3  # a lower bound for most texts: one ideograph, or most of a short word

# The first line of a part, by the suffix of the file's name.
_BEGINNINGS = {
    ".md": re.compile(r"#{1,2}\s"),
    ".ns.txt": re.compile(r"\s*DEFINE\s+PROCEDURE\b"),
}


def parts(path: str, text: str, max_tokens: int) -> list[str]:
    """Split a text so that no part exceeds a model's limit.

    Parts are sections of Markdown files and procedures of NeuroScript files. Those too long are
    split at line ends. Joined, the parts are the whole text.

    Args:
        path: The file; its suffix selects how it is split.
        text: Its content.
        max_tokens: The model's limit; the length in tokens is estimated.

    Returns:
        The parts in order; empty if the text is a single part.
    """
    begins = next((mark for end, mark in _BEGINNINGS.items() if path.endswith(end)), None)
    found = [""]
    size = 0
    for line in _lines(text, max_tokens):
        length = len(line.encode())
        is_new = begins is not None and begins.match(line) and len(found[-1]) >= MIN_LENGTH
        if found[-1] and (is_new or size + length > BYTES_PER_TOKEN * max_tokens):
            found.append("")
            size = 0
        found[-1] += line
        size += length
    return found if len(found) > 1 else []


def _lines(text: str, longest: int) -> Iterator[str]:
    """The lines of a text with their line ends; longer lines are split."""
    for line in text.splitlines(keepends=True):
        for start in range(0, len(line), longest):
            yield line[start : start + longest]
