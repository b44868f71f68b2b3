"""A snippet of a text around a match."""

import re
from bisect import bisect_left, bisect_right
from itertools import accumulate

from repertory.catalogue.names import MARKS
from repertory.project_search.word_index import words_of

MAX_LENGTH = 100  # characters, marks included
CUT = "..."

_RUN = re.compile(rf"[\w{MARKS}]+")
_PART = rf"[^\W\d_]|[{MARKS}]"  # of a word
_PART_OF_NUMBER = rf"[^\W_]|[{MARKS}]"
_SPACE = re.compile(r"\s")


def place_of(text: str, query: str) -> tuple[int, int]:
    """The start and end of a case-folded query's first occurrence; (0, 0) if it is missing."""
    folded = text.casefold()
    at = folded.find(query)
    return _in_original(text, folded, at, at + len(query)) if at >= 0 else (0, 0)


def place_of_word(text: str, word: str) -> tuple[int, int]:
    """The start and end of the first occurrence of a word of ``words_of``; (0, 0) if missing."""
    folded = text.casefold()
    part = _PART_OF_NUMBER if word.isdecimal() else _PART
    if found := re.search(rf"(?<!{part}){re.escape(word)}(?!{part})", folded):
        return _in_original(text, folded, *found.span())
    for run in _RUN.finditer(text):  # with accents, or in a script without spaces
        within = run[0].casefold()
        if word in words_of(within):
            at = run.start() + max(0, within.find(word))
            return at, at + len(word)
    return 0, 0


def _in_original(text: str, folded: str, start: int, end: int) -> tuple[int, int]:
    """Map a place in the case-folded text to the original text."""
    if len(folded) == len(text):  # every character folded to exactly one
        return start, end
    ends = list(accumulate(len(character.casefold()) for character in text))
    return bisect_right(ends, start), bisect_left(ends, end) + 1


def snippet(text: str, start: int, end: int) -> str:
    """Return at most ``MAX_LENGTH`` characters around a place, on one line.

    The context is shared between both sides; ``CUT`` marks each cut. A longer place is cut at its
    end.
    """
    length = len(text) if len(text) <= MAX_LENGTH else MAX_LENGTH - 2 * len(CUT)
    room = max(0, length - (end - start)) // 2
    first = max(0, min(start - room, len(text) - length))
    last = first + length
    shown = _SPACE.sub(" ", text[first:last])
    return f"{CUT if first else ''}{shown}{CUT if last < len(text) else ''}"
