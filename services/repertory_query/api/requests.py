"""Decodes the query parameters or the JSON body of a request, with readable errors."""

import re
from collections.abc import Collection
from functools import cache
from typing import Any, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from repertory.errors import UsageError
from repertory.text import media_type_of, with_whole_characters
from repertory_query.api.schemas import REF, Schema

JSON = "application/json"

T = TypeVar("T")


def parameters_of(request: Request, kind: type[T], *, is_form: bool = False) -> T:
    """The query parameters of a request; if one is repeated, the last value counts.

    Args:
        request: The request.
        kind: A struct; its fields with several values collect repeated parameters.
        is_form: Whether it is a web form. Then empty values count as missing, and unknown
            parameters, which links may add, are ignored.

    Raises:
        UsageError: A parameter is missing, invalid or unknown.
    """
    fields = _components(kind)[kind.__name__]["properties"]  # type: ignore[arg-type]  # hashable
    given = request.query_params
    found: dict[str, Any] = {}
    for name in given:
        if name in fields:  # first, since ``getlist`` goes through all, possibly many, parameters
            values = [value for value in given.getlist(name) if value or not is_form]
            if values:
                found[name] = values if fields[name].get("type") == "array" else values[-1]
        elif not is_form:
            raise UsageError(_refused(f"{name[:80]}: {_unknown(name, fields)}"))
    try:
        return msgspec.convert(found, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid(error, kind) from error


async def body_of(request: Request, kind: type[T]) -> T:
    """The JSON body of a request; for ``dict``, a missing body is an empty object.

    Raises:
        HTTPException: 400 if it is not UTF-8, or nested too deeply.
        UsageError: It is not JSON, or does not fit the type.
    """
    content = await request.body()
    if content:
        require_json(request)
    if not content and kind is dict:
        content = b"{}"
    try:
        plain = _decoded(content)
        if kind is not dict:
            plain = _integral(plain)  # JSON has only one kind of number, so 5.0 is 5
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        raise _invalid(error, kind) from error
    except msgspec.DecodeError as error:
        raise UsageError(_refused("the body is not JSON")) from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise HTTPException(400, "The body cannot be read; send JSON in UTF-8.") from error


def _decoded(content: bytes) -> object:
    """The decoded JSON, with lone surrogates replaced by the replacement character.

    Raises:
        UnicodeDecodeError: It is not UTF-8.
    """
    content.decode()  # as msgspec before 0.23 does; later versions raise another error
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError:
        return msgspec.json.decode(with_whole_characters(content))


def require_json(request: Request) -> None:
    """Refuse a body that is not declared as JSON.

    Raises:
        UsageError: It has another media type.
    """
    media_type = media_type_of(request.headers.get("content-type", ""))
    if media_type != JSON and not re.fullmatch(r"application/\S+\+json", media_type):
        raise UsageError(_refused("send a JSON object as application/json"))


def _integral(value: object) -> object:
    if isinstance(value, dict):
        return {key: _integral(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_integral(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _invalid(error: msgspec.ValidationError, kind: type) -> UsageError:
    """The readable error, without the content of the request, which may be large or secret."""
    what, _, path = str(error).rpartition(" - at `$")
    what, where = (what, path.rstrip("`").lstrip(".")) if what else (str(error), "")
    if field := re.fullmatch(r"Object (missing|contains unknown).* field `(.*)`", what, re.DOTALL):
        where = f"{where}.{field[2][:80]}".lstrip(".")
        names = {name for one in _components(kind).values() for name in one.get("properties", {})}
        what = "required" if field[1] == "missing" else _unknown(field[2], names)
    elif number := re.fullmatch(r"Expected `(int|float)(?: \| null)?`(?:, got .*|(.*))", what):
        what = _number_wanted(number[1], number[2] or "")
    elif what.startswith("Invalid enum value"):
        what = f"use one of {', '.join(map(repr, _allowed(kind, where)))}"
    elif not where:
        return UsageError(_refused("send a JSON object as application/json"))
    return UsageError(_refused(f"{where[:200]}: {what}"))


def _unknown(name: str, fields: Collection[str]) -> str:
    """What is wrong with a name; before release 0.2, some had an underscore."""
    now = re.sub("_([a-z])", lambda found: found[1].upper(), name[:80])
    is_renamed = now != name and now in fields
    return f"unknown; since release 0.2, it is called {now}" if is_renamed else "unknown"


def _number_wanted(kind: str, bound: str) -> str:
    """The expected number: of a kind, or within a bound such as `` >= 1``."""
    if bound:
        return "use a number" + bound.replace(" >=", " of at least").replace(" <=", " of at most")
    return "use a whole number" if kind == "int" else "use a number"


def _refused(why: str) -> str:
    return f"The request cannot be read: {why}."


def _allowed(kind: type, where: str) -> list[str]:
    """The values of the enumeration at a path."""
    name = re.split(r"[.\[\]]+", re.sub(r"(?<!\])(\[\d+\])+$", "", where))[-1]
    for component in _components(kind).values():
        schema = component.get("properties", {}).get(name, {})
        reference = schema.get("items", schema).get("$ref", "")
        if reference:
            values: list[str] = _components(kind)[reference.rpartition("/")[2]].get("enum", [])
            return values
    return []


@cache
def _components(kind: type) -> dict[str, Schema]:
    _, components = msgspec.json.schema_components([kind], ref_template=REF)
    return components
