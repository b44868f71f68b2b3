"""Parses untrusted TOML within limits."""

import re
import tomllib
from typing import Any

MAX_DEPTH = 64  # levels of nesting, and parts of a key

# The time to parse a key is quadratic in the number of its parts.
_PART = r"(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')"
_LONG_KEY = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MAX_DEPTH}}}")
_LINE = re.compile(r"\(at line (\d+),")


class TomlError(ValueError):
    """The reason why TOML cannot be read.

    Attributes:
        line: The line from 1, if known.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def parse(text: str) -> dict[str, Any]:
    """Parse TOML with at most ``MAX_DEPTH`` levels.

    Raises:
        TomlError: It cannot be read.
    """
    if long := _LONG_KEY.search(text):
        line = text.count("\n", 0, long.start()) + 1
        raise TomlError(f"a key has more than {MAX_DEPTH} parts", line)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        found = _LINE.search(str(exc))
        raise TomlError(str(exc), int(found[1]) if found else None) from exc
    except RecursionError as exc:
        raise TomlError("it is nested too deeply") from exc
    except ValueError as exc:  # Python refuses to convert it
        raise TomlError("a number has too many digits") from exc
    _check_depth(document, MAX_DEPTH)
    return document


def _check_depth(value: object, levels: int) -> None:
    if not isinstance(value, dict | list):
        return
    if levels == 0:
        raise TomlError("it is nested too deeply")
    for one in value.values() if isinstance(value, dict) else value:
        _check_depth(one, levels - 1)
