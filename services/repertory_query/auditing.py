"""Which requests are recorded in the audit log, and under which name."""

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qs

import msgspec
from starlette.requests import HTTPConnection, Request
from starlette.routing import Match, Route
from starlette.types import Message, Receive, Scope

from repertory.audit import Audit, outcome_of
from repertory.functions.table import FUNCTIONS, PORTABLE
from repertory.usage.recorder import UsageRecorder
from repertory.wire import RECORDED, V1
from repertory_query.access import Caller
from repertory_query.noted import Noted
from repertory_query.rates import Rates

MAX_REFUSALS = 60  # a minute of callers without a name, so that they cannot flush the log
MAX_TEXT_SIZE = 16_384  # bytes of a body that is recorded as text


class Action(msgspec.Struct, frozen=True):
    """What a route does.

    Attributes:
        name: The action.
        what: The parameter of the path or the address with an id; empty if the handler knows it.
        face: Which interface it belongs to.
        has_text: Whether its parameters and body are a query or arguments, which may be recorded.
        needs: The parameter without which the request does nothing.
    """

    name: str
    what: str = ""
    face: str = "http"
    has_text: bool = False
    needs: str = ""


# The routes by method and path, without the version. What is not here is not recorded.
ACTIONS = {
    ("GET", "/search"): Action("search", has_text=True),
    ("POST", "/search"): Action("search", has_text=True),
    ("GET", "/explain"): Action("explain", "item", has_text=True),
    ("GET", "/items"): Action("list"),
    ("POST", "/items"): Action("read"),
    ("GET", "/items/{item_id:path}"): Action("read", "item_id"),
    ("POST", "/skills/files"): Action("read"),
    ("GET", "/skills/file"): Action("read", "item"),
    ("GET", "/runtime/tools.ts"): Action("read", "filter"),
    ("GET", "/reviews/history"): Action("read", "item"),
    ("POST", "/tools/{tool_id:path}"): Action("call", "tool_id", has_text=True),
    ("POST", "/reviews/approve"): Action("approve"),
    ("GET", "/insights"): Action("insights"),
    ("GET", "/insights/unanswered"): Action("insights"),
    ("POST", "/rebuild"): Action("rebuild"),
    ("GET", "/export/{collection}"): Action("export", "collection"),
    ("POST", "/queue/retry"): Action("retry"),
    ("GET", "/"): Action("search", face="page", has_text=True, needs="q"),
    ("GET", "/catalogue"): Action("list", face="page"),
    ("GET", "/why"): Action("explain", "item", face="page", has_text=True, needs="q"),
    ("GET", "/view/{item_id:path}"): Action("read", "item_id", face="page"),
    ("GET", "/try/{item_id:path}"): Action("read", "item_id", face="page"),
    ("POST", "/try/{item_id:path}"): Action("call", "item_id", face="page", has_text=True),
    ("POST", "/status/reviews"): Action("approve", face="page"),
    ("GET", "/status/insights"): Action("insights", face="page"),
    ("POST", "/status/trust"): Action("trust", face="page"),
    ("POST", "/status/retry"): Action("retry", face="page"),
    ("POST", "/status/rebuild"): Action("rebuild", face="page"),
    ("POST", "/status/policies"): Action("policy", face="page"),
    ("POST", "/status/keys"): Action("key-create", face="page"),
    ("POST", "/status/keys/revoke"): Action("key-revoke", face="page"),
    ("GET", "/login"): Action("sign-in", face="page", needs="token"),
    ("POST", "/login"): Action("sign-in", face="page"),
    ("GET", "/login/callback"): Action("sign-in", face="page"),
    ("POST", "/logout"): Action("sign-out", face="page"),
}
_REFUSED = "refused"  # counts them all; no caller has this name
_FUNCTIONS = "/functions/"
# The MCP server records what it does itself; only what it never sees is recorded here.
_MCP = Action("mcp", face="mcp")


def about(request: Request, what: Iterable[str]) -> None:
    """Name the items of a request, for its line in the log."""
    request.state.audited = [*what]


class Trail:
    """Records the requests of one application.

    Args:
        audit: The log.
        usage: Records what was searched for and used.
        rates: Counts the refusals.
    """

    def __init__(self, audit: Audit, usage: UsageRecorder, rates: Rates) -> None:
        self._audit = audit
        self._usage = usage
        self._rates = rates

    def listening(self, scope: Scope, receive: Receive) -> Receive:
        """The body of a request, kept for the log where its text is recorded."""
        if not self._audit.has_texts or scope["method"] != "POST":
            return receive
        body = scope.setdefault("state", {})["body"] = bytearray()

        async def kept() -> Message:
            message = await receive()
            if len(body) < MAX_TEXT_SIZE:
                body.extend(message.get("body", b"")[:MAX_TEXT_SIZE])
            return message

        return kept

    def request(self, scope: Scope, status: int, seconds: float, noted: Noted) -> None:
        """Record a request that was answered, if it is one of ``ACTIONS``, and its usage."""
        found = _action(scope)
        state: dict[str, Any] = scope.get("state", {})
        caller: Caller | None = state.get("caller")
        if caller is not None:
            is_page = found is not None and found[0].face == "page"
            noted.record(self._usage, caller.who, is_typed=is_page)
        if found is None or state.get("is_recorded") or _is_recorded(scope, caller):
            return
        action, given = found
        if action is _MCP and status < 400:
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
            action.face,
            outcome=outcome_of(status),
            what=state.get("audited", what),
            status=status,
            seconds=seconds,
            text=_text(parameters, state.get("body", b"")) if has_text else "",
        )


def _action(scope: Scope) -> tuple[Action, Mapping[str, Any]] | None:
    """The action of a request and the parameters of its path, also if no handler was reached."""
    route, given = scope.get("route"), scope.get("path_params", {})
    if not isinstance(route, Route) and "app" in scope:
        for one in scope["app"].routes:
            match, more = one.matches(scope)
            if match is Match.FULL:
                route, given = one, more.get("path_params", {})
                break
    if not isinstance(route, Route):
        return None
    path = route.path.removeprefix(V1)
    if path.startswith(_FUNCTIONS):
        function = (FUNCTIONS | PORTABLE).get(path.removeprefix(_FUNCTIONS))
        return Action(function.action if function else "search", has_text=True), given
    if path == "/mcp" or path.startswith("/mcp/"):
        return _MCP, given
    found = ACTIONS.get((scope["method"], path))
    return (found, given) if found else None


def _is_recorded(scope: Scope, caller: Caller | None) -> bool:
    """Whether the caller is `repertory mcp` of our own user, which records what it does itself."""
    is_own = caller is not None and caller.who == "owner"
    return is_own and RECORDED in HTTPConnection(scope).headers


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return f"address:{client[0] if client else ''}"


def _text(parameters: Mapping[str, list[str]], body: bytes) -> str:
    """The parameters and the body of a request, as JSON."""
    sent = {"body": bytes(body).decode("utf-8", "replace")} if body else {}
    return json.dumps({**parameters, **sent}, ensure_ascii=False) if parameters or sent else ""
