"""Edits entries in TOML. A new entry becomes a table at the end of the file.

A line that begins with ``[`` does not always start a table: it may be part of a list or of a
multi-line string.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from repertory.agent_hosts.edits import EditError, Keys, Value, newline_of
from repertory.sources.reading.toml import TomlError, parse

_BARE = re.compile(r"[A-Za-z0-9_-]+")
# Strings and comments (which may contain brackets), brackets, and line breaks. An unterminated
# string extends to the end, so that matching takes linear time.
_TOKEN = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+"{0,5}'
    r"|'{3}(?:[^']++|'(?!''))*+'{0,5}"
    r'|"(?:[^"\\\n]++|\\.)*+"?'
    r"|'[^'\n]*+'?|#[^\n]*+|[\[\]{}\n]",
    re.DOTALL,
)


def read(text: str) -> dict[str, Any]:
    """Parse a text.

    Raises:
        EditError: The text is not TOML.
    """
    try:
        return parse(text)
    except TomlError as error:
        raise EditError(f"the TOML cannot be read: {error}; correct it", error.line) from error


def put(text: str, keys: Keys, value: Value) -> str:
    """Add a table at the end, or replace the table of the same name. Returns the new text.

    Raises:
        EditError: The entry or a parent of it is not written as a table, but as an inline value.
    """
    newline = newline_of(text)
    lines = [f"[{'.'.join(map(_key, keys))}]"]
    lines += [f"{_key(key)} = {_dump(part)}" for key, part in value.items()]
    table = newline.join(lines)
    tables = list(_tables(text, keys))
    if tables:
        end = newline if text[: tables[0][1]].endswith("\n") else ""
        for start, stop in reversed(tables[1:]):
            text = text[:start] + text[stop:]
        start, stop = tables[0]
        return text[:start] + table + end + text[stop:]
    _check_is_open(text, keys)
    if not text:
        return table + newline
    if text.endswith("\n"):
        return text + newline + table + newline
    return text + newline + newline + table


def cut(text: str, keys: Keys, *, keep: bool) -> str:  # noqa: ARG001 - TOML needs no parent table
    """Remove an entry and the empty line before it. Returns the new text.

    Raises:
        EditError: The entry is not written as a table.
    """
    tables = list(_tables(text, keys))
    if not tables:
        raise _closed(keys)
    newline = newline_of(text)
    for start, stop in reversed(tables):
        before, after = text[:start], text[stop:]
        if not text[:stop].endswith("\n"):
            before = before.removesuffix(newline)
            before = before.removesuffix(newline)
        elif before.endswith(2 * newline):
            before = before.removesuffix(newline)
        text = before + after
    return text


def _tables(text: str, keys: Keys) -> Iterator[tuple[int, int]]:
    """The ranges of an entry's table and its subtables, without the comments after each."""
    starts = list(_starts(text))
    for start, after in zip(starts, [*starts[1:], len(text)], strict=False):
        whole = text[start:after]
        if _names(whole.partition("\n")[0].rstrip())[: len(keys)] != keys:
            continue
        lines = whole.splitlines(keepends=True)
        while not lines[-1].strip() or lines[-1].lstrip().startswith("#"):
            lines.pop()
        table = "".join(lines)
        is_same = _is_toml(table) and parse(table) == parse(whole)
        yield start, start + len(table if is_same else whole)


def _starts(text: str) -> Iterator[int]:
    """The offsets of the lines that start a table. The text must be valid TOML."""
    depth = line = 0
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "\n":
                line = token.end()
            case "[" | "{":
                if depth == 0 and not text[line : token.start()].strip():
                    yield line
                depth += 1
            case "]" | "}":
                depth -= 1


def _names(header: str) -> Keys:
    """The keys in a table's header; empty for an array of tables."""
    names: list[str] = []
    try:
        value: object = parse(header)
    except TomlError:
        return ()
    while isinstance(value, dict) and value:
        name, value = next(iter(value.items()))
        names.append(name)
    return () if isinstance(value, list) else tuple(names)


def _is_toml(text: str) -> bool:
    try:
        parse(text)
    except TomlError:
        return False
    return True


def _check_is_open(text: str, keys: Keys) -> None:
    """Check that no inline value prevents adding a table for an entry.

    Raises:
        EditError: The entry or a parent of it is written as an inline value.
    """
    value: object = read(text)
    for key in keys:
        if not isinstance(value, dict):
            raise _closed(keys)
        if key not in value:
            return
        value = value[key]
    raise _closed(keys)


def _closed(keys: Keys) -> EditError:
    name = ".".join(keys)
    return EditError(f"{name} is not written as a table [{name}]; write it so, or by hand")


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _dump(key)


def _dump(value: object) -> str:
    """A value on one line. TOML strings are written like JSON strings, except for DEL."""
    if isinstance(value, Mapping):
        parts = ", ".join(f"{_key(key)} = {_dump(part)}" for key, part in value.items())
        return f"{{ {parts} }}" if parts else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_dump, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
