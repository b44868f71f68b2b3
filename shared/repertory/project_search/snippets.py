"""A piece of a text around what matched in it."""

import re
from bisect import bisect_left, bisect_right
from itertools import accumulate

from repertory.project_search.words import words_of

LONGEST = 100  # characters, marks included
CUT = "..."

_RUN = re.compile(r"\w+")
_SPACE = re.compile(r"\s")


def place_of(text: str, query: str) -> tuple[int, int]:
    """Where a text first contains a case-folded query: start and end; its own start if nowhere."""
    folded = text.casefold()
    at = folded.find(query)
    return _in_original(text, folded, at, at + len(query)) if at >= 0 else (0, 0)


def place_of_word(text: str, word: str) -> tuple[int, int]:
    """Where a text first has a word, as ``words_of`` tells them; its own start if nowhere."""
    folded = text.casefold()
    if found := re.search(rf"(?<![^\W\d_]){re.escape(word)}(?![^\W\d_])", folded):
        return _in_original(text, folded, *found.span())
    for run in _RUN.finditer(text):  # with accents, or without spaces around it
        within = run[0].casefold()
        if word in words_of(within):
            at = run.start() + max(0, within.find(word))
            return at, at + len(word)
    return 0, 0


def _in_original(text: str, folded: str, start: int, end: int) -> tuple[int, int]:
    """The place in a text that a place in the same text case-folded stands for."""
    if len(folded) == len(text):  # no character folds to none, so each folded to one
        return start, end
    ends = list(accumulate(len(character.casefold()) for character in text))
    return bisect_right(ends, start), bisect_left(ends, end) + 1


def snippet(text: str, start: int, end: int) -> str:
    """At most ``LONGEST`` characters of a text around a place, on one line.

    As much as there is room for is shown on both sides, and marked with ``CUT`` where it goes on.
    A longer place is cut at its end.
    """
    length = len(text) if len(text) <= LONGEST else LONGEST - 2 * len(CUT)
    room = max(0, length - (end - start)) // 2
    first = max(0, min(start - room, len(text) - length))
    last = first + length
    shown = _SPACE.sub(" ", text[first:last])
    return f"{CUT if first else ''}{shown}{CUT if last < len(text) else ''}"
