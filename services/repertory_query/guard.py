"""The middleware for every request: size limits, caller, rate limit, log and metrics."""

import logging
import time

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from repertory.system.logs import CALLER
from repertory.telemetry import spans
from repertory.wire import V1
from repertory_query.access.callers import Access, is_open
from repertory_query.access.limits import bounded, check_address, check_rate
from repertory_query.access.rates import Rates
from repertory_query.problems import failure, refusal
from repertory_query.records.auditing import AuditTrail
from repertory_query.records.metrics import Metrics, known_method
from repertory_query.records.request_usage import collecting

# Tell browsers to guess no media type, cache nothing, and load nothing into pages of other sites.
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}

CLIENT_CLOSED = 499  # the status that nginx logs for it, too

_log = logging.getLogger(__name__)


class Guard:
    """Middleware that refuses requests before they reach a route."""

    def __init__(self, app: ASGIApp, access: Access, rates: Rates) -> None:
        self._app = app
        self._access = access
        self._rates = rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            check_address(scope)
            state = scope.setdefault("state", {})
            state["provider"] = self._access.provider
            if not is_open(scope):
                caller = state["caller"] = await self._access.caller(HTTPConnection(scope))
                CALLER.set(caller.who)
                check_rate(self._rates, caller.who)
            receive = bounded(scope, receive)
        except HTTPException as error:
            await refusal(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)


class RequestRecorder:
    """Middleware that logs, measures and records each request, and answers unexpected failures."""

    def __init__(self, app: ASGIApp, metrics: Metrics, trail: AuditTrail) -> None:
        self._app = app
        self._metrics = metrics
        self._trail = trail

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif not spans.are_on() or is_open(scope):
            await self._recorded(scope, receive, send)
        else:
            with spans.span("HTTP", kind=spans.Kind.SERVER, parent=_trace_of(scope)) as span:
                method, route, status = await self._recorded(scope, receive, send)
                attributes: dict[str, str | int] = {
                    "http.request.method": method,
                    "http.route": route,  # not the path and the query, which a caller wrote
                    "http.response.status_code": status,
                }
                span.note(attributes, f"{method} {route}", failed=status >= 500)

    async def _recorded(self, scope: Scope, receive: Receive, send: Send) -> tuple[str, str, int]:
        """Handle one request, and return its method, its route and the status of the answer."""
        method = scope["method"]
        if method == "HEAD":  # the server omits the body of the answer
            scope = {**scope, "method": "GET"}
        began = time.perf_counter()
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        receive = self._trail.listening(scope, receive)
        with collecting() as usage:
            try:
                await self._app(scope, receive, sending)
            except ClientDisconnect:  # an answer would not be read
                status = status or CLIENT_CLOSED
            # The outermost boundary: the answer reveals nothing about the error.
            except Exception as error:
                response = failure(error)
                if not status:
                    await response(scope, receive, sending)
        seconds = time.perf_counter() - began
        self._trail.request(scope, status, seconds, usage)
        route = getattr(scope.get("route"), "path", "none")  # never the path: callers choose it
        route = route.removeprefix(V1)  # one name with and without the version
        self._metrics.request(method, route, status, seconds)
        caller = scope.get("state", {}).get("caller")
        _log.log(
            logging.DEBUG if is_open(scope) else logging.INFO,
            "request",
            extra={
                "method": method,
                "route": route,
                "status": status,
                "ms": round(seconds * 1_000, 1),
                "caller": caller.who if caller else "",
            },
        )
        return known_method(method), route, status


def _trace_of(scope: Scope) -> dict[str, str]:
    """The headers that continue a trace."""
    return {
        name.decode(): value.decode("latin-1")
        for name, value in scope["headers"]
        if name in (b"traceparent", b"tracestate")
    }
