"""The operations of the API: routes that describe their parameters and their answers."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from repertory.keys import Scope
from repertory.wire import V1
from repertory_query.access.callers import OPEN, require
from repertory_query.api.requests import JSON, body_of, parameters_of, require_json
from repertory_query.api.schemas import Schema
from repertory_query.records.actions import Action, AuditedRoute

UNVERSIONED = OPEN | {"/metrics"}  # for probes and Prometheus

T = TypeVar("T")
Handler = Callable[[Request, T], Awaitable[Response]]


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """No parameters."""


class Operation(AuditedRoute, Generic[T]):
    """One operation: ``GET`` takes query parameters, ``POST`` a JSON body.

    Unknown parameters and fields are refused, except that probes ignore all parameters.

    Args:
        method: ``GET`` or ``POST``.
        path: The path, with parameters in Starlette's syntax.
        handler: Answers a request, given its parameters or its body.
        takes: The type of the parameters or of the body.
        action: The action in the audit log; None if requests are not recorded.
        returns: The type of the JSON answer; None if only ``content`` describes it.
        summary: A few words.
        tag: The group that it belongs to.
        status: The status of a success.
        scope: The scope that a caller needs.
        content: Further schemas of the answer, by media type.
        unready: The type of the JSON of a 503, if that is not a ``Refusal``.
        body: The JSON Schema of the body, if ``takes`` does not describe it.
        name: Its name in generated clients; by default that of the handler.
        text: A description; by default the handler's docstring.
        error_is_message: Whether the field ``error`` of a problem is its message instead of its
            class.
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
            return await self._handler(request, parameters_of(request, self.takes))
        parameters_of(request, Nothing)
        if self.takes is not Nothing or await request.body():
            return await self._handler(request, await body_of(request, self.takes))
        if "content-type" in request.headers:
            require_json(request)  # refuses forms, which other sites can send
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


def versioned(routes: Iterable[AuditedRoute]) -> list[AuditedRoute]:
    """The same routes below ``/v1``, except those without a version."""
    return undescribed((one for one in routes if one.path not in UNVERSIONED), V1)


def undescribed(routes: Iterable[AuditedRoute], prefix: str = "") -> list[AuditedRoute]:
    """The same routes with a prefix, left out of the OpenAPI document."""
    return [
        AuditedRoute(one.method, prefix + one.path, one.endpoint, action=one.action)
        for one in routes
    ]


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
