"""The widths of a table's columns, and lines that fit them without splitting a word."""

import re
import unicodedata
from collections.abc import Callable, Sequence

Style = Callable[[str], str]  # the rich style of a cell, given its text

MIN_PROSE_WIDTH = 24  # cells left for wrapped text

_ZERO_WIDTH = {"Mn", "Me", "Cf"}  # categories of accents, vowel signs and joiners
_AS_EMOJI = "\ufe0f"  # makes the one-cell character before it two cells wide
_CHARACTERS_PER_CELL = 3  # a letter with two combining marks; more are rare

# The pieces of a word. A long word is broken after a separator of an id, a name or a path, but not
# inside a number.
_PIECES = re.compile(r"[/_.:=,-]*(?:[^/_.:=,-]|[.,](?=\d))+(?:/|[_.:=,-]+)?|[/_.:=,-]+")


def width_of(text: str) -> int:
    """The width of a text in terminal cells."""
    if text.isascii():
        return len(text)
    return sum(map(_cells, text))


def _cells(letter: str) -> int:
    """The width of a character in cells: 0 if it combines with the one before, like an accent."""
    if unicodedata.east_asian_width(letter) in "WF":
        return 2
    if letter == _AS_EMOJI:
        return 1
    is_part = unicodedata.category(letter) in _ZERO_WIDTH or "\u1160" <= letter <= "\u11ff"
    return 0 if is_part else 1


def wrapped(text: str, width: int) -> list[str]:
    """The lines of a text: broken between words, and within a long one after its separators.

    Only a piece that is wider than a whole line is split anywhere.
    """
    lines = [""]
    for word in text.split():
        for place, piece in enumerate(_pieces(word, width)):
            space = " " if lines[-1] and not place else ""
            if lines[-1] and width_of(lines[-1] + space + piece) > width:
                lines.append(piece)
            else:
                lines[-1] += space + piece
    return lines


def shortened(text: str, width: int) -> str:
    """The words that fit one line, with an ellipsis if some are left out."""
    kept = text[: _CHARACTERS_PER_CELL * width + 1]  # more do not fit
    lines = wrapped(kept, width)
    if len(lines) == 1 and kept == text:
        return lines[0]
    return f"{wrapped(kept, width - 1)[0]}…"


def widths(columns: Sequence[Sequence[str]], room: int) -> list[int]:
    """The width of each column in cells, together at most ``room``.

    The last column shrinks first, then the widest one. A piece of a word is split only as a last
    resort.

    Args:
        columns: The texts of each column, with its heading.
        room: The cells of all columns, without the space between them.
    """
    found = [max(map(width_of, texts)) for texts in columns]
    least = [
        max((width_of(piece) for text in texts for piece in _pieces_of(text)), default=0)
        for texts in columns
    ]
    prose = [*found[:-1], max(least[-1], MIN_PROSE_WIDTH)]
    for floor in (prose, least, [1] * len(found)):
        while sum(found) > room:
            able = [place for place, width in enumerate(found) if width > floor[place]]
            if not able:
                break
            found[max(able, key=found.__getitem__)] -= 1
    return found


def _pieces_of(text: str) -> list[str]:
    return [piece for word in text.split() for piece in _PIECES.findall(word)]


def _pieces(word: str, width: int) -> list[str]:
    """The word itself if it fits; else its pieces, each at most as wide as a line."""
    if width_of(word) <= width:
        return [word]
    pieces = []
    for piece in _PIECES.findall(word):
        while piece:
            head = _head(piece, width)
            pieces.append(head)
            piece = piece[len(head) :]  # noqa: PLW2901 - its rest
    return pieces


def _head(text: str, width: int) -> str:
    """The beginning of a text that fits a width; one letter at least, however narrow it is."""
    end = 1
    while end < len(text) and width_of(text[: end + 1]) <= width:
        end += 1
    return text[:end]
