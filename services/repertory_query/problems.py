"""Every failure as ``application/problem+json`` (RFC 9457): what is wrong, in words."""

import logging
import secrets
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope

from repertory.errors import RepertoryError, StoreError, UnknownItemError, UsageError

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER = 2  # seconds; what is away is looked for once a second
MOST_FAULTS = 5  # of a request, told at once

_log = logging.getLogger(__name__)


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """The response that tells of a problem."""
    content = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }
    return Response(msgspec.json.encode(content), status, headers, MEDIA_TYPE)


def refusal(error: HTTPException) -> Response:
    """The response to a request that was refused."""
    detail = _IN_OUR_WORDS.get(error.detail, error.detail)
    return problem(error.status_code, detail, error.headers)


def failure(error: Exception) -> Response:
    """The response to what nobody foresaw: nothing of it is told, all of it is logged."""
    incident = secrets.token_hex(4)
    _log.error("request_failed", extra={"incident": incident}, exc_info=error)
    return problem(500, f"Something went wrong here; the server's log says what, at {incident}.")


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
        if isinstance(error, UnknownItemError):
            return problem(404, str(error))
        if isinstance(error, UsageError):
            return problem(422, str(error))
        if isinstance(error, StoreError):
            return problem(503, str(error), {"Retry-After": str(RETRY_AFTER)})
        return failure(error)

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
            f"{where}: {fault['msg']}" if where else "send a JSON object as application/json"
        )
    more = f" ({len(faults) - MOST_FAULTS} more)" if len(faults) > MOST_FAULTS else ""
    return "The request cannot be read: " + "; ".join(told) + more + "."
