"""The front matter of a Markdown file, read leniently as the Agent Skills format requires.

It is YAML between lines of ``---``, or TOML between lines of ``+++`` as in Hugo.
"""

import re
from typing import Any

import msgspec

from repertory.sources.reading.structured import Defect, has_unfit, load
from repertory.sources.source import Problem, error, warning
from repertory.text import UNFIT

LIMIT = 1 << 16  # characters between the fences

_OPENING = re.compile(r"\s*---[ \t]*\n")
# Text after ``---`` that is not a key: the line is then a rule and not the start of front matter.
_PROSE = re.compile(r"[ \t]*+\n\s*+(?!---|\.\.\.|[\"']?[\w.-]++[\"']?:(?:\s|\Z))\S")
_TOML = re.compile(r"\s*+\+\+\+[ \t]*\n(?=\s*+[\w\"'\[#])")
_TOML_CLOSING = re.compile(r"^\+\+\+[ \t]*(?:\n|\Z)", re.MULTILINE)
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
# A description that YAML cuts before a hash. In an intended comment, a space follows the hash.
_CUT = re.compile(r"^description:[ \t]++(?![\"'|>\[{&*!%@#])[^\n]*?[ \t]#[^\s#]", re.MULTILINE)
_ENTRY = re.compile(r"([ ]*)([\w.-]+):[ ]+(\S.*)")


class FrontMatter(msgspec.Struct, frozen=True, kw_only=True):
    """A text, split into front matter and body.

    Attributes:
        fields: The front matter with all keys; empty if it is missing, None if it is broken.
        body: The text after the front matter; the whole text if that is missing or broken.
        problems: Errors if it is broken, warnings if it was repaired.
    """

    fields: dict[str, Any] | None
    body: str
    problems: list[Problem] = []


def parse(text: str, path: str) -> FrontMatter:
    """Split the text of a file into its front matter and its body; never raises."""
    opening = _OPENING.match(text)
    if not opening or _PROSE.match(text, opening.end()):
        return _with_toml(text)
    first = text.count("\n", 0, opening.end()) + 1
    closing = _CLOSING.search(text, opening.end())
    if not closing or closing.start() - opening.end() > LIMIT:
        reason = (
            f"has more than {LIMIT:,} characters; shorten it"
            if closing
            else "is not closed; put a line of --- after it"
        )
        return _broken(text, path, first - 1, f"The front matter {reason}.")
    source = text[opening.end() : closing.start()]
    fields, problems = _load(source, path, first)
    if isinstance(fields, Defect):
        line = first - 1 + (fields.line or 0)
        return _broken(text, path, line, f"The front matter is broken: {fields.message}.")
    if isinstance(fields, list):
        return _broken(text, path, first, "The front matter is a list; write it as `key: value`.")
    if not fields and source.strip():  # only headings, which are comments in YAML
        return FrontMatter(fields={}, body=text)
    return FrontMatter(fields=fields, body=text[closing.end() :], problems=problems)


def _with_toml(text: str) -> FrontMatter:
    """Split a text that may begin with TOML front matter; without it, the body is the whole."""
    opening = _TOML.match(text)
    closing = _TOML_CLOSING.search(text, opening.end()) if opening else None
    if opening and closing and closing.start() - opening.end() <= LIMIT:
        fields = load(text[opening.end() : closing.start()], "toml")
        if isinstance(fields, dict):
            return FrontMatter(fields=fields, body=text[closing.end() :])
    return FrontMatter(fields={}, body=text)


def _load(source: str, path: str, first: int) -> tuple[Any, list[Problem]]:
    """Return the fields, or the defect, of YAML that starts at line ``first`` of its file."""
    fields = load(source, "yaml")
    if not isinstance(fields, Defect):
        problems = []
        if has_unfit(source, "yaml"):
            message = f"The front matter has {UNFIT} as escapes; they were left out."
            problems.append(warning(path, message, first))
        if found := _CUT.search(source):
            line = first + source.count("\n", 0, found.start())
            message = "The `description` ends before ` #`, a comment in YAML; put it in quotes."
            problems.append(warning(path, message, line))
        return fields, problems
    mended, quoted = _quote(source)
    again = load(mended, "yaml")
    if not quoted or isinstance(again, Defect):
        return fields, []
    message = "The value of `{}` is not valid YAML and was read as plain text; put it in quotes."
    return again, [warning(path, message.format(key), first + line) for line, key in quoted]


def _quote(source: str) -> tuple[str, list[tuple[int, str]]]:
    """Quote every value that is not valid YAML (``Use when: it contains a colon``).

    Returns:
        The YAML with the same number of lines, and the line (from 0) and key of each quoted value.
    """
    lines = source.split("\n")
    quoted = []
    at = 0
    while at < len(lines):
        entry = _ENTRY.fullmatch(lines[at])
        after = at + 1
        if entry:
            indent = len(entry[1])
            while after < len(lines) and _continues(lines[after], indent):
                after += 1
            if isinstance(load("\n".join(lines[at:after]), "yaml"), Defect):
                value = " ".join([entry[3], *map(str.strip, lines[at + 1 : after])])
                escaped = value.strip().replace("'", "''")
                lines[at:after] = [f"{entry[1]}{entry[2]}: '{escaped}'", *[""] * (after - at - 1)]
                quoted.append((at, entry[2]))
        at = after
    return "\n".join(lines), quoted


def _continues(line: str, indent: int) -> bool:
    return not line.strip() or len(line) - len(line.lstrip(" ")) > indent


def _broken(text: str, path: str, line: int, message: str) -> FrontMatter:
    return FrontMatter(fields=None, body=text, problems=[error(path, message, line)])
