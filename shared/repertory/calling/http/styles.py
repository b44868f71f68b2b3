"""Encodes parameter values in the styles of OpenAPI, which follow RFC 6570."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

from repertory.errors import ArgumentsError
from repertory.sources.openapi.operation import Parameter, Style

MAX_LENGTH = 100_000  # characters of one parameter
MAX_DEPTH = 8  # nesting levels of a ``deepObject`` value
# Not escaped with ``allowReserved``. The others, &, =, + and #, would change the pairs.
_RESERVED = ":/?[]@!$'()*,;"
_SEPARATORS = {"spaceDelimited": "%20", "pipeDelimited": "%7C", "label": "."}

Pair = tuple[str, str]

_encoded = partial(quote, safe="")


def text_of(value: object) -> str:
    """A string as it is; any other value as JSON."""
    return value if isinstance(value, str) else json_of(value)


def json_of(value: object) -> str:
    """A value as compact JSON; strings are quoted."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def in_path(parameter: Parameter, value: object) -> str:
    """A parameter as an encoded part of the path.

    Raises:
        ArgumentsError: The value is empty or consists of dots, which would change the path.
    """
    name, style = quote(parameter.name, safe=""), parameter.style
    if style == "json":
        return _fit(parameter, quote(json_of(value), safe=""))
    separator = _SEPARATORS.get(style, ",") if parameter.explode else ","
    if style == "matrix":
        pairs = _pairs(name, value) if parameter.explode else [(name, _joined(value, ","))]
        return _fit(parameter, "".join(f";{key}={one}" if one else f";{key}" for key, one in pairs))
    found = _joined(value, separator, parameter.explode)
    if found.strip(".") == "":
        raise ArgumentsError(
            f"The argument {parameter.argument} is a part of a path, so it needs a text that is "
            "not made of dots alone."
        )
    return _fit(parameter, f".{found}" if style == "label" else found)


def in_query(parameter: Parameter, value: object) -> list[Pair]:
    """A parameter as encoded name and value pairs of a query or a form.

    Raises:
        ArgumentsError: The value is too long or nested too deeply.
    """
    safe = _RESERVED if parameter.reserved else ""
    found = query_pairs(
        parameter.name, value, parameter.style, explode=parameter.explode, safe=safe
    )
    _fit(parameter, "".join(one for pair in found for one in pair))
    return found


def query_pairs(
    name: str, value: object, style: Style, *, explode: bool, safe: str = ""
) -> list[Pair]:
    """A value as encoded name and value pairs of a query or a form; see ``in_query``."""
    key = quote(name, safe="")
    if style == "json":
        return [(key, quote(text_of(value), safe=safe))]
    if style == "deepObject":
        return [(one, quote(text, safe=safe)) for one, text in _deep(key, value, 0)]
    if explode and style == "form":
        return _pairs(key, value, safe)
    separator = _SEPARATORS.get(style, ",")
    return [(key, _joined(value, separator, encode=partial(quote, safe=safe)))]


def in_header(parameter: Parameter, value: object) -> str:
    """A parameter as the value of a header.

    Raises:
        ArgumentsError: The value has characters that are not allowed in a header.
    """
    is_json = parameter.style == "json"
    found = text_of(value) if is_json else _joined(value, ",", parameter.explode, encode=str)
    if any(ord(character) < 32 or ord(character) == 127 for character in found):
        raise ArgumentsError(
            f"The argument {parameter.argument} is sent as a header, which cannot have line breaks "
            "and control characters."
        )
    return _fit(parameter, found.strip())


def in_cookie(parameter: Parameter, value: object) -> list[Pair]:
    """A parameter as cookies: pairs of a name and an encoded value."""
    found = query_pairs(parameter.name, value, parameter.style, explode=parameter.explode)
    _fit(parameter, "".join(one for pair in found for one in pair))
    return found


def _joined(
    value: object, separator: str, explode: bool = False, *, encode: Callable[[str], str] = _encoded
) -> str:
    """An encoded value; the elements of lists and objects are joined by the separator."""
    if isinstance(value, Mapping):
        between = "=" if explode else separator
        parts = [
            f"{encode(str(key))}{between}{encode(text_of(inner))}" for key, inner in value.items()
        ]
        return separator.join(parts)
    if isinstance(value, list):
        return separator.join(encode(text_of(inner)) for inner in value)
    return encode(text_of(value))


def _pairs(key: str, value: object, safe: str = "") -> list[Pair]:
    """A pair for each element of a list or each member of an object; one for any other value."""
    if isinstance(value, Mapping):
        return [
            (quote(str(name), safe=""), quote(text_of(inner), safe=safe))
            for name, inner in value.items()
        ]
    if isinstance(value, list):
        return [(key, quote(text_of(inner), safe=safe)) for inner in value]
    return [(key, quote(text_of(value), safe=safe))]


def _deep(key: str, value: object, depth: int) -> Iterator[tuple[str, str]]:
    """``key[name]`` and its text for each value in an object; list elements use their index."""
    if depth > MAX_DEPTH:
        raise ArgumentsError(f"The argument {key} is nested more than {MAX_DEPTH} levels deep.")
    inner: list[tuple[Any, Any]]
    if isinstance(value, Mapping):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    else:
        yield key, text_of(value)
        return
    for name, one in inner:
        yield from _deep(f"{key}[{quote(str(name), safe='')}]", one, depth + 1)


def _fit(parameter: Parameter, text: str) -> str:
    if len(text) > MAX_LENGTH:
        raise ArgumentsError(
            f"The argument {parameter.argument} has more than {MAX_LENGTH:,} characters; send less."
        )
    return text
