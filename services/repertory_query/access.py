"""Access control: by key if there are keys, else by the address of the caller."""

import hmac
import ipaddress
from urllib.parse import urlsplit

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import Scope as ASGIScope

from repertory.keys import Keys, Scope

OPEN = frozenset({"/healthz", "/readyz"})  # for probes without a key; they reveal nothing
STATIC = "/static/"  # the files of the pages, the same for every caller
LOGIN = "/login"
COOKIE = "repertory_key"
_CHALLENGE = 'Bearer realm="repertory"'


class Caller(msgspec.Struct, frozen=True):
    """A caller, as ``key:NAME``, ``owner`` or ``address:ADDRESS``, and its scopes."""

    who: str
    scopes: frozenset[Scope]


class Access:
    """Decides who a caller is.

    Without keys every caller may read, and callers on this machine may do everything. A web page
    in a local browser calls from this machine, too. So requests from another origin, or with a host
    name that a web page could own, are refused; a page may only link here.

    With keys, a browser sends its key in a cookie, also with the requests of other pages of this
    machine or domain. Those are refused as well, and a cookie allows changes only if the browser
    names this server as the origin.

    Args:
        keys: The keys.
        host: The name of this server.
        secret: The key of the user's own processes, with all scopes; empty if they have none.
    """

    def __init__(self, keys: Keys, host: str, secret: str = "") -> None:
        self._keys = keys
        self._secret = secret
        self._host = host.lower()

    @property
    def takes_keys(self) -> bool:
        """Whether callers need a key."""
        return self._keys.required

    def knows(self, token: str) -> bool:
        """Whether a key is valid."""
        return self._keys.find(token) is not None

    def caller(self, request: HTTPConnection) -> Caller:
        """The caller of a request.

        Raises:
            HTTPException: 401 for a missing or invalid key; 403 for a request that a web page may
                have sent.
        """
        address = request.client.host if request.client else ""
        if is_bearer(request, self._secret):
            return Caller("owner", frozenset(Scope))
        if self._keys.required:  # reads the key file if it changed
            if route_path(request.scope) != LOGIN:
                return self._by_key(request)
            check_origin(request)
            return Caller(f"address:{address}", frozenset())
        if not self._is_own(request.headers.get("host", "")):
            raise HTTPException(
                403,
                "The Host header names no server like this; use its address, or make keys with "
                "`repertory keys create`.",
            )
        check_origin(request)
        scopes = frozenset(Scope) if is_loopback(address) else frozenset({Scope.READ})
        return Caller(f"address:{address}", scopes)

    def _by_key(self, request: HTTPConnection) -> Caller:
        token = _token(request)
        if not token:
            raise HTTPException(
                401,
                "This server asks for a key; send it as `Authorization: Bearer KEY`.",
                {"WWW-Authenticate": _CHALLENGE},
            )
        key = self._keys.find(token)
        if key is None:
            raise HTTPException(
                401,
                "The key is not valid, or no longer; ask for another.",
                {"WWW-Authenticate": f'{_CHALLENGE}, error="invalid_token"'},
            )
        return Caller(f"key:{key.name}", key.scopes)

    def _is_own(self, host: str) -> bool:
        """Whether no foreign web page can be loaded from the name in a Host header.

        An address needs no lookup, and a name without a dot cannot be registered.
        """
        try:
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        except ValueError:
            return False
        if not name:
            return False
        local = "." not in name or name.endswith(".localhost") or name == self._host
        return local or _address(name) is not None


def route_path(scope: ASGIScope) -> str:
    """The path of a request within its application, without the prefix of its project."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def cookie_of(scope: ASGIScope) -> str:
    """The name of the cookie with the key: each project of a server has its own keys."""
    _, slash, key = scope.get("root_path", "").rpartition("/")
    return f"{COOKIE}_{key}" if slash else COOKIE


def is_open(scope: ASGIScope) -> bool:
    """Whether a request needs no key and has no rate limit."""
    path = route_path(scope)
    return path in OPEN or path.startswith(STATIC)


def require(caller: Caller, scope: Scope) -> None:
    """Check that a caller has a scope.

    Raises:
        HTTPException: 403 if not.
    """
    if scope not in caller.scopes:
        if caller.who.startswith("key:"):
            raise _forbidden(f"This takes a key of the scope {scope}.", scope)
        raise _forbidden(
            "Without keys this is only for the machine that the server runs on; make one with "
            "`repertory keys create`.",
            scope,
        )


def _forbidden(detail: str, scope: Scope) -> HTTPException:
    challenge = f'{_CHALLENGE}, error="insufficient_scope", scope="{scope}"'
    return HTTPException(403, detail, {"WWW-Authenticate": challenge})


def is_bearer(request: HTTPConnection, secret: str) -> bool:
    """Whether a request has a secret as its bearer token; an empty secret is no token."""
    given = request.headers.get("authorization", "").encode()
    return bool(secret) and hmac.compare_digest(given, f"Bearer {secret}".encode())


def _token(request: HTTPConnection) -> str:
    """The key of a request, in the header or in the cookie; empty if missing."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    token = request.cookies.get(cookie_of(request.scope), "")
    if token:
        check_origin(request, needed=request.scope["method"] not in ("GET", "HEAD"))
    return token


def check_origin(request: HTTPConnection, *, needed: bool = False) -> None:
    """Refuse a request that a page of another site sent.

    Browsers send the Origin header with forms, and Sec-Fetch-Site with images and the like.

    Raises:
        HTTPException: 403 for such a request, or if the header is needed and missing.
    """
    headers = request.headers
    origin = headers.get("origin")
    is_foreign = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
    if (
        (origin is None and needed)
        or (origin is not None and origin.partition("://")[2] != headers.get("host"))
        or (is_foreign and headers.get("sec-fetch-dest") != "document")
    ):
        raise HTTPException(403, "A page of another site may not call this server.")


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_loopback(name: str) -> bool:
    """Whether an address is of this machine alone."""
    address = _address(name)
    return address is not None and address.is_loopback
