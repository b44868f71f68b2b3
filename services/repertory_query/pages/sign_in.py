"""Signing in with a key, which a browser then keeps in a cookie, and out."""

import re
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from repertory_query.access import COOKIE, LOGIN, Access
from repertory_query.pages.page import page

LASTS = 30 * 86_400  # seconds; a key that is revoked ends it at once


async def fields(request: Request) -> dict[str, str]:
    """The fields of a form that was sent, the last of each name."""
    body = (await request.body()).decode("utf-8", "replace")
    return dict(parse_qsl(body))


Fields = Annotated[dict[str, str], Depends(fields)]


def router(access: Access) -> APIRouter:
    """The routes."""
    routes = APIRouter()

    @routes.get(LOGIN)
    async def ask(request: Request) -> Response:
        """Ask for a key, where one is needed."""
        if not access.takes_keys:
            return RedirectResponse("/", 303)
        return page(request, "login.html", detail="", target="/")

    @routes.post(LOGIN)
    async def sign_in(request: Request, sent: Fields) -> Response:
        """Have the browser keep a key, and go on to where it was needed."""
        key, target = sent.get("key", "").strip(), here(sent.get("target", "/"))
        if not access.knows(key):
            detail = "The key is not valid, or no longer; ask for another."
            return page(request, "login.html", 401, detail=detail, target=target)
        response = RedirectResponse(target, 303)
        response.set_cookie(
            COOKIE,
            key,
            max_age=LASTS,
            httponly=True,
            samesite="lax",  # a link to here works from anywhere; the rest is seen to by Access
            # The browser says how it came here; a proxy before the server may not.
            secure=request.headers.get("origin", "").startswith("https:"),
        )
        return response

    @routes.post("/logout")
    async def sign_out() -> Response:
        """Have the browser forget the key."""
        response = RedirectResponse(LOGIN, 303)
        response.delete_cookie(COOKIE, httponly=True, samesite="lax")
        return response

    return routes


def here(target: str) -> str:
    """An address on this server: what might lead elsewhere leads to the first page."""
    return target if re.fullmatch(r"/(?![/\\])[!-~]*", target) else "/"
