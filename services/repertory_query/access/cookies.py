"""The cookies of browsers that have signed in.

A browser sends the cookies of a host to all its ports. So a cookie contains neither a key nor a
token, but a value that is derived from one, expires, and is only accepted by pages.
"""

import hashlib
import hmac
import time

from starlette.requests import HTTPConnection
from starlette.types import Scope

from repertory.text import is_same_secret

COOKIE = "repertory_key"
OWNER_COOKIE = "repertory_owner"
SESSION_COOKIE = "repertory_session"
SIGN_IN_COOKIE = "repertory_sign_in"
LIFETIME_S = 30 * 86_400  # unless the key is revoked before


def cookies_of(request: HTTPConnection) -> dict[str, str]:
    """The cookies of a request, by name.

    Quoted values are not decoded. Ours have no quotes, and Python's own parser takes quadratic time
    for quoted values in some versions, which any caller may send.
    """
    headers = request.headers.getlist("cookie")
    pairs = [one.partition("=") for header in headers for one in header.split(";")]
    return {name.strip(): value.strip() for name, _, value in pairs}


def new_value(secret: str, name: str) -> str:
    """A new value of a cookie.

    Args:
        secret: The secret from which it is derived; anyone who knows it can make cookies.
        name: The name of the cookie.
    """
    expires = int(time.time()) + LIFETIME_S
    return f"{expires}.{_mac(secret, name, expires)}"


def is_valid(value: str, secret: str, name: str) -> bool:
    """Whether a cookie's value was made with this secret and has not expired."""
    until, _, mac = value.partition(".")
    if not (until.isdecimal() and len(until) <= 12):
        return False
    expected = _mac(secret, name, int(until))
    return is_same_secret(mac, expected) and int(until) > time.time()


def name_of(kind: str, scope: Scope) -> str:
    """The name of a cookie of this kind for the request's project, which has its own keys."""
    _, slash, key = scope.get("root_path", "").rpartition("/")
    return f"{kind}_{key}" if slash else kind


def owner_cookie(secret: str) -> str:
    """The name of the cookie for a server's own user, which depends on the server's secret."""
    return f"{OWNER_COOKIE}_{hashlib.sha256(secret.encode()).hexdigest()[:8]}"


def _mac(secret: str, name: str, expires: int) -> str:
    text = f"repertory cookie {name} {expires}"
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()
