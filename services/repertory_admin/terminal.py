"""Output to the terminal: tables, JSON and notes, without control sequences.

A terminal gets colours and wrapped cells; a pipe gets plain lines with nothing cut.
"""

import os
import select
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path

import msgspec

from repertory.system.files import json_bytes
from repertory_admin.columns import MIN_PROSE_WIDTH, Style, width_of
from repertory_admin.text import safe, safe_lines

_quiet = False


def be_quiet(*, quiet: bool) -> None:
    """Turn notes and progress off, or on again."""
    global _quiet  # noqa: PLW0603 - a property of the process, like its streams
    _quiet = quiet


def is_quiet() -> bool:
    """Whether ``--quiet`` was given."""
    return _quiet


def prepare() -> None:
    """Make the streams escape what they cannot encode, and replace closed streams."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # the parent process closed it
            stream = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115 - it stays open
            setattr(sys, name, stream)
    for one in (sys.stdout, sys.stderr):
        if isinstance(one, TextIOWrapper):
            one.reconfigure(errors="backslashreplace")


def say(text: str = "") -> None:
    """Write lines to stdout."""
    print(safe_lines(text))


def show_text(text: str, indent: int = 0) -> None:
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
    """Write a note to stderr, unless ``--quiet`` was given."""
    if not is_quiet():
        print(safe_lines(text), file=sys.stderr)


def size(number: int) -> str:
    """A number of bytes with a suitable unit: ``213.0 kB``."""
    from rich.filesize import decimal  # noqa: PLC0415 - not needed for help texts

    return decimal(number)


def is_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()


def reader_has_gone() -> bool:
    """Whether the reader of stdout, such as ``head``, has exited."""
    if not hasattr(select, "poll"):  # Windows
        return True
    waiting = select.poll()
    waiting.register(sys.stdout.fileno(), 0)  # an error is always reported
    return bool(waiting.poll(0))


def show_json(value: object) -> None:
    """Write a value as JSON, in ASCII if its characters would be written in another way."""
    try:
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
        is_kept = sys.stdout.encoding.lower() == "utf-8" and safe_lines(text) == text
    except UnicodeEncodeError:  # a file name is not valid Unicode
        is_kept = False
    say(text if is_kept else json_bytes(value, indent=2).decode())


def show_markdown(text: str) -> None:
    """Write Markdown: formatted in a terminal, otherwise as it is."""
    if is_terminal():
        from repertory_admin import drawing  # noqa: PLC0415 - rich takes a tenth of a second

        drawing.markdown(drawing.console(), text)
    else:
        say(text.strip())


def show_facts(facts: Mapping[str, str], indent: int = 0) -> None:
    """Write names and values, one pair per line; a long value is wrapped on a terminal.

    Facts without a value are left out.
    """
    facts = {name: value for name, value in facts.items() if value}
    width = max(map(width_of, facts), default=0)
    hanging = indent + width + 2
    for name, value in facts.items():
        text = safe(value)
        if is_terminal():
            room = max(shutil.get_terminal_size().columns - hanging, MIN_PROSE_WIDTH)
            lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
            text = f"\n{' ' * hanging}".join(lines)
        say(f"{' ' * indent}{safe(name)}{' ' * (width - width_of(name))}  {text}")


def show_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
    short: Sequence[str] = (),
    styles: Mapping[str, Style] | None = None,
) -> None:
    """Write a table.

    Args:
        columns: The headings.
        rows: One text for each column.
        right: The right-aligned columns.
        short: The columns whose texts a terminal shortens to one line.
        styles: How to colour the cells of a column.
    """
    rows = [[safe(cell) for cell in row] for row in rows]
    if is_terminal():
        from repertory_admin import drawing  # noqa: PLC0415 - rich takes a tenth of a second

        drawing.table(drawing.console(), columns, rows, right, short, styles or {})
    else:
        _show_plain(columns, rows, right)


def _show_plain(
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str]
) -> None:
    lines = [columns, *rows]
    widths = [max(width_of(line[place]) for line in lines) for place in range(len(columns))]
    for line in lines:
        cells = []
        for cell, width, column in zip(line, widths, columns, strict=True):
            space = " " * (width - width_of(cell))
            cells.append(space + cell if column in right else cell + space)
        say("  ".join(cells).rstrip())
