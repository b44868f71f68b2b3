"""A problem as a page, for browsers."""

from collections.abc import Mapping
from urllib.parse import quote

from starlette.requests import HTTPConnection
from starlette.responses import Response

from repertory.wire import Refusal
from repertory_query.pages.page import page

_TITLES = {
    401: "Sign in",
    404: "Nothing here",
    422: "That cannot be asked",
    429: "Too many requests",
    503: "Not ready yet",
}


def page_of(request: HTTPConnection, problem: Refusal, headers: Mapping[str, str]) -> Response:
    """The page of a problem; for a missing key, the page that asks for it.

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
        return page(
            request, "login.html", 401, headers, detail=detail, target=target if is_get else "/"
        )
    again = headers.get("Retry-After", "") if status == 503 and is_get else ""
    title = _TITLES.get(status, problem.title)
    return page(
        request, "problem.html", status, headers, title=title, detail=problem.detail, again=again
    )
