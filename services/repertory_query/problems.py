"""Every failure as ``application/problem+json`` (RFC 9457), or as a page for who reads pages."""

import logging
import secrets
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from repertory.errors import (
    CallError,
    CallsOffError,
    CallTimeoutError,
    ModelError,
    RepertoryError,
    StoreError,
    UnknownItemError,
    UsageError,
)
from repertory_query.pages import refused
from repertory_query.pages.page import wants_page

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER = 2  # seconds; what is away is looked for once a second
MOST_FAULTS = 5  # of a request, told at once

_log = logging.getLogger(__name__)


class Problem(Response):
    """The response that tells of a problem, in the form that suits whoever asked."""

    media_type = MEDIA_TYPE

    def __init__(self, content: dict[str, Any], headers: Mapping[str, str] | None) -> None:
        super().__init__(msgspec.json.encode(content), content["status"], headers)
        self._content = content
        self._more = headers or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        request = HTTPConnection(scope)
        if wants_page(request):
            await refused.page_of(request, self._content, self._more)(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def problem(
    status: int, detail: str, headers: Mapping[str, str] | None = None, **more: object
) -> Response:
    """The response that tells of a problem, with members of its own where it has some."""
    content = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "side": _SIDES.get(status, "caller"),
        **more,
    }
    return Problem(content, headers)


def refusal(error: HTTPException) -> Response:
    """The response to a request that was refused."""
    detail = _IN_OUR_WORDS.get(error.detail, error.detail)
    return problem(error.status_code, detail, error.headers)


def failure(error: Exception) -> Response:
    """The response to what nobody foresaw: nothing of it is told, all of it is logged."""
    incident = secrets.token_hex(4)
    _log.error("request_failed", extra={"incident": incident}, exc_info=error)
    return problem(500, f"Something went wrong here; the server's log says what, at {incident}.")


def told(error: Exception) -> Response:
    """The response to an error that was raised on purpose; its class is told as ``error``."""
    for kind, status in _STATUS.items():
        if isinstance(error, kind):
            headers = {"Retry-After": str(RETRY_AFTER)} if status == 503 else None
            return problem(status, str(error), headers, error=type(error).__name__)
    return failure(error)


def install(app: FastAPI) -> None:
    """Have an application tell its problems so."""

    async def refused(request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            return failure(error)
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            error.headers = {"Allow": ", ".join(_methods(app, request.scope))}
        return refusal(error)

    async def invalid(_: Request, error: Exception) -> Response:
        faults = error.errors() if isinstance(error, RequestValidationError) else []
        return problem(422, _in_words(faults))

    async def failed(_: Request, error: Exception) -> Response:
        return told(error)

    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(RepertoryError, failed)


def _methods(app: FastAPI, scope: Scope) -> list[str]:
    """The methods that an address knows: of all its routes, where the framework tells the first."""
    known = [
        method
        for method in ("GET", "POST")
        if any(route.matches({**scope, "method": method})[0] is Match.FULL for route in app.routes)
    ]
    return ["GET", "HEAD", *known[1:]] if "GET" in known else known


_STATUS = {  # by the class of the error, the special ones first
    UnknownItemError: 404,
    CallsOffError: 403,
    UsageError: 422,
    CallTimeoutError: 504,
    CallError: 502,
    ModelError: 503,
    StoreError: 503,
}

# Which side failed, where it was not the caller's.
_SIDES = {500: "us", 502: "server", 503: "us", 504: "server"}

_IN_OUR_WORDS = {  # what the framework says of requests that it cannot route or read
    "Not Found": "There is nothing at this address; /openapi.json lists what there is.",
    "Method Not Allowed": "This address knows no such method; /openapi.json lists what there is.",
    "There was an error parsing the body": "The body cannot be read; send JSON in UTF-8.",
}


def _in_words(faults: Sequence[Mapping[str, Any]]) -> str:
    """What is wrong with a request; never what it held, which may be large or secret."""
    told = []
    for fault in faults[:MOST_FAULTS]:
        if fault["type"] == "json_invalid":
            told.append("the body is no JSON")
            continue
        where = ".".join(str(part)[:80] for part in fault["loc"] if part not in ("query", "body"))
        told.append(
            f"{where[:200]}: {fault['msg']}" if where else "send a JSON object as application/json"
        )
    more = f" ({len(faults) - MOST_FAULTS} more)" if len(faults) > MOST_FAULTS else ""
    return "The request cannot be read: " + "; ".join(told) + more + "."
