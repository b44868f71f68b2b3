"""Access control by key, token or sign-in, or else by the address of the caller."""

import socket
from urllib.parse import urlsplit

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import Scope as ASGIScope

from repertory.keys import Key, Keys, Scope
from repertory.remote import server_identity
from repertory.system.addresses import address_of, is_loopback
from repertory.text import is_same_secret
from repertory_query.access import cookies
from repertory_query.access.origins import check_origin, is_json
from repertory_query.sign_in.addresses import SIGNING_IN
from repertory_query.sign_in.failures import ProviderError, TokenError
from repertory_query.sign_in.metadata import METADATA, pointer
from repertory_query.sign_in.people import People
from repertory_query.sign_in.person import Person

OPEN = frozenset({"/healthz", "/readyz"})  # for probes without a key; they name no item
STATIC = "/static/"  # the files of the pages, the same for every caller
RETRY_AFTER_S = 5  # while the provider is unavailable
_CHALLENGE = 'Bearer realm="repertory"'


class Caller(msgspec.Struct, frozen=True):
    """A caller with its rights: ``key:NAME``, ``user:NAME``, ``owner`` or ``address:ADDRESS``."""

    who: str
    scopes: frozenset[Scope]
    groups: frozenset[str] = frozenset()


OWNER = Caller("owner", frozenset(Scope))


class Owner(msgspec.Struct, frozen=True):
    """The user who started a server, whose processes have all scopes.

    Attributes:
        token: The token in the note that the server wrote.
        browser_secret: The secret that the cookies of the user's browsers are derived from.
    """

    token: str
    browser_secret: str


class Access:
    """Identifies callers.

    A server that a user started answers only this user and callers with a key. A team's server has
    no such user. Until it has keys, every caller may read, and callers on its machine may do
    everything. But a web page in a local browser also calls from this machine. So requests from
    another origin, or with a host name that a web page could own, are refused; a page may only link
    to this server.

    A browser sends its cookie even with requests from other pages of this machine or domain. Those
    are refused as well, and a cookie allows changes only if the browser names this server as the
    origin.

    Args:
        keys: The keys.
        host: The name of this server.
        owner: The user who started it; None for a team's server.
        people: The people who may use it without a key; None if keys are needed.
        public_url: The URL at which callers reach it; empty for the URL of each request.

    Attributes:
        keys: The keys.
        openid: The sign-in at a provider, if any.
        has_people: Whether people may sign in instead of using a key.
    """

    def __init__(
        self,
        keys: Keys,
        host: str,
        owner: Owner | None,
        people: People | None,
        public_url: str,
    ) -> None:
        self.keys = keys
        self._owner = owner
        self._people = people
        self.openid = people.openid if people else None
        self.has_people = people is not None
        self._public_url = (self.openid.public_url if self.openid else public_url).rstrip("/")
        self._names = {"localhost", host.lower(), socket.gethostname().lower()}

    @property
    def takes_keys(self) -> bool:
        """Whether callers need a key or a token, or have to sign in."""
        return bool(self._owner or self._people or self.keys.required)

    @property
    def provider(self) -> str:
        """The name of the provider at which people sign in; empty without one."""
        return self.openid.provider.name if self.openid else ""

    def url(self, request: HTTPConnection) -> str:
        """The URL at which callers reach this server or project, without a trailing slash."""
        if self._public_url:
            return self._public_url + str(request.scope.get("root_path", ""))
        return str(request.base_url).rstrip("/")

    def proof(self, challenge: str) -> str:
        """The proof that this server wrote its note; empty without a note or a valid challenge."""
        if self._owner is None or not 0 < len(challenge) <= server_identity.MAX_LENGTH:
            return ""
        return server_identity.proof_of(self._owner.token, challenge)

    def owner_cookie_for(self, token: str) -> tuple[str, str] | None:
        """The name and value of the cookie for the token of the server's user; None if invalid."""
        if not (self._owner and is_same_secret(token, self._owner.token)):
            return None
        name = cookies.owner_cookie(self._owner.browser_secret)
        return name, cookies.new_value(self._owner.browser_secret, name)

    def cookie_for(self, token: str, scope: ASGIScope) -> tuple[str, str] | None:
        """The name and value of the cookie for a key or the token; None if it is invalid."""
        if own := self.owner_cookie_for(token):
            return own
        key, name = self.keys.find(token), cookies.name_of(cookies.COOKIE, scope)
        return (name, cookies.new_value(key.digest, name)) if key else None

    def cookie_names(self, scope: ASGIScope) -> list[str]:
        """The names of the cookies of a request's project."""
        owner = [cookies.owner_cookie(self._owner.browser_secret)] if self._owner else []
        session = [self.session_cookie(scope)] if self.openid else []
        return [*owner, *session, cookies.name_of(cookies.COOKIE, scope)]

    def session_cookie(self, scope: ASGIScope, *, is_pending: bool = False) -> str:
        """The name of the cookie for a person's session, or for a pending sign-in.

        With TLS, no other server of the domain can set a cookie with this name.
        """
        prefix = "__Host-" if self.is_secure else ""
        kind = cookies.SIGN_IN_COOKIE if is_pending else cookies.SESSION_COOKIE
        return prefix + cookies.name_of(kind, scope)

    @property
    def is_secure(self) -> bool:
        """Whether browsers are known to reach the server over TLS."""
        return self.openid is not None and self.openid.public_url.startswith("https:")

    async def caller(self, request: HTTPConnection) -> Caller:
        """The caller of a request.

        Raises:
            HTTPException: 401 for a missing or invalid key or sign-in; 403 for a request that a web
                page may have sent, for a person without any rights, and for a header that must not
                be trusted; 503 if the provider is needed and unavailable.
        """
        address = request.client.host if request.client else ""
        person = self._people.behind_proxy(request) if self._people else None
        if self.takes_keys:  # reads the key file if it changed
            if route_path(request.scope) not in SIGNING_IN:
                return await self._known(request, person)
            check_origin(request)
            return Caller(f"address:{address}", frozenset())
        if not self._is_own(request.headers.get("host", "")):
            raise HTTPException(
                403,
                "The Host header does not name this server; use its address, or create keys with "
                "`repertory keys create`.",
            )
        check_origin(request)
        scopes = frozenset(Scope) if is_loopback(address) else frozenset({Scope.READ})
        return Caller(f"address:{address}", scopes)

    async def _known(self, request: HTTPConnection, proxied: Person | None) -> Caller:
        """The caller identified by a key, a token, a proxy or a cookie; a key takes precedence."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else ""
        if self._owner and token and is_same_secret(token, self._owner.token):
            return OWNER
        if token and (key := self.keys.find(token)):
            return caller_with(key)
        if proxied:
            # A browser may be signed in at the proxy by a cookie; programs send no origin.
            changes = request.scope["method"] != "GET"
            check_origin(request, needed=changes and not is_json(request))
            request.state.is_proxied = True
            return self.caller_of(proxied)
        return await self._by_token(request, token) if token else self._by_cookie(request)

    async def _by_token(self, request: HTTPConnection, token: str) -> Caller:
        """The caller with a token of the provider."""
        why = "The key is invalid or was revoked; ask for another."
        if self.openid:
            try:
                return self.caller_of(await self.openid.person_of_token(token))
            except TokenError as error:
                why = str(error)
            except ProviderError as error:
                raise HTTPException(503, str(error), {"Retry-After": str(RETRY_AFTER_S)}) from error
        raise self._unauthorized(request, why, ', error="invalid_token"')

    def caller_of(self, person: Person) -> Caller:
        """The caller for a person.

        Raises:
            HTTPException: 403 if none of the person's groups has any rights.
        """
        scopes = self._people.roles.scopes(person.groups) if self._people else frozenset()
        if not scopes:
            raise HTTPException(
                403,
                "None of your groups may use this server; ask the person who runs it, or sign in "
                "again if your groups have changed.",
            )
        return Caller(f"user:{person.name}", scopes, person.groups)

    def _by_cookie(self, request: HTTPConnection) -> Caller:
        """The caller of a browser that has signed in."""
        if found := self._signed_in(request):
            check_origin(request, needed=request.scope["method"] != "GET")
            return found
        if not cookies.cookies_of(request).keys().isdisjoint(self.cookie_names(request.scope)):
            raise self._unauthorized(
                request,
                "The key or the session is not valid any more; sign in again.",
                ', error="invalid_token"',
            )
        other = f", or a token of {self.provider}" if self.openid else ""
        raise self._unauthorized(
            request,
            f"This server answers only the user who started it, and callers with a key{other}. "
            "Send a key or the output of `repertory keys token` as `Authorization: Bearer TOKEN`."
            if self._owner
            else f"This server asks for a key{other}; send it as `Authorization: Bearer KEY`.",
        )

    def _signed_in(self, request: HTTPConnection) -> Caller | None:
        given = cookies.cookies_of(request)
        if self._owner:
            secret = self._owner.browser_secret
            name = cookies.owner_cookie(secret)
            if cookies.is_valid(given.get(name, ""), secret, name):
                return OWNER
        if self.openid:
            cookie = given.get(self.session_cookie(request.scope), "")
            if person := self.openid.person_of_session(cookie):
                return self.caller_of(person)
        name = cookies.name_of(cookies.COOKIE, request.scope)
        if cookie := given.get(name, ""):
            for key in self.keys.active():
                if cookies.is_valid(cookie, key.digest, name):
                    return caller_with(key)
        return None

    def _unauthorized(self, request: HTTPConnection, detail: str, error: str = "") -> HTTPException:
        challenge = _CHALLENGE + error
        if self.openid and not request.scope.get("root_path"):
            challenge += pointer(self.openid.public_url, route_path(request.scope))
        return HTTPException(401, detail, {"WWW-Authenticate": challenge})

    def _is_own(self, host: str) -> bool:
        """Whether no foreign web page can be loaded from the name in a Host header.

        An IP address needs no lookup. Unknown names are refused even without a dot, because any
        machine of the local network may answer for them.
        """
        try:
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        except ValueError:
            return False
        if not name:
            return False
        local = name in self._names or name.endswith(".localhost")
        return local or address_of(name) is not None


def caller_with(key: Key) -> Caller:
    """The caller with a key."""
    return Caller(f"key:{key.name}", key.scopes, frozenset(key.groups))


def route_path(scope: ASGIScope) -> str:
    """The path of a request within its application, without the prefix of its project."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def is_open(scope: ASGIScope) -> bool:
    """Whether a request needs no key and has no rate limit."""
    path = route_path(scope)
    return path in OPEN or path.startswith((STATIC, METADATA))


def require(caller: Caller, scope: Scope) -> None:
    """Check that a caller has a scope.

    Raises:
        HTTPException: 403 if not.
    """
    if scope not in caller.scopes:
        if caller.who.startswith("key:"):
            raise _forbidden(f"This needs a key with the scope {scope}.", scope)
        if caller.who.startswith("user:"):
            text = f"This needs the scope {scope}, which none of your groups has."
            raise _forbidden(text, scope)
        raise _forbidden(
            "Without keys, this is only allowed on the machine that the server runs on; create one "
            "with `repertory keys create`.",
            scope,
        )


def _forbidden(detail: str, scope: Scope) -> HTTPException:
    challenge = f'{_CHALLENGE}, error="insufficient_scope", scope="{scope}"'
    return HTTPException(403, detail, {"WWW-Authenticate": challenge})
