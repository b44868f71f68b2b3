"""Pages made from templates: escaped, without misleading characters, and with a strict policy."""

import hashlib
import re
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response

from repertory.keys import Scope
from repertory.search.answer import rounded_down
from repertory.text import DIRECTIONS, ago, media_type_of
from repertory.wire import V1, Refusal
from repertory_query.access.callers import Caller, require, route_path
from repertory_query.pages.charts import duration
from repertory_query.records.actions import Action, AuditedRoute

STATIC_FILES = {
    "style.css": "text/css; charset=utf-8",
    "manage.css": "text/css; charset=utf-8",
    "script.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    # Not "no-referrer", because browsers then send forms without the origin that Access checks.
    "Referrer-Policy": "same-origin",
}
_TITLES = {
    401: "Sign in",
    404: "Nothing here",
    422: "Invalid request",
    429: "Too many requests",
    503: "Not ready yet",
}
TO_PROGRAMS = "; /openapi.json lists all operations"  # in a problem, but not on its page
_FOR_PROGRAMS = (f"{V1}/", "/mcp/")  # prefixes of the paths for programs
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
_HERE = Path(__file__).parent

# Invisible characters that change how a text looks: control characters other than white space, and
# those that change its direction.
_UNSEEN = re.compile(f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{DIRECTIONS}]")


class PageRoute(AuditedRoute):
    """The route of a page, or of a form on a page.

    Args:
        method: ``GET`` or ``POST``.
        path: The path, with parameters in Starlette's syntax.
        handler: Answers a request.
        action: The action in the audit log; None if requests are not recorded.
        scope: The scope that a caller needs; None if the page is open to everyone, for sign-in.
    """

    def __init__(
        self,
        method: str,
        path: str,
        handler: Callable[[Request], Awaitable[Response]],
        *,
        action: Action | None,
        scope: Scope | None,
    ) -> None:
        super().__init__(method, path, self._answer, action=action, face="page")
        self._handler = handler
        self._scope = scope

    async def _answer(self, request: Request) -> Response:
        if self._scope is not None:
            require(request.state.caller, self._scope)
        return await self._handler(request)


def page(
    request: HTTPConnection,
    template: str,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **values: object,
) -> Response:
    """A page, or a part of one, for a caller.

    Args:
        request: The request.
        template: The file of the template.
        status: The status of the response.
        headers: Headers in addition to those of all pages.
        values: The values of the template.
    """
    caller: Caller | None = getattr(request.state, "caller", None)
    given = {
        "caller": caller,
        "root": root_of(request),
        "provider": getattr(request.state, "provider", ""),
        "is_proxied": getattr(request.state, "is_proxied", False),
    }
    text = _environment().get_template(template).render(**given, **values)
    content = text.encode("utf-8", "replace")
    return Response(content, status, {**HEADERS, **(headers or {})}, "text/html; charset=utf-8")


def problem_page(request: HTTPConnection, problem: Refusal, headers: Mapping[str, str]) -> Response:
    """The page of a problem; for a missing key, the page to sign in.

    Args:
        request: The request that failed.
        problem: The problem.
        headers: The headers of the problem.
    """
    status = problem.status
    is_get = request.scope["method"] == "GET"
    if status == 401:
        query = request.scope["query_string"].decode("latin-1")
        target = quote(request.scope["path"]) + (f"?{query}" if query else "")
        was_sent = "invalid_token" in headers.get("WWW-Authenticate", "")
        detail = problem.detail if was_sent else ""
        if not is_get:
            target = f"{root_of(request)}/"
        return page(request, "login.html", 401, headers, detail=detail, target=target)
    again = headers.get("Retry-After", "") if status == 503 and is_get else ""
    title = _TITLES.get(status, problem.title)
    return page(
        request,
        "problem.html",
        status,
        headers,
        title=title,
        detail=problem.detail.replace(TO_PROGRAMS, ""),
        again=again,
        typed=request.query_params.get("q", ""),
    )


async def posted_fields(request: Request) -> dict[str, str]:
    """The fields of a posted form; if a name is repeated, the last value counts."""
    body = (await request.body()).decode("utf-8", "replace")
    return dict(parse_qsl(body))


def root_of(request: HTTPConnection) -> str:
    """The path prefix of a request's application; empty if it has none."""
    root: str = request.scope.get("root_path", "")
    return root


def redirection(request: HTTPConnection, path: str) -> Response:
    """Redirect the browser to a page of the same application."""
    return RedirectResponse(root_of(request) + path, 303)


def wants_page(request: HTTPConnection) -> bool:
    """Whether a browser opens an address or sends a form, judging by the headers.

    Some programs accept HTML as well, so paths for programs never get a page.
    """
    if f"{route_path(request.scope)}/".startswith(_FOR_PROGRAMS):
        return False
    if request.scope["method"] != "GET":
        sent = media_type_of(request.headers.get("content-type", ""))
        if sent not in _FORMS:
            return False
    return "text/html" in request.headers.get("accept", "")


def static_file(name: str) -> Response:
    """A static file, cached for ever, because each version has its own URL."""
    content, _ = _static()[name]
    lasting = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(content, headers=HEADERS | lasting, media_type=STATIC_FILES[name])


@cache
def _static() -> dict[str, tuple[bytes, str]]:
    """The content of each static file, and its digest."""
    contents = {name: (_HERE / "static" / name).read_bytes() for name in STATIC_FILES}
    return {
        name: (content, hashlib.sha256(content).hexdigest()[:12])
        for name, content in contents.items()
    }


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        finalize=_legible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "exact": escape,
        "shell": shlex.quote,
        "ago": _ago,
        "json": _json,
        "duration": duration,
        "day": _day,
        "address": item_address,
        "rounded_down": rounded_down,
    }
    environment.globals |= {"static": _static_address, "view": view_address}
    return environment


def view_address(item_id: str, section: str = "") -> str:
    """The path of an item's page below the root, at a section if one is named."""
    address = "/view/" + item_address(item_id)
    if section:
        address += f"?{urlencode({'section': section}, errors='replace')}#matched"
    return address


def item_address(item_id: str) -> str:
    """An item's id, escaped as the end of a path."""
    # A browser resolves "." and ".." between slashes, unless the slashes are escaped.
    steps = any(part in ("", ".", "..") for part in item_id.split("/"))
    return quote(item_id, safe="" if steps else "/", errors="replace")


def _ago(moment: float) -> str:
    """How long ago a moment was, in whole minutes, so that the page seldom changes."""
    return ago(time.time() - moment, least=60)


def _day(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))


def _static_address(name: str) -> str:
    return f"/static/{name}?v={_static()[name][1]}"


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def legible(text: str) -> str:
    """A text with misleading characters replaced by visible ones."""
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text)


def _legible(value: object) -> object:
    """A value of a template, made ``legible``; HTML is unchanged."""
    return legible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
