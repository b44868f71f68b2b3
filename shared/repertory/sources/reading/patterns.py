"""Patterns in the syntax of ``.gitignore``, matched in linear time.

The expressions of ``pathspec`` backtrack over all ways to distribute a path among the stars, so
their time is exponential in the number of stars. Here, each star matches up to the first position
where the text before the next star fits, without backtracking. This is enough, because whatever
matches later also matches after that position. The last ``**`` matches as much as possible, to tell
a matching file from a file in a matching folder.
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
_MAX_KEPT = 4_096  # cached patterns. Many files have the same ones, and compiling is slow

# Parts of the expressions of ``pathspec``, and characters that replace them and are in no pattern.
_WILD = {"[^/]*": "\1", "[^/]+": "\2", "[^/]": "\3"}
_LEADING, _INNER = "^(?:.+/)?", "(?:/.+)?"  # any folders
_ENDS = ("(?:(?P<ps_d>/)|$)", "(?P<ps_d>/)", "/")


def spec_of(lines: Iterable[str]) -> GitIgnoreSpec:
    """Return the matcher for the usable lines of a ``.gitignore``."""
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
    """A pattern with an expression that takes linear time."""

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
