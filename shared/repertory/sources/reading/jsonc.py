"""JSON with comments and trailing commas, as agent hosts read it."""

import re

_STRING = r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)'  # an open one matches to the end, for linear time
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*+|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)
_NOT_BLANK = re.compile(r"[^\n]")


def without_comments(text: str) -> str:
    """Replace comments by blanks, so that all other characters keep their positions."""
    return _COMMENT.sub(_blank, text)


def plain_json(text: str) -> str:
    """Replace comments and trailing commas by blanks, so that the text is plain JSON."""
    return _TRAILING_COMMA.sub(_blank, without_comments(text))


def _blank(found: re.Match[str]) -> str:
    """Keep strings and replace other text by blanks, so that line numbers stay."""
    return found[0] if found[0].startswith('"') else _NOT_BLANK.sub(" ", found[0])
