"""Output to the terminal: tables, JSON and notes, without control sequences.

A terminal gets colours and wrapped cells; a pipe gets plain lines with nothing cut.
"""

import os
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path

import msgspec

from repertory.text import clean, one_line

# Marks that reverse the direction of text, and so can disguise it.
_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

MIN_PROSE_WIDTH = 24  # cells left for wrapped text

# The rich style of a cell, given its text.
Style = Callable[[str], str]


def prepare() -> None:
    """Escape characters that the streams cannot encode, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def safe(text: str) -> str:
    """The text on one line, without control characters."""
    return _DIRECTIONS.sub("", one_line(text))


def safe_lines(text: str) -> str:
    """The text without control characters; line breaks stay."""
    return _DIRECTIONS.sub("", clean(text))


def say(text: str = "") -> None:
    """Write lines to stdout."""
    print(safe_lines(text))


def tell(text: str, indent: int = 0) -> None:
    """Write a sentence to stdout, wrapped between words on a terminal."""
    text = safe(text)
    if is_terminal():
        columns = shutil.get_terminal_size().columns
        hanging = " " * (indent + 2 if indent else 0)
        text = textwrap.fill(
            text,
            columns,
            initial_indent=" " * indent,
            subsequent_indent=hanging,
            break_long_words=False,
            break_on_hyphens=False,
        )
    else:
        text = " " * indent + text
    print(text)


def warn(text: str) -> None:
    """Write a warning of one line to stderr."""
    print(f"repertory: {safe(text)}", file=sys.stderr)


def note(text: str) -> None:
    """Write a note, which is no warning, to stderr."""
    print(safe_lines(text), file=sys.stderr)


def count(number: int, noun: str) -> str:
    """A number of things in words: ``1 item``, ``2,000 items``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def short_path(path: str) -> str:
    """A path relative to the current directory or to the home, if it is below either."""
    for folder, short in ((Path.cwd(), "."), (Path.home(), "~")):
        if path == str(folder):
            return short
        if path.startswith(f"{folder}{os.sep}"):
            return f"{short}{path[len(str(folder)) :]}"
    return path


def is_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()


def show_json(value: object) -> None:
    """Write a value as JSON."""
    say(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def show_facts(facts: Mapping[str, str], indent: int = 0) -> None:
    """Write names and values, one pair a line; a long value is wrapped on a terminal."""
    width = max(map(_width, facts), default=0)
    hanging = indent + width + 2
    for name, value in facts.items():
        text = safe(value)
        if is_terminal():
            room = max(shutil.get_terminal_size().columns - hanging, MIN_PROSE_WIDTH)
            lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
            text = f"\n{' ' * hanging}".join(lines)
        say(f"{' ' * indent}{safe(name)}{' ' * (width - _width(name))}  {text}")


def show_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
    styles: Mapping[str, Style] | None = None,
) -> None:
    """Write a table.

    Args:
        columns: The headings.
        rows: One text for each column.
        right: The columns that are aligned at the right.
        styles: How to colour the cells of a column.
    """
    rows = [[safe(cell) for cell in row] for row in rows]
    if is_terminal():
        _show_rich(columns, rows, right, styles or {})
    else:
        _show_plain(columns, rows, right)


def _show_plain(
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str]
) -> None:
    lines = [columns, *rows]
    widths = [max(_width(line[place]) for line in lines) for place in range(len(columns))]
    for line in lines:
        cells = []
        for cell, width, column in zip(line, widths, columns, strict=True):
            space = " " * (width - _width(cell))
            cells.append(space + cell if column in right else cell + space)
        say("  ".join(cells).rstrip())


def _show_rich(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[str],
    styles: Mapping[str, Style],
) -> None:
    from rich import box  # noqa: PLC0415 - a tenth of a second
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console()
    # Only the last column is wrapped, unless that leaves it too narrow.
    taken = sum(
        3 + max(_width(line[place]) for line in (columns, *rows))
        for place in range(len(columns) - 1)
    )
    keep = taken + MIN_PROSE_WIDTH <= console.width
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        table.add_column(
            column,
            justify="right" if column in right else "left",
            overflow="fold",
            no_wrap=keep and column != columns[-1],
        )
    for row in rows:
        cells = zip(row, columns, strict=True)
        # Text, and not a string, in which rich would look for markup.
        table.add_row(
            *(Text(cell, styles[name](cell) if name in styles else "") for cell, name in cells)
        )
    console.print(table)


def _width(text: str) -> int:
    """The width of a text in terminal cells."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
