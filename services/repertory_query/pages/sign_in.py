"""Signing a browser in by a key or a token, and out again."""

import re
from collections.abc import Iterable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from repertory_query.access.callers import Access
from repertory_query.access.cookies import LIFETIME_S
from repertory_query.pages.page import PageRoute, page, posted_fields, redirection, root_of
from repertory_query.records.actions import Action
from repertory_query.sign_in.addresses import LOGIN


def routes(access: Access) -> list[BaseRoute]:
    """The routes."""

    async def ask(request: Request) -> Response:
        """Show the page for a key, if one is needed; the user's token in the URL signs in.

        A key in the URL does not: anyone with a key could make a link that signs others in with it.
        """
        if not access.takes_keys:
            return redirection(request, "/")
        first = f"{root_of(request)}/"
        if token := request.query_params.get("token"):
            return enter(request, access.owner_cookie_for(token), first)
        return page(request, "login.html", detail="", target=first)

    async def sign_in(request: Request) -> Response:
        """Sign the browser in, and redirect it to the page that needed a key."""
        sent = await posted_fields(request)
        found = access.cookie_for(sent.get("key", "").strip(), request.scope)
        return enter(request, found, own_path(sent.get("target", "/")))

    def enter(request: Request, found: tuple[str, str] | None, target: str) -> Response:
        if found is None:
            detail = "The key is invalid or was revoked; ask for another."
            return page(request, "login.html", 401, detail=detail, target=target)
        response = redirect_without_referrer(target)
        name, value = found
        delete_cookies(response, access.cookie_names(request.scope), but=name)
        response.set_cookie(
            name,
            value,
            max_age=LIFETIME_S,
            httponly=True,
            samesite="lax",  # so that links from other sites work; Access checks the rest
            # From the browser, because a proxy may not forward the scheme.
            secure=request.headers.get("origin", "").startswith("https:"),
        )
        return response

    async def sign_out(request: Request) -> Response:
        """Sign the browser out."""
        response = redirection(request, LOGIN)
        delete_cookies(response, access.cookie_names(request.scope))
        return response

    return [
        PageRoute("GET", LOGIN, ask, action=Action("sign-in", needs="token"), scope=None),
        PageRoute("POST", LOGIN, sign_in, action=Action("sign-in"), scope=None),
        PageRoute("POST", "/logout", sign_out, action=Action("sign-out"), scope=None),
    ]


def own_path(target: str) -> str:
    """A path on this server; the first page if the target might lead elsewhere."""
    return target if re.fullmatch(r"/(?![/\\])[!-~]*", target) else "/"


def redirect_without_referrer(url: str) -> Response:
    """Redirect a browser without a referrer, whose URL may contain a token or a code."""
    return RedirectResponse(url, 303, {"Referrer-Policy": "no-referrer"})


def delete_cookies(response: Response, names: Iterable[str], but: str = "") -> None:
    """Delete cookies from a browser, except one."""
    for name in names:
        if name != but:
            # Browsers ignore cookies with this prefix unless they are secure.
            secure = name.startswith("__Host-")
            response.delete_cookie(name, httponly=True, samesite="lax", secure=secure)
