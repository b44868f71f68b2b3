"""Signing in with a key or a token, after which a browser has a cookie, and out."""

import re
from collections.abc import Iterable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from repertory_query.access import Access
from repertory_query.actions import Action
from repertory_query.cookies import LIFETIME_S
from repertory_query.pages.page import PageRoute, page, posted_fields, redirection, root_of
from repertory_query.sign_in.addresses import LOGIN


def routes(access: Access) -> list[BaseRoute]:
    """The routes."""

    async def ask(request: Request) -> Response:
        """Ask for a key, where one is needed; a token in the address signs in."""
        if not access.takes_keys:
            return redirection(request, "/")
        first = f"{root_of(request)}/"
        if token := request.query_params.get("token"):
            return enter(request, token, first)
        return page(request, "login.html", detail="", target=first)

    async def sign_in(request: Request) -> Response:
        """Have the browser stay signed in, and go on to where a key was needed."""
        sent = await posted_fields(request)
        return enter(request, sent.get("key", "").strip(), here(sent.get("target", "/")))

    def enter(request: Request, key: str, target: str) -> Response:
        found = access.cookie_for(key, request.scope)
        if found is None:
            detail = "The key is not valid, or no longer; ask for another."
            return page(request, "login.html", 401, detail=detail, target=target)
        response = onward(target)
        name, value = found
        forget(response, access.cookie_names(request.scope), but=name)
        response.set_cookie(
            name,
            value,
            max_age=LIFETIME_S,
            httponly=True,
            samesite="lax",  # a link to here works from anywhere; Access checks the rest
            # The browser says how it came here; a proxy before the server may not.
            secure=request.headers.get("origin", "").startswith("https:"),
        )
        return response

    async def sign_out(request: Request) -> Response:
        """Have the browser forget that it has signed in."""
        response = redirection(request, LOGIN)
        forget(response, access.cookie_names(request.scope))
        return response

    return [
        PageRoute("GET", LOGIN, ask, action=Action("sign-in", needs="token"), scope=None),
        PageRoute("POST", LOGIN, sign_in, action=Action("sign-in"), scope=None),
        PageRoute("POST", "/logout", sign_out, action=Action("sign-out"), scope=None),
    ]


def here(target: str) -> str:
    """An address on this server; one that might lead elsewhere becomes the first page."""
    return target if re.fullmatch(r"/(?![/\\])[!-~]*", target) else "/"


def onward(url: str) -> Response:
    """Have a browser go elsewhere, which is not told the address with a token or a code."""
    return RedirectResponse(url, 303, {"Referrer-Policy": "no-referrer"})


def forget(response: Response, names: Iterable[str], but: str = "") -> None:
    """Have a browser forget cookies, but for one."""
    for name in names:
        if name != but:
            # Of one with this prefix a browser takes nothing without `secure`.
            secure = name.startswith("__Host-")
            response.delete_cookie(name, httponly=True, samesite="lax", secure=secure)
