"""The fences around code blocks in Markdown."""

import re

MAX_INDENT = 20  # spaces before a fence in a list

_FENCE = re.compile(rf"(\s{{0,{MAX_INDENT}}})(`{{3,}}|~{{3,}})")


def after(fence: str, line: str, indent: int = 3) -> str:
    """The fence that is open after a line; empty if none is.

    A fence is closed by a line with at least as many of the same marks and nothing else.

    Args:
        fence: The fence that is open before the line.
        line: The line.
        indent: The number of spaces allowed before a fence, at most ``MAX_INDENT``.
    """
    has_mark = "```" in line or "~~~" in line  # cheaper than the pattern
    mark = _FENCE.match(line) if has_mark else None
    if mark is None or len(mark[1]) > indent:
        return fence
    if not fence:
        return mark[2]
    closes = mark[2].startswith(fence) and not line.strip().strip(fence[0])
    return "" if closes else fence
