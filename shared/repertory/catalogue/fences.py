"""The fences around blocks of code in Markdown."""

import re

MAX_INDENT = 20  # of a fence in a list

_FENCE = re.compile(rf"(\s{{0,{MAX_INDENT}}})(`{{3,}}|~{{3,}})")


def after(fence: str, line: str, indent: int = 3) -> str:
    """The fence that is open after a line; empty without one.

    A fence closes with as many of the same marks at least, and nothing behind them.

    Args:
        fence: The fence that is open before the line.
        line: The line.
        indent: How many spaces may stand before a fence, ``MAX_INDENT`` at most.
    """
    has_mark = "```" in line or "~~~" in line  # quicker to see than a match
    mark = _FENCE.match(line) if has_mark else None
    if mark is None or len(mark[1]) > indent:
        return fence
    if not fence:
        return mark[2]
    closes = mark[2].startswith(fence) and not line.strip().strip(fence[0])
    return "" if closes else fence
