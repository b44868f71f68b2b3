"""Untrusted YAML, JSON and TOML, read into plain JSON values.

The values have a bounded depth, contain cleaned text, and can always be encoded as JSON. Tags do
not construct objects. YAML aliases are rejected or limited, because a few lines of them can expand
to gigabytes.
"""

import math
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
import yaml

from repertory.errors import RepertoryError
from repertory.sources.reading import toml
from repertory.text import clean, is_clean

MAX_DEPTH = 64  # levels of nesting; libyaml and JSON encoders fail on many more
_MAX_TAG_DIRECTIVES = 100  # libyaml compares each with all earlier ones

_TEXTS = frozenset(("name", "title", "description"))  # top-level keys with values as written
_MERGE = "<<"  # the merge key: the entries of its value are added to the mapping around it

_PLAIN_WORDS = {"": None, "~": None, "true": True, "false": False, "null": None}
_INTEGER = re.compile(r"[-+]?(0|[1-9]\d{0,17})")
_FLOAT = re.compile(r"[-+]?\d{1,18}\.\d{1,18}([eE][-+]?\d{1,2})?")
_BYTE = re.compile(r"\(byte (\d+)\)")


Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None


class Defect(msgspec.Struct, frozen=True):
    """Why a text could not be read, and the line from 1, if known."""

    message: str
    line: int | None = None


def decoded(data: bytes, place: str, error: type[RepertoryError]) -> str:
    """Decode a file, without its byte order mark.

    Args:
        data: Its content.
        place: Its location, for the message.
        error: The class of the error for invalid UTF-8, whose message has the line.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        raise error(f"{place}:{line}: this is not UTF-8 text.") from exc


def load(text: str, syntax: str, max_repeated: int = 0) -> dict[str, Json] | list[Json] | Defect:
    """Read a mapping or a list from ``yaml``, ``json`` or ``toml``, or return its defect.

    An empty text is an empty mapping.

    Args:
        text: The text.
        syntax: Its syntax.
        max_repeated: The maximum number of characters and values that YAML aliases may repeat. With
            0, aliases are not allowed, and merge keys (``<<``) have no special meaning.
    """
    value: Json | Defect
    try:
        raw = _decoded(text, syntax, max_repeated)
        value = raw if isinstance(raw, Defect) else plain(raw)
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        lines = text.split("\n")[mark.line : mark.line + 1] if mark else []
        is_tab = any(line.lstrip(" ").startswith("\t") for line in lines)
        problem = "a tab indents it; use spaces" if is_tab else exc.problem
        return Defect(f"the YAML cannot be read: {problem}", mark.line + 1 if mark else None)
    except yaml.reader.ReaderError as exc:
        line = text.count("\n", 0, exc.position) + 1
        return Defect(f"the YAML cannot be read: {exc.reason} (U+{exc.character:04X})", line)
    except toml.TomlError as exc:
        return Defect(f"the TOML cannot be read: {exc}", exc.line)
    except ValueError as exc:
        return Defect(str(exc))
    if isinstance(value, Defect | dict | list):
        return value
    return {} if value is None else Defect("it is one value, not a mapping or a list", 1)


def has_unfit(text: str, syntax: str) -> bool:
    """Whether a text has escapes for characters that ``load`` removes."""
    return "\\" in text and not is_fit(_decoded(text, syntax))


def is_fit(value: object) -> bool:
    """Whether all texts and keys of a value of bounded depth are clean. CRLF is allowed."""
    if isinstance(value, str):
        return is_clean(value.replace("\r\n", "\n"))
    if isinstance(value, dict):
        return all(map(is_fit, value)) and all(map(is_fit, value.values()))
    return not isinstance(value, list | tuple) or all(map(is_fit, value))


def _decoded(text: str, syntax: str, max_repeated: int = 0) -> object:
    """Decode a text without ``plain``."""
    if syntax == "yaml":
        return _Yaml(text, max_repeated).document()
    return toml.parse(text) if syntax == "toml" else decode_json(text)


def plain(value: object, max_depth: int = MAX_DEPTH) -> Json:  # noqa: PLR0911 - one for each type
    """Convert a value to plain JSON, with cleaned text, text keys, and other types as text.

    Raises:
        ValueError: It is nested too deeply.
    """
    if isinstance(value, str):
        return clean(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 64:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if not isinstance(value, dict | list | tuple):
        return clean(str(value))
    if max_depth == 0:
        raise ValueError("it is nested too deeply")
    if isinstance(value, dict):
        return {clean(str(key)): plain(inner, max_depth - 1) for key, inner in value.items()}
    return [plain(inner, max_depth - 1) for inner in value]


def plain_object(raw: Mapping[Any, Any]) -> dict[str, Json]:
    """A mapping as plain JSON; see ``plain``."""
    return {clean(str(key)): plain(inner) for key, inner in raw.items()}


def decode_json(text: str) -> Json | Defect:
    """Decode a JSON text without ``plain``; a ``Defect`` if it is invalid."""
    try:
        value: Json = msgspec.json.decode(text)
    except msgspec.DecodeError as exc:
        at = int(found[1]) if (found := _BYTE.search(str(exc))) else len(text.encode())
        message = str(exc).removeprefix("JSON is malformed: ")
        return Defect(f"the JSON cannot be read: {message}", text.encode()[:at].count(b"\n") + 1)
    except RecursionError:
        return Defect("it is nested too deeply")
    return value


class _Yaml:
    """Builds a value from the parser's events, so that all limits apply during parsing.

    Composing a whole tree first, as PyYAML's own loaders do, overflows the C stack on a few
    kilobytes of brackets.
    """

    def __init__(self, text: str, max_repeated: int) -> None:
        if _has_many_tag_directives(text):
            raise ValueError(f"it has more than {_MAX_TAG_DIRECTIVES} %TAG directives")
        self._next = getattr(yaml, "CBaseLoader", yaml.BaseLoader)(text).get_event
        self._max_repeated = max_repeated
        self._repeated = 0
        self._size = 0  # characters and values so far, including repeated ones
        self._anchored: dict[str, tuple[Json, int]] = {}  # values with their sizes, by anchor

    def document(self) -> Json:
        self._next()
        if isinstance(self._next(), yaml.StreamEndEvent):
            return None
        value = self._value(self._next(), 0)
        self._next()
        end = self._next()
        if not isinstance(end, yaml.StreamEndEvent):
            raise _fault("it holds a second document", end)
        return value

    def _value(self, event: yaml.Event, depth: int) -> Json:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        before = self._size
        self._size += 1
        value: Json
        if isinstance(event, yaml.ScalarEvent):
            self._size += len(event.value)
            value = _scalar(event)
        elif depth == MAX_DEPTH:
            raise _fault(f"it is nested more than {MAX_DEPTH} levels deep", event)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self._sequence(depth)
        else:
            value = self._mapping(depth)
        if self._max_repeated and (anchor := getattr(event, "anchor", None)):
            self._anchored[anchor] = value, self._size - before
        return value

    def _alias(self, event: yaml.AliasEvent) -> Json:
        """The value of an alias."""
        if event.anchor not in self._anchored:
            wrong = "leads nowhere; check its name"
            if not self._max_repeated:
                wrong = "is not allowed; write the value out"
            raise _fault(f"an alias (*name) {wrong}, or put a text in quotes", event)
        value, size = self._anchored[event.anchor]
        self._size += size
        self._repeated += size
        if self._repeated > self._max_repeated:
            message = f"its aliases (*name) repeat more than {self._max_repeated:,} characters"
            raise _fault(message, event)
        return value

    def _sequence(self, depth: int) -> list[Json]:
        values = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            values.append(self._value(event, depth + 1))
        return values

    def _mapping(self, depth: int) -> dict[str, Json]:
        mapping: dict[str, Json] = {}
        merged: dict[str, Json] = {}  # overridden by the mapping's own entries
        while not isinstance(key := self._next(), yaml.MappingEndEvent):
            if not isinstance(key, yaml.ScalarEvent):
                raise _fault("a key that is not text is not allowed", key)
            self._size += len(key.value)
            event = self._next()
            value = self._value(event, depth + 1)
            if key.value == _MERGE and self._max_repeated:
                for one in value if isinstance(value, list) else [value]:
                    for name, inner in one.items() if isinstance(one, dict) else ():
                        merged.setdefault(name, inner)
                continue
            if depth == 0 and key.value in _TEXTS and isinstance(event, yaml.ScalarEvent):
                value = event.value if isinstance(value, int | float) else value  # such as 1.10
            mapping[key.value] = value
        return {**merged, **mapping} if merged else mapping


def _has_many_tag_directives(text: str) -> bool:
    if text.count("%TAG") <= _MAX_TAG_DIRECTIVES:
        return False
    return sum(line.startswith("%TAG") for line in text.splitlines()) > _MAX_TAG_DIRECTIVES


def _scalar(event: yaml.ScalarEvent) -> Json:
    """Convert a scalar by the core schema of YAML 1.2: ``no`` and dates are text."""
    text: str = event.value
    if not event.implicit[0]:
        return text
    if text.lower() in _PLAIN_WORDS:
        return _PLAIN_WORDS[text.lower()]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def _fault(problem: str, event: yaml.Event) -> yaml.MarkedYAMLError:
    mark: Any = event.start_mark  # the C and the Python parser have different types in the stubs
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
