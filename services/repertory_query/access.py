"""Who may call what: by a key where there are keys, else by where the call comes from."""

import ipaddress
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
from fastapi import Depends, HTTPException, Request
from starlette.requests import HTTPConnection

from repertory.keys import Keys, Scope

OPEN = frozenset({"/healthz", "/readyz"})  # asked by what has no key, and tells nothing
_CHALLENGE = 'Bearer realm="repertory"'


class Caller(msgspec.Struct, frozen=True):
    """Who calls: ``key:NAME``, or ``address:ADDRESS``, and what it may do."""

    who: str
    scopes: frozenset[Scope]


class Access:
    """Decides who a caller is.

    Without keys anybody who reaches the server may read, and whoever is on this machine may do
    everything. A web page in somebody's browser is on this machine too, so what such a page sends
    is refused: calls under a name that it could own, and calls from another origin.

    Args:
        keys: The keys.
        host: The name that is served on.
    """

    def __init__(self, keys: Keys, host: str) -> None:
        self._keys = keys
        self._host = host.lower()

    def caller(self, request: HTTPConnection) -> Caller:
        """Who calls.

        Raises:
            HTTPException: 401 where a key is needed and none that is valid was given; 403 for a
                call that a web page may have sent.
        """
        if self._keys.required:
            return self._by_key(request)
        if not self._is_own(request.headers.get("host", "")):
            raise _forbidden(
                "The Host header names no server like this; use its address, or make keys with "
                "`repertory keys create`."
            )
        origin = request.headers.get("origin")
        if origin and origin.partition("://")[2] != request.headers.get("host"):
            raise _forbidden("A page of another site may not call this server.")
        address = request.client.host if request.client else ""
        scopes = frozenset(Scope) if _is_loopback(address) else frozenset({Scope.READ})
        return Caller(f"address:{address}", scopes)

    def _by_key(self, request: HTTPConnection) -> Caller:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise HTTPException(
                401,
                "This server asks for a key; send it as `Authorization: Bearer KEY`.",
                {"WWW-Authenticate": _CHALLENGE},
            )
        key = self._keys.find(token.strip())
        if key is None:
            raise HTTPException(
                401,
                "The key is not valid, or no longer; ask for another.",
                {"WWW-Authenticate": f'{_CHALLENGE}, error="invalid_token"'},
            )
        return Caller(f"key:{key.name}", key.scopes)

    def _is_own(self, host: str) -> bool:
        """Whether a Host header holds what no stranger's web page can be loaded from.

        An address is looked up nowhere, and a name without a dot is nobody's to own.
        """
        try:
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        except ValueError:
            return False
        if not name:
            return False
        local = "." not in name or name.endswith(".localhost") or name == self._host
        return local or _address(name) is not None


async def admin(request: Request) -> None:
    """Let only those through that may do everything.

    Raises:
        HTTPException: 403 for anybody else.
    """
    caller: Caller = request.state.caller
    if Scope.ADMIN not in caller.scopes:
        if caller.who.startswith("key:"):
            raise _forbidden("This takes a key of the scope admin.")
        raise _forbidden(
            "Without keys this is only for the machine that the server runs on; make one with "
            "`repertory keys create`."
        )


Admin = Annotated[None, Depends(admin)]


def _forbidden(detail: str) -> HTTPException:
    challenge = f'{_CHALLENGE}, error="insufficient_scope", scope="{Scope.ADMIN}"'
    return HTTPException(403, detail, {"WWW-Authenticate": challenge})


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _is_loopback(name: str) -> bool:
    address = _address(name)
    return address is not None and address.is_loopback
