"""Untrusted YAML, JSON and TOML, read into plain JSON values.

The values have a bounded depth, hold cleaned text, and always encode as JSON. No tag constructs an
object, and YAML aliases are rejected: a few lines of aliases can expand to gigabytes.
"""

import math
import re
from typing import Any, TypeAlias

import msgspec
import yaml

from repertory.sources.reading import toml
from repertory.text import clean, is_clean

MAX_DEPTH = 64  # levels of nesting; libyaml and JSON encoders fail on many more
_MAX_TAG_DIRECTIVES = 100  # libyaml compares each with all before it

_PLAIN_WORDS = {"": None, "~": None, "true": True, "false": False, "null": None}
_INTEGER = re.compile(r"[-+]?(0|[1-9]\d{0,17})")
_FLOAT = re.compile(r"[-+]?\d{1,18}\.\d{1,18}([eE][-+]?\d{1,2})?")
_BYTE = re.compile(r"\(byte (\d+)\)")


Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None


class Defect(msgspec.Struct, frozen=True):
    """Why a text could not be read, and the line from 1, if known."""

    message: str
    line: int | None = None


def load(  # noqa: PLR0911 - one for each defect
    text: str, syntax: str
) -> dict[str, Json] | list[Json] | Defect:
    """Read a mapping or a list from ``yaml``, ``json`` or ``toml``, or return its defect.

    An empty text is an empty mapping.
    """
    value: Json | Defect
    try:
        raw = _decoded(text, syntax)
        value = raw if isinstance(raw, Defect) else plain(raw)
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        return Defect(f"the YAML cannot be read: {exc.problem}", mark.line + 1 if mark else None)
    except yaml.reader.ReaderError as exc:
        line = text.count("\n", 0, exc.position) + 1
        return Defect(f"the YAML cannot be read: {exc.reason} (U+{exc.character:04X})", line)
    except toml.TomlError as exc:
        return Defect(f"the TOML cannot be read: {exc}", exc.line)
    except RecursionError:
        return Defect("it is nested too deeply")
    except ValueError as exc:
        return Defect(str(exc))
    if isinstance(value, Defect | dict | list):
        return value
    return {} if value is None else Defect("it is one value, not a mapping or a list", 1)


def has_unfit(text: str, syntax: str) -> bool:
    """Whether escapes in a text that ``load`` reads name characters that it leaves out."""
    return "\\" in text and not is_fit(_decoded(text, syntax))


def is_fit(value: object) -> bool:
    """Whether all texts and keys of a value of bounded depth are clean."""
    if isinstance(value, str):
        return is_clean(value)
    if isinstance(value, dict):
        return all(map(is_fit, value)) and all(map(is_fit, value.values()))
    return not isinstance(value, list | tuple) or all(map(is_fit, value))


def _decoded(text: str, syntax: str) -> object:
    """Decode a text without ``plain``."""
    if syntax == "yaml":
        return _Yaml(text).document()
    return toml.parse(text) if syntax == "toml" else decode_json(text)


def plain(value: object, max_depth: int = MAX_DEPTH) -> Json:  # noqa: PLR0911 - one for each type
    """Convert a value to plain JSON: cleaned text, text keys, other types as text.

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
    """Builds a value from the parser's events, so that every bound holds during reading.

    Composing a whole tree first, as PyYAML's own loaders do, overflows the C stack on a few
    kilobytes of brackets.
    """

    def __init__(self, text: str) -> None:
        if _has_many_tag_directives(text):
            raise ValueError(f"it has more than {_MAX_TAG_DIRECTIVES} %TAG directives")
        self._next = getattr(yaml, "CBaseLoader", yaml.BaseLoader)(text).get_event

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
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event)
        if isinstance(event, yaml.AliasEvent):
            raise _fault(
                "an alias (*name) is not allowed; write the value out, or put a text in quotes",
                event,
            )
        if depth == MAX_DEPTH:
            raise _fault(f"it is nested more than {MAX_DEPTH} levels deep", event)
        if isinstance(event, yaml.SequenceStartEvent):
            values = []
            while not isinstance(event := self._next(), yaml.SequenceEndEvent):
                values.append(self._value(event, depth + 1))
            return values
        mapping = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise _fault("a key that is not text is not allowed", event)
            mapping[event.value] = self._value(self._next(), depth + 1)
        return mapping


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
    mark: Any = (
        event.start_mark
    )  # of the C or the Python parser, which have different types in the stubs
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
