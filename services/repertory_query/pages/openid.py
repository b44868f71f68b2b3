"""Signing in at the team's provider: the redirect to it, and the way back."""

import logging
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from repertory_query.access.callers import Access
from repertory_query.access.cookies import cookies_of
from repertory_query.pages.page import PageRoute, page, root_of
from repertory_query.pages.sign_in import delete_cookies, own_path, redirect_without_referrer
from repertory_query.records.actions import Action
from repertory_query.sign_in.addresses import CALLBACK, LOGIN_OPENID
from repertory_query.sign_in.failures import ProviderError, TokenError

if TYPE_CHECKING:
    from repertory_query.sign_in.openid import OpenId

_log = logging.getLogger(__name__)


def routes(access: Access) -> list[BaseRoute]:
    """The routes; empty without a provider."""
    if access.openid is None:
        return []
    sign_in = _SignIn(access, access.openid)
    return [
        PageRoute("GET", LOGIN_OPENID, sign_in.begin, action=None, scope=None),
        PageRoute("GET", CALLBACK, sign_in.back, action=Action("sign-in"), scope=None),
    ]


class _SignIn:
    """The two requests of a browser that signs in."""

    def __init__(self, access: Access, openid: "OpenId") -> None:
        self._access = access
        self._openid = openid

    async def begin(self, request: Request) -> Response:
        """Redirect the browser to the provider."""
        root = root_of(request)
        target = own_path(request.query_params.get("target", f"{root}/"))
        try:
            url, cookie = await self._openid.begin(root, target)
        except ProviderError as error:
            return self._refused(request, 503, str(error), target)
        response = redirect_without_referrer(url)
        self._keep(response, self._pending(request), cookie, self._openid.pending.lifetime_s)
        return response

    async def back(self, request: Request) -> Response:
        """Receive the browser from the provider, and sign it in or refuse it."""
        root, cookie = root_of(request), cookies_of(request).get(self._pending(request), "")
        try:
            person, target = await self._openid.finish(root, request.query_params, cookie)
            caller = self._access.caller_of(person)  # refuses people without any scope
            session = self._openid.session_of(person)
        except TokenError as error:
            return self._refused(request, 401, str(error), f"{root}/")
        except ProviderError as error:
            return self._refused(request, 503, str(error), f"{root}/")
        except HTTPException as error:
            return self._refused(request, error.status_code, error.detail, f"{root}/")
        request.state.caller = caller  # for the logs
        _log.info("signed_in", extra={"caller": caller.who})
        response = redirect_without_referrer(target)
        own = self._access.session_cookie(request.scope)
        others = [*self._access.cookie_names(request.scope), self._pending(request)]
        delete_cookies(response, others, but=own)
        self._keep(response, own, session, self._openid.session.lifetime_s)
        return response

    def _refused(self, request: Request, status: int, detail: str, target: str) -> Response:
        _log.warning("sign_in_refused", extra={"status": status, "reason": detail})
        response = page(request, "login.html", status, detail=detail, target=target)
        delete_cookies(response, [self._pending(request)])  # each answer is accepted only once
        return response

    def _pending(self, request: Request) -> str:
        return self._access.session_cookie(request.scope, is_pending=True)

    def _keep(self, response: Response, name: str, value: str, seconds: int) -> None:
        secure = self._access.is_secure
        response.set_cookie(name, value, seconds, httponly=True, samesite="lax", secure=secure)
