"""Records requests in the audit log, each as the action of its route."""

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import HTTPConnection, Request
from starlette.routing import Match, Route
from starlette.types import Message, Receive, Scope

from repertory.audit import Audit, outcome_of
from repertory.usage.recorder import UsageRecorder
from repertory.wire import RECORDED
from repertory_query.access.callers import OWNER, Caller
from repertory_query.access.rates import Rates
from repertory_query.records.actions import MCP, AuditedRoute
from repertory_query.records.request_usage import RequestUsage

MAX_REFUSALS = 60  # recorded per minute for unidentified callers, so that they cannot flood the log
MAX_TEXT_SIZE = 16_384  # bytes of a body that is recorded as text

_REFUSED = "refused"  # the name under which refusals are counted; no caller has it


def name_items(request: Request, what: Iterable[str]) -> None:
    """Name the items of a request for its line in the log."""
    request.state.audited = [*what]


class AuditTrail:
    """Records the requests of one application.

    Args:
        audit: The log.
        usage: Records searches and uses.
        rates: Counts refusals.
    """

    def __init__(self, audit: Audit, usage: UsageRecorder, rates: Rates) -> None:
        self._audit = audit
        self._usage = usage
        self._rates = rates

    def listening(self, scope: Scope, receive: Receive) -> Receive:
        """Wrap ``receive`` to keep the body of a request for the log, if texts are recorded."""
        if not self._audit.has_texts or scope["method"] != "POST":
            return receive
        body = scope.setdefault("state", {})["body"] = bytearray()

        async def kept() -> Message:
            message = await receive()
            if len(body) < MAX_TEXT_SIZE:
                body.extend(message.get("body", b"")[:MAX_TEXT_SIZE])
            return message

        return kept

    def request(self, scope: Scope, status: int, seconds: float, usage: RequestUsage) -> None:
        """Record the usage of an answered request and, if its route has one, its action."""
        route, given = _route_of(scope)
        state: dict[str, Any] = scope.get("state", {})
        caller: Caller | None = state.get("caller")
        if caller is not None:
            is_page = route is not None and route.face == "page"
            usage.record(self._usage, caller.who, is_typed=is_page)
        action = route.action if route else None
        if (
            route is None
            or action is None
            or state.get("is_recorded")
            or _records_itself(scope, caller)
        ):
            return
        if action is MCP and status < 400:
            return
        if caller is None and self._rates.wait(_REFUSED, MAX_REFUSALS):
            return
        parameters = parse_qs(scope["query_string"].decode("utf-8", "replace"))
        if action.needs and action.needs not in parameters:
            return
        named = given.get(action.what) or parameters.get(action.what, [])
        what = [named] if isinstance(named, str) else named
        has_text = action.has_text and self._audit.has_texts
        self._audit.record(
            action.name,
            caller.who if caller else _address(scope),
            route.face,
            outcome=outcome_of(status),
            what=state.get("audited", what),
            status=status,
            seconds=seconds,
            text=_text(parameters, state.get("body", b"")) if has_text else "",
        )


def _route_of(scope: Scope) -> tuple[AuditedRoute | None, Mapping[str, Any]]:
    """The route of a request and the parameters of its path, even if no handler was reached."""
    route, given = scope.get("route"), scope.get("path_params", {})
    if not isinstance(route, Route) and "app" in scope:
        for one in scope["app"].routes:
            match, more = one.matches(scope)
            if match is Match.FULL:
                route, given = one, more.get("path_params", {})
                break
    if not isinstance(route, AuditedRoute):
        return None, given
    # An MCP request with a method that the server does not accept is recorded, too.
    answers = scope["method"] == route.method or route.action is MCP
    return route if answers else None, given


def _records_itself(scope: Scope, caller: Caller | None) -> bool:
    """Whether the caller is `repertory mcp` of our own user, which records its own actions."""
    return caller is OWNER and RECORDED in HTTPConnection(scope).headers


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return f"address:{client[0] if client else ''}"


def _text(parameters: Mapping[str, list[str]], body: bytes) -> str:
    """The parameters and the body of a request, as JSON."""
    sent = {"body": bytes(body).decode("utf-8", "replace")} if body else {}
    return json.dumps({**parameters, **sent}, ensure_ascii=False) if parameters or sent else ""
