"""Signing in with a key, which a browser then keeps in a cookie, and out."""

import re
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from repertory_query.access import LOGIN, Access, cookie_of
from repertory_query.pages.page import page, root_of

LIFETIME_S = 30 * 86_400  # revoking the key ends it at once


async def fields(request: Request) -> dict[str, str]:
    """The fields of a posted form, the last of each name."""
    body = (await request.body()).decode("utf-8", "replace")
    return dict(parse_qsl(body))


def routes(access: Access) -> list[BaseRoute]:
    """The routes."""

    async def ask(request: Request) -> Response:
        """Ask for a key, where one is needed."""
        if not access.takes_keys:
            return RedirectResponse(f"{root_of(request)}/", 303)
        return page(request, "login.html", detail="", target=f"{root_of(request)}/")

    async def sign_in(request: Request) -> Response:
        """Have the browser keep a key, and go on to where it was needed."""
        sent = await fields(request)
        key, target = sent.get("key", "").strip(), here(sent.get("target", "/"))
        if not access.knows(key):
            detail = "The key is not valid, or no longer; ask for another."
            return page(request, "login.html", 401, detail=detail, target=target)
        response = RedirectResponse(target, 303)
        response.set_cookie(
            cookie_of(request.scope),
            key,
            max_age=LIFETIME_S,
            httponly=True,
            samesite="lax",  # a link to here works from anywhere; Access checks the rest
            # The browser says how it came here; a proxy before the server may not.
            secure=request.headers.get("origin", "").startswith("https:"),
        )
        return response

    async def sign_out(request: Request) -> Response:
        """Have the browser forget the key."""
        response = RedirectResponse(root_of(request) + LOGIN, 303)
        response.delete_cookie(cookie_of(request.scope), httponly=True, samesite="lax")
        return response

    return [
        Route(LOGIN, ask),
        Route(LOGIN, sign_in, methods=["POST"]),
        Route("/logout", sign_out, methods=["POST"]),
    ]


def here(target: str) -> str:
    """An address on this server; one that might lead elsewhere becomes the first page."""
    return target if re.fullmatch(r"/(?![/\\])[!-~]*", target) else "/"
