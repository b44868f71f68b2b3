"""Patterns in the syntax of ``.gitignore``, matched in linear time.

The expressions of ``pathspec`` try each way to share a path among their stars: the time is
exponential in the number of stars. Here, each star takes the first place that fits what follows
it, up to the next star, and never another: all that comes later fits there as well. The last ``**``
takes the last place, which tells a file that matches from a file in a folder that does.
"""

import functools
import re
from collections.abc import Iterable
from typing import Any

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern
from typing_extensions import override

from repertory.text import is_clean

MAX_LENGTH = 1_000  # characters of a pattern
_MAX_KEPT = 4_096  # patterns: those of many files are the same, and each takes long to compile

# What ``pathspec`` writes, and characters that stand for it: no pattern has them.
_WILD = {"[^/]*": "\1", "[^/]+": "\2", "[^/]": "\3"}
_LEADING, _INNER = "^(?:.+/)?", "(?:/.+)?"  # any folders
_ENDS = ("(?:(?P<ps_d>/)|$)", "(?P<ps_d>/)", "/")


def spec_of(lines: Iterable[str]) -> GitIgnoreSpec:
    """Return what matches the usable ones of the lines of a ``.gitignore``."""
    patterns = [pattern for line in lines if line and (pattern := _compiled(line))]
    return GitIgnoreSpec(patterns, backend="simple")


def is_usable(pattern: str) -> bool:
    """Whether a pattern is valid; git skips invalid ones."""
    return _compiled(pattern) is not None


@functools.lru_cache(_MAX_KEPT)
def _compiled(pattern: str) -> "_Pattern | None":
    if len(pattern) > MAX_LENGTH or not is_clean(pattern):
        return None
    try:
        return _Pattern(pattern)
    except (ValueError, re.error):
        return None


class _Pattern(GitIgnoreSpecPattern):
    """A pattern whose expression takes linear time."""

    __slots__ = ()

    @override
    @classmethod
    def pattern_to_regex(cls, pattern: Any) -> tuple[Any, bool | None]:
        regex, include = super().pattern_to_regex(pattern)
        return linear(regex) if regex else regex, include


def linear(regex: str) -> str:
    """Return an expression that matches the same paths in linear time."""
    end = next((end for end in _ENDS if regex.endswith(end)), "")
    if not end or not regex.startswith("^"):
        return regex  # without a star
    body = regex.removesuffix(end).removeprefix(_LEADING).removeprefix("^")
    *texts, last = map(_parts, body.split(_INNER))
    folders = ["(?:[^/]++/)*" if regex.startswith(_LEADING) else ""]
    folders += ["(?:/[^/]++)*"] * len(texts)
    before = [
        f"(?>{one and one + '?'}{text}(?=/))" for one, text in zip(folders[:-1], texts, strict=True)
    ]
    return f"^{''.join(before)}{folders[-1]}{last}{end}"


def _parts(text: str) -> str:
    """Rewrite the stars in names of folders and files."""
    for written, sign in _WILD.items():
        text = text.replace(written, sign)
    text = "/".join(map(_part, text.split("/")))
    for written, sign in _WILD.items():
        text = text.replace(sign, written)
    return text


def _part(text: str) -> str:
    first, *inner = text.split("\1")
    if not inner:
        return text
    *inner, last = inner
    return first + "".join(f"(?>\3*?{piece})" for piece in inner if piece) + "\1" + last
