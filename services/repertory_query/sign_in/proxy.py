"""The headers in which a trusted proxy names the person whose request it forwards."""

import ipaddress
import logging

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from repertory.errors import ConfigurationError
from repertory.system.addresses import address_of
from repertory.text import listed
from repertory.values import Values
from repertory_query.sign_in.person import Person, person_of

PEER = "peer"  # the key in a request's state for the other end of its connection

_log = logging.getLogger(__name__)


class TrustedProxy:
    """Accepts the headers from certain proxies, and refuses them from everyone else.

    A request with such a header is refused if it comes from elsewhere, or if a header is repeated,
    is empty, or has a name with "_" instead of "-". Then the proxy is misconfigured, or a caller
    tries to impersonate another.

    Args:
        values: The settings.

    Raises:
        ConfigurationError: The addresses are invalid.
    """

    def __init__(self, values: Values) -> None:
        self._networks = [_network(one) for one in listed(values.proxy_addresses)]
        self._user = values.proxy_user_header.lower()
        self._groups = values.proxy_groups_header.lower()
        if self._user == self._groups:
            raise ConfigurationError(
                "proxy.user_header and proxy.groups_header are the same; name two headers."
            )

    def person(self, request: HTTPConnection) -> Person | None:
        """The person whom the proxy names; None if the request has no such header.

        Raises:
            HTTPException: 403 for headers that must not be trusted.
        """
        given: dict[str, str] = {}
        for raw_name, raw_value in request.headers.raw:
            name = raw_name.decode("latin-1").lower()
            meant = name.replace("_", "-")
            if meant not in (self._user, self._groups):
                continue
            if not self._is_trusted(request):
                raise self._refused(request, f"only a proxy in proxy.addresses may send {meant}")
            if name != meant or name in given:
                raise self._refused(request, f"{meant} is sent twice, or spelled in another way")
            given[name] = _text(raw_value)
            if not given[name]:
                raise self._refused(request, f"{meant} is empty or not UTF-8")
        if not given:
            return None
        try:
            return person_of(given.get(self._user), listed(given.get(self._groups, "")))
        except ValueError as error:
            raise self._refused(request, str(error)) from error

    def _is_trusted(self, request: HTTPConnection) -> bool:
        address = address_of(peer_of(request))
        return address is not None and any(address in network for network in self._networks)

    def _refused(self, request: HTTPConnection, reason: str) -> HTTPException:
        _log.warning("proxy_header_refused", extra={"peer": peer_of(request), "reason": reason})
        return HTTPException(403, f"The request names its user in a header, but {reason}.")


def peer_of(request: HTTPConnection) -> str:
    """The address of the other end of the connection, ignoring X-Forwarded-For."""
    peer = request.scope.get("state", {}).get(PEER) or request.scope.get("client")
    return peer[0] if peer else ""


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise ConfigurationError(
            f"proxy.addresses has {text[:80]!r}; write addresses such as 10.0.0.2, or networks "
            "such as 10.0.0.0/24."
        ) from error
    if not network.prefixlen:
        raise ConfigurationError(
            f"proxy.addresses has {text!r}, which is everyone; name the proxies."
        )
    return network


def _text(value: bytes) -> str:
    try:
        return value.decode().strip()
    except UnicodeDecodeError:
        return ""
