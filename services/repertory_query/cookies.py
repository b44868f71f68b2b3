"""The cookies of browsers that have signed in.

A browser sends the cookies of a host to every port of it. So a cookie holds neither a key nor a
token, but a value that is derived from one, that only pages accept, and that expires.
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
LIFETIME_S = 30 * 86_400  # revoking the key ends it at once


def sent(request: HTTPConnection) -> dict[str, str]:
    """The cookies of a request, by name.

    None of ours has quotes. Python's own reader of quoted values takes quadratic time in some
    versions, and everyone may send one.
    """
    headers = request.headers.getlist("cookie")
    pairs = [one.partition("=") for header in headers for one in header.split(";")]
    return {name.strip(): value.strip() for name, _, value in pairs}


def made(secret: str, name: str) -> str:
    """The value of a cookie.

    Args:
        secret: What it is derived from; who knows it can make cookies.
        name: The name of the cookie.
    """
    expires = int(time.time()) + LIFETIME_S
    return f"{expires}.{_mac(secret, name, expires)}"


def fits(value: str, secret: str, name: str) -> bool:
    """Whether a cookie has a value that was made with a secret and has not expired."""
    until, _, mac = value.partition(".")
    if not (until.isascii() and until.isdecimal() and len(until) <= 12):
        return False
    expected = _mac(secret, name, int(until))
    return is_same_secret(mac, expected) and int(until) > time.time()


def name_of(kind: str, scope: Scope) -> str:
    """The name of a cookie: each project of a server has its own keys and sessions."""
    _, slash, key = scope.get("root_path", "").rpartition("/")
    return f"{kind}_{key}" if slash else kind


def owner_cookie(secret: str) -> str:
    """The name of the cookie of a server's own user: servers with another secret have another."""
    return f"{OWNER_COOKIE}_{hashlib.sha256(secret.encode()).hexdigest()[:8]}"


def _mac(secret: str, name: str, expires: int) -> str:
    text = f"repertory cookie {name} {expires}"
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()
