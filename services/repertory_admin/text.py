"""Texts made safe for a terminal, and paths in their short form."""

import os
import re
from pathlib import Path

from repertory.text import DIRECTIONS, clean, one_line

_DIRECTIONS = re.compile(f"[{DIRECTIONS}]")


def safe(text: str) -> str:
    """The text on one line, without control characters."""
    return _DIRECTIONS.sub("", one_line(text))


def safe_lines(text: str) -> str:
    """The text without control characters; line breaks stay."""
    return _DIRECTIONS.sub("", clean(text))


def short_path(path: str) -> str:
    """A path relative to the current directory or to the home, if it is below either."""
    for folder, short in ((Path.cwd(), "."), (Path.home(), "~")):
        if path == str(folder):
            return short
        if path.startswith(f"{folder}{os.sep}"):
            return f"{short}{path[len(str(folder)) :]}"
    return path
