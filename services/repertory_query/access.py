"""Access control: by key if there are keys, else by the address of the caller."""

import hmac
import ipaddress
import socket
from urllib.parse import urlsplit

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import Scope as ASGIScope

from repertory import proof
from repertory.keys import Key, Keys, Scope
from repertory_query import cookies

OPEN = frozenset({"/healthz", "/readyz"})  # for probes without a key; they reveal nothing
STATIC = "/static/"  # the files of the pages, the same for every caller
LOGIN = "/login"
_CHALLENGE = 'Bearer realm="repertory"'


class Caller(msgspec.Struct, frozen=True):
    """A caller, as ``key:NAME``, ``owner`` or ``address:ADDRESS``, its scopes and its groups."""

    who: str
    scopes: frozenset[Scope]
    groups: frozenset[str] = frozenset()


_OWNER = Caller("owner", frozenset(Scope))


class Owner(msgspec.Struct, frozen=True):
    """The user who started a server, whose processes have all scopes.

    Attributes:
        token: The token of the note that the server left.
        browser_secret: What the cookies of the user's browsers are derived from.
    """

    token: str
    browser_secret: str


class Access:
    """Decides who a caller is.

    The server that a user started answers this user only, and callers with a key. A team's server
    has no such user. Until it has keys, every caller may read, and callers on its machine may do
    everything. A web page in a local browser calls from this machine, too. So requests from another
    origin, or with a host name that a web page could own, are refused; a page may only link here.

    A browser sends its cookie also with the requests of other pages of this machine or domain.
    Those are refused as well, and a cookie allows changes only if the browser names this server as
    the origin.

    Args:
        keys: The keys.
        host: The name of this server.
        owner: The user who started it; None for a team's server.
    """

    def __init__(self, keys: Keys, host: str, owner: Owner | None = None) -> None:
        self._keys = keys
        self._owner = owner
        self._names = {"localhost", host.lower(), socket.gethostname().lower()}

    @property
    def takes_keys(self) -> bool:
        """Whether callers need a key or a token."""
        return self._owner is not None or self._keys.required

    def proof(self, challenge: str) -> str:
        """The proof that this server left its note; empty without a note or a usable challenge."""
        if self._owner is None or not 0 < len(challenge) <= proof.MAX_LENGTH:
            return ""
        return proof.proof_of(self._owner.token, challenge)

    def cookie_for(self, token: str, scope: ASGIScope) -> tuple[str, str] | None:
        """The name and value of the cookie for a key or the token; None if it is invalid."""
        if self._owner and _same(token, self._owner.token):
            name = cookies.owner_cookie(self._owner.browser_secret)
            return name, cookies.made(self._owner.browser_secret, name)
        key, name = self._keys.find(token), cookie_of(scope)
        return (name, cookies.made(key.digest, name)) if key else None

    def cookie_names(self, scope: ASGIScope) -> list[str]:
        """The names of the cookies of a request's project."""
        owner = [cookies.owner_cookie(self._owner.browser_secret)] if self._owner else []
        return [*owner, cookie_of(scope)]

    def caller(self, request: HTTPConnection) -> Caller:
        """The caller of a request.

        Raises:
            HTTPException: 401 for a missing or invalid key; 403 for a request that a web page may
                have sent.
        """
        address = request.client.host if request.client else ""
        if self.takes_keys:  # reads the key file if it changed
            if route_path(request.scope) != LOGIN:
                return self._by_token(request) or self._by_cookie(request)
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

    def _by_token(self, request: HTTPConnection) -> Caller | None:
        """The caller with a key or token in the header; None without one."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return None
        if self._owner and _same(token, self._owner.token):
            return _OWNER
        key = self._keys.find(token)
        if key is None:
            raise _unauthorized(
                "The key is not valid, or no longer; ask for another.", ', error="invalid_token"'
            )
        return caller_of(key)

    def _by_cookie(self, request: HTTPConnection) -> Caller:
        """The caller of a browser that has signed in."""
        if found := self._signed_in(request):
            check_origin(request, needed=request.scope["method"] not in ("GET", "HEAD"))
            return found
        if any(name in request.cookies for name in self.cookie_names(request.scope)):
            raise _unauthorized(
                "The key is not valid, or no longer; sign in again.", ', error="invalid_token"'
            )
        if self._owner:
            raise _unauthorized(
                "This server answers only who started it, and callers with a key. Send "
                "`Authorization: Bearer TOKEN` with what `repertory keys token` prints, or a key."
            )
        raise _unauthorized("This server asks for a key; send it as `Authorization: Bearer KEY`.")

    def _signed_in(self, request: HTTPConnection) -> Caller | None:
        if self._owner:
            secret = self._owner.browser_secret
            name = cookies.owner_cookie(secret)
            if cookies.fits(request.cookies.get(name, ""), secret, name):
                return _OWNER
        name = cookie_of(request.scope)
        if given := request.cookies.get(name):
            for key in self._keys.active():
                if cookies.fits(given, key.digest, name):
                    return caller_of(key)
        return None

    def _is_own(self, host: str) -> bool:
        """Whether no foreign web page can be loaded from the name in a Host header.

        An address needs no lookup. Other names without a dot may be answered by any machine of the
        local network.
        """
        try:
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        except ValueError:
            return False
        if not name:
            return False
        local = name in self._names or name.endswith(".localhost")
        return local or _address(name) is not None


def caller_of(key: Key) -> Caller:
    """The caller with a key."""
    return Caller(f"key:{key.name}", key.scopes, frozenset(key.groups))


def route_path(scope: ASGIScope) -> str:
    """The path of a request within its application, without the prefix of its project."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def cookie_of(scope: ASGIScope) -> str:
    """The name of the cookie with the key: each project of a server has its own keys."""
    _, slash, key = scope.get("root_path", "").rpartition("/")
    return f"{cookies.COOKIE}_{key}" if slash else cookies.COOKIE


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


def _unauthorized(detail: str, error: str = "") -> HTTPException:
    return HTTPException(401, detail, {"WWW-Authenticate": _CHALLENGE + error})


def _forbidden(detail: str, scope: Scope) -> HTTPException:
    challenge = f'{_CHALLENGE}, error="insufficient_scope", scope="{scope}"'
    return HTTPException(403, detail, {"WWW-Authenticate": challenge})


def is_bearer(request: HTTPConnection, secret: str) -> bool:
    """Whether a request has a secret as its bearer token; an empty secret is no token."""
    return bool(secret) and _same(request.headers.get("authorization", ""), f"Bearer {secret}")


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def check_origin(request: HTTPConnection, *, needed: bool = False) -> None:
    """Refuse a request that a page of another site sent.

    Browsers send the Origin header with forms, and Sec-Fetch-Site with images and the like. Other
    sites may only link here, which is a GET.

    Raises:
        HTTPException: 403 for such a request, or if the header is needed and missing.
    """
    headers = request.headers
    origin = headers.get("origin")
    is_foreign = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
    if (
        (origin is None and needed)
        or (origin is not None and origin.partition("://")[2] != headers.get("host"))
        or (is_foreign and not _is_link(request))
    ):
        raise HTTPException(403, "A page of another site may not call this server.")


def _is_link(request: HTTPConnection) -> bool:
    is_page = request.headers.get("sec-fetch-dest") == "document"
    return is_page and request.scope["method"] in ("GET", "HEAD")


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
