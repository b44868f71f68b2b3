"""Reports every failure as ``application/problem+json`` (RFC 9457), or to a browser as a page."""

import logging
import secrets
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from repertory.errors import (
    CallError,
    CallsOffError,
    CallTimeoutError,
    ModelError,
    RepertoryError,
    StoreError,
    UnknownFilterError,
    UnknownItemError,
    UsageError,
)
from repertory.wire import Refusal
from repertory_query.backend.caller_view import text_for
from repertory_query.pages.page import TO_PROGRAMS, problem_page, wants_page

PROBLEM = "application/problem+json"
RETRY_AFTER_S = 2  # an unavailable part is retried once a second

_log = logging.getLogger(__name__)


class Problem(Response):
    """The response that reports a problem, as JSON or as a page, depending on the caller."""

    def __init__(self, found: Refusal, headers: Mapping[str, str] | None) -> None:
        super().__init__(msgspec.json.encode(found), found.status, headers, PROBLEM)
        self._found = found
        self._more = headers or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        request = HTTPConnection(scope)
        if wants_page(request):
            await problem_page(request, self._found, self._more)(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def problem(
    status: int,
    detail: str,
    headers: Mapping[str, str] | None = None,
    **more: Any,  # noqa: ANN401 - fields of ``Refusal``
) -> Response:
    """The response that reports a problem."""
    fields = {"side": _SIDES.get(status, "caller"), **more}
    title = HTTPStatus(status).phrase
    found = Refusal(type="about:blank", title=title, status=status, detail=detail, **fields)
    return Problem(found, headers)


def refusal(error: HTTPException, *, error_is_message: bool = False) -> Response:
    """The response to a refused request; see ``Operation`` for ``error_is_message``."""
    detail = _DETAILS.get(error.detail, error.detail)
    more = {"error": detail} if error_is_message else {}
    return problem(error.status_code, detail, error.headers, **more)


def failure(error: Exception) -> Response:
    """The response to an unexpected error: it reveals nothing; the log has the details."""
    return problem(500, incident("request_failed", error))


def incident(event: str, error: Exception) -> str:
    """Log an unexpected error under a number, and return a message with only this number.

    Args:
        event: The name of the log event.
        error: The error.
    """
    number = secrets.token_hex(4)
    _log.error(event, extra={"incident": number}, exc_info=error)
    return f"Something went wrong here; the server's log has the details, under {number}."


def install(app: Starlette) -> None:
    """Make an application report its failures as problems."""

    async def refused(request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            return failure(error)
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            error.headers = {"Allow": ", ".join(_methods(app, request.scope))}
        return refusal(error, error_is_message=_error_is_message(request))

    async def failed(request: Request, error: Exception) -> Response:
        status = status_of(error)
        if not status:
            return failure(error)
        detail = text_for(getattr(request.state, "caller", None), str(error))
        headers = {"Retry-After": str(RETRY_AFTER_S)} if status == 503 else None
        named = detail if _error_is_message(request) else type(error).__name__
        return problem(status, detail, headers, error=named)

    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(RepertoryError, failed)


def status_of(error: BaseException | None) -> int:
    """The HTTP status for one of our errors; 0 for any other error."""
    return next((_STATUS[kind] for kind in type(error).mro() if kind in _STATUS), 0)


def _error_is_message(request: Request) -> bool:
    return getattr(request.state, "error_is_message", False)


def _methods(app: Starlette, scope: Scope) -> list[str]:
    """The methods of all routes of a path; the framework only names those of the first route."""
    known = [
        method
        for method in ("GET", "POST")
        if any(route.matches({**scope, "method": method})[0] is Match.FULL for route in app.routes)
    ]
    return ["GET", "HEAD", *known[1:]] if "GET" in known else known


_STATUS: dict[type, int] = {  # by the class of the error
    UnknownItemError: 404,
    UnknownFilterError: 404,
    CallsOffError: 403,
    UsageError: 422,
    CallTimeoutError: 504,
    CallError: 502,
    ModelError: 503,
    StoreError: 503,
}

# The side that failed, by status; all others are the caller's.
_SIDES = {500: "us", 502: "server", 503: "us", 504: "server"}

_DETAILS = {  # replacements for the framework's texts
    "Not Found": f"There is nothing at this address{TO_PROGRAMS}.",
    "Method Not Allowed": f"This address does not support this method{TO_PROGRAMS}.",
}
