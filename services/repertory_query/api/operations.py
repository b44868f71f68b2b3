"""The operations of the API: what each takes, and how a request is read and answered."""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from repertory.errors import UsageError
from repertory.keys import Scope
from repertory.text import media_type_of, with_whole_characters
from repertory.wire import V1
from repertory_query.access import OPEN, require
from repertory_query.actions import Action, AuditedRoute
from repertory_query.api.schemas import REF, Schema

JSON = "application/json"
PROBLEM = "application/problem+json"
UNVERSIONED = OPEN | {"/metrics"}  # for probes and Prometheus

_UNREADABLE = "The body cannot be read; send JSON in UTF-8."

T = TypeVar("T")
Handler = Callable[[Request, T], Awaitable[Response]]


class Nothing(msgspec.Struct):
    """No parameters."""


class Operation(AuditedRoute, Generic[T]):
    """One operation: ``GET`` takes parameters of its address, ``POST`` a JSON body.

    Unknown parameters and fields are refused; only a probe may have any parameters.

    Args:
        method: ``GET`` or ``POST``.
        path: The path, with parameters as Starlette writes them.
        handler: Answers a request, given what it takes.
        takes: The type of the parameters or of the body.
        action: What it is recorded as in the audit log; None if it is not recorded.
        returns: The type of the JSON of the answer; None if ``content`` alone describes it.
        summary: A few words.
        tag: The group that it belongs to.
        status: The status of a success.
        scope: The scope that a caller needs.
        content: Schemas of the answer by media type, beside ``returns``.
        unready: The type of the JSON of a 503, if that is no problem.
        body: The JSON Schema of the body, if ``takes`` does not tell it.
        name: Its name in generated clients; that of the handler by default.
        text: A description; the handler's docstring by default.
        error_is_message: Whether ``error`` of a problem is its message instead of its class.
    """

    def __init__(  # noqa: PLR0913 - one for each part of a description
        self,
        method: str,
        path: str,
        handler: Handler[T],
        takes: type[T],
        *,
        action: Action | None,
        returns: Any = None,  # noqa: ANN401 - any type that msgspec knows
        summary: str,
        tag: str,
        status: int = 200,
        scope: Scope = Scope.READ,
        content: Mapping[str, Schema] | None = None,
        unready: Any = None,  # noqa: ANN401 - as above
        body: Schema | None = None,
        name: str = "",
        text: str = "",
        error_is_message: bool = False,
    ) -> None:
        super().__init__(method, path, self._answer, action=action)
        self.takes, self.returns, self.unready = takes, returns, unready
        self.tag, self.summary, self.status, self.content = tag, summary, status, content or {}
        self.body = body
        self.id = name or _camel(getattr(handler, "__name__", ""))
        self.text = text or inspect.cleandoc(handler.__doc__ or "")
        self._handler = handler
        self._scope = scope
        self._error_is_message = error_is_message

    async def _answer(self, request: Request) -> Response:
        request.state.error_is_message = self._error_is_message
        if self._scope is not Scope.READ:
            require(request.state.caller, self._scope)
        if self.path in UNVERSIONED:
            return await self._handler(request, self.takes())
        if self.method == "GET":
            return await self._handler(request, parameters(request, self.takes))
        parameters(request, Nothing)
        if self.takes is not Nothing:
            return await self._handler(request, await _body(request, self.takes))
        if "content-type" in request.headers:
            _require_json(request)  # a form of another site is none
        return await self._handler(request, self.takes())


class Operations:
    """Collects the operations of one group.

    Args:
        tag: The name of the group.
    """

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self.routes: list[AuditedRoute] = []

    def get(
        self,
        path: str,
        takes: type[T],
        **more: Any,  # noqa: ANN401 - what ``Operation`` takes
    ) -> Callable[[Handler[T]], Handler[T]]:
        """Add a ``GET``; see ``Operation``."""
        return self._add("GET", path, takes, more)

    def post(
        self,
        path: str,
        takes: type[T],
        **more: Any,  # noqa: ANN401 - as above
    ) -> Callable[[Handler[T]], Handler[T]]:
        """Add a ``POST``; see ``Operation``."""
        return self._add("POST", path, takes, more)

    def _add(
        self, method: str, path: str, takes: type[T], more: dict[str, Any]
    ) -> Callable[[Handler[T]], Handler[T]]:
        def added(handler: Handler[T]) -> Handler[T]:
            self.routes.append(Operation(method, path, handler, takes, tag=self._tag, **more))
            return handler

        return added


def answer(value: object, status: int = 200) -> Response:
    """A value as a JSON response."""
    return Response(msgspec.json.encode(value), status, media_type=JSON)


def parameters(request: Request, kind: type[T], *, is_form: bool = False) -> T:
    """The parameters of an address; the last of several counts.

    Args:
        request: The request.
        kind: A struct; its fields of several values collect repeated parameters.
        is_form: Whether it is a web form: empty values are missing ones, and unknown parameters,
            which links may add, are ignored.

    Raises:
        UsageError: One is missing, invalid or unknown.
    """
    fields = _components(kind)[kind.__name__]["properties"]  # type: ignore[arg-type]  # hashable
    given = request.query_params
    found: dict[str, Any] = {}
    for name in given:
        values = [value for value in given.getlist(name) if value or not is_form]
        if name not in fields and not is_form:
            raise UsageError(_refused(f"{name[:80]}: unknown"))
        if values and name in fields:
            found[name] = values if fields[name].get("type") == "array" else values[-1]
    try:
        return msgspec.convert(found, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid(error, kind) from error


async def _body(request: Request, kind: type[T]) -> T:
    """The JSON body of a request; a missing body is an empty object where that is enough.

    Raises:
        HTTPException: 400; it is not UTF-8, or too deep.
        UsageError: It is not JSON, or does not fit.
    """
    content = await request.body()
    if content:
        _require_json(request)
    if not content and kind is dict:
        content = b"{}"
    try:
        plain = _decoded(content)
        if kind is not dict:
            plain = _integral(plain)  # JSON has one kind of number: 5.0 is 5
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        raise _invalid(error, kind) from error
    except msgspec.DecodeError as error:
        raise UsageError(_refused("the body is no JSON")) from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise HTTPException(400, _UNREADABLE) from error


def _decoded(content: bytes) -> object:
    """The value of JSON; half a character in it becomes the replacement character."""
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError:
        return msgspec.json.decode(with_whole_characters(content))


def _require_json(request: Request) -> None:
    """Refuse a body of another media type.

    Raises:
        UsageError: It has another one.
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
    """The error in words; never with the content of a request, which may be large or secret."""
    what, _, path = str(error).rpartition(" - at `$")
    what, where = (what, path.rstrip("`").lstrip(".")) if what else (str(error), "")
    if field := re.fullmatch(r"Object (missing|contains unknown).* field `(.*)`", what, re.DOTALL):
        where = f"{where}.{field[2][:80]}".lstrip(".")
        what = "required" if field[1] == "missing" else "unknown"
    elif number := re.fullmatch(r"Expected `(int|float)(?: \| null)?`(?:, got .*|(.*))", what):
        what = _number_wanted(number[1], number[2] or "")
    elif what.startswith("Invalid enum value"):
        what = f"use one of {', '.join(map(repr, _allowed(kind, where)))}"
    elif not where:
        return UsageError(_refused("send a JSON object as application/json"))
    return UsageError(_refused(f"{where[:200]}: {what}"))


def _number_wanted(kind: str, bound: str) -> str:
    """Which number to use: of a kind, or within a bound such as `` >= 1``."""
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


def versioned(routes: Iterable[AuditedRoute]) -> list[AuditedRoute]:
    """The same routes below ``/v1``, except those that have no version."""
    return undescribed((one for one in routes if one.path not in UNVERSIONED), V1)


def undescribed(routes: Iterable[AuditedRoute], prefix: str = "") -> list[AuditedRoute]:
    """The same routes with a prefix, which the OpenAPI document does not describe."""
    return [
        AuditedRoute(one.method, prefix + one.path, one.endpoint, action=one.action)
        for one in routes
    ]


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
