"""Tables and texts drawn with rich, only for terminals: its import takes a tenth of a second."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.markdown import Markdown
from rich.style import Style
from rich.table import Table
from rich.text import Text

from repertory_admin.columns import Style as CellStyle
from repertory_admin.columns import shortened, width_of, widths, wrapped
from repertory_admin.text import safe, safe_lines, short_path

GAP = 2  # cells between two columns
INDENT = 2


def console() -> Console:
    """The terminal on stdout."""
    return Console(highlight=False)


def table(
    to: Console,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[str],
    short: Sequence[str],
    styles: Mapping[str, CellStyle],
) -> None:
    """Draw a table that fits the terminal; see ``terminal.show_table``."""
    lines = [columns, *rows]
    room = to.width - GAP * (len(columns) - 1)
    fitting = widths([[line[place] for line in lines] for place in range(len(columns))], room)
    drawn = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for column, width in zip(columns, fitting, strict=True):
        drawn.add_column(
            _cell(column, width, "bold"),
            justify="right" if column in right else "left",
            width=width,
            no_wrap=True,
        )
    for row in rows:
        cells = []
        for name, cell, width in zip(columns, row, fitting, strict=True):
            text = shortened(cell, width) if name in short else cell
            cells.append(_cell(text, width, styles[name](cell) if name in styles else ""))
        drawn.add_row(*cells)
    to.print(drawn)


def markdown(to: Console, text: str) -> None:
    """Draw Markdown; the URLs of links are shown, not hidden behind the link texts."""
    to.print(Markdown(safe_lines(text), hyperlinks=False))


def words(to: Console, *parts: tuple[str, str]) -> None:
    """Write styled texts beside each other, wrapped to as many lines as they need."""
    drawn = Text()
    width = 0
    for text, style in parts:
        pieces = wrapped(safe(text), to.width)
        if drawn:
            fits = width + GAP + width_of(pieces[0]) <= to.width
            drawn.append(" " * GAP if fits else "\n")
            width = width + GAP if fits else 0
        drawn.append("\n".join(pieces), style)
        width = width_of(pieces[-1]) + (width if len(pieces) == 1 else 0)
    to.print(drawn, soft_wrap=True)


def one_line(to: Console, text: str, style: str = "") -> None:
    """Write the words of a text that fit one indented line."""
    if text:
        _write(to, shortened(safe(text), to.width - INDENT), Style.parse(style))


def line(to: Console, text: str, style: str = "") -> None:
    """Write a line unchanged; the terminal may wrap it."""
    to.print(Text(text, style), soft_wrap=True)


def paragraph(to: Console, text: str) -> None:
    """Write a text on indented lines."""
    for line in wrapped(safe(text), to.width - INDENT):
        _write(to, line, Style())


def file(to: Console, path: str, style: str = "") -> None:
    """Write a path that links to its file, on indented lines; nothing without a path."""
    link = Style(link=Path(path).as_uri()) if Path(path).is_absolute() else Style()
    for line in wrapped(safe(short_path(path)), to.width - INDENT):
        if line:
            _write(to, line, Style.parse(style) + link)


def _write(to: Console, line: str, style: Style) -> None:
    to.print(Text(" " * INDENT).append(line, style), soft_wrap=True)


def _cell(text: str, width: int, style: str) -> Text:
    # A Text, because rich would look for markup in a string.
    return Text("\n".join(wrapped(text, width)), style)
