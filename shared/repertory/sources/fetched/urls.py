"""Untrusted URLs: their public parts, and the machines that they may lead to."""

import ipaddress
import re
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from repertory.errors import SourceError
from repertory.sources.mcp.variables import names_in
from repertory.system.addresses import Address
from repertory.text import one_line

_URL = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]{0,20}://[^\s'\"]+")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_http(url: str) -> bool:
    """Whether it is an HTTP or HTTPS URL with a host."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)


def shown(url: str) -> str:
    """A URL without its password, user, query and fragment, on one line."""
    if not _SCHEME.match(url):
        return one_line(url)
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        return one_line(urlunsplit((parts.scheme, host, parts.path, "", "")))
    except ValueError:
        return "an invalid URL"


def place_of(entry: Mapping[str, Any]) -> str:
    """The public parts of the place that a source is fetched from.

    They include the server of a web API and the environment variables sent to it.
    """
    place = shown(str(entry.get("url") or entry.get("path")))
    server = str(entry.get("server", ""))
    tables = [value.values() for value in entry.values() if isinstance(value, Mapping)]
    given = names_in(value for values in tables for value in values if isinstance(value, str))
    parts = [f"called at {shown(server)}"] if is_http(server) else []
    parts += [f"with {', '.join(sorted(given))}"] if given else []
    return f"{place} ({' '.join(parts)})" if parts else place


def masked(text: str) -> str:
    """Remove credentials and queries from the URLs in an untrusted text."""
    return _URL.sub(lambda found: shown(found[0]), text)


def check_step(url: str, before: str) -> None:
    """Reject a step from a public host into a private network.

    URLs that the user wrote may lead anywhere. URLs in the content of a public host, and its
    redirects, must not lead to a machine that only this network reaches.

    Raises:
        SourceError: The step leads into a private network.
    """
    if is_public(host_of(before)) and is_private(host_of(url)):
        raise SourceError(
            f"{shown(before)} leads to {shown(url)}, which is on a private network; it was not "
            "fetched."
        )


def host_of(url: str) -> str:
    """The host of a URL or of ``user@host:path`` for ssh; empty for a local path."""
    if "://" not in url:
        host, colon, _ = url.rpartition("@")[2].partition(":")
        return host if colon and "/" not in host else ""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def is_public(host: str) -> bool:
    """Whether a host has a public address. Unknown hosts count as public."""
    if not host:
        return False
    found = addresses_of(host)
    return not found or any(map(is_global, found))


def is_private(host: str) -> bool:
    """Whether a host is this machine (an empty name) or has a non-public address."""
    return not host or not all(map(is_global, addresses_of(host)))


def is_global(address: Address) -> bool:
    """Whether an address is public, and so is an IPv4 address in it that gateways deliver to."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = ipaddress.IPv4Address(address.packed[-4:])
        if inner is not None:
            address = inner
        elif address.is_site_local:
            return False
    return address.is_global and not address.is_multicast


def addresses_of(host: str) -> list[Address]:
    """All addresses of a host; empty if it is unknown. The DNS lookup may take seconds."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [address_in(str(address[0])) for *_, address in found]


def address_in(text: str) -> Address:
    """The address in a socket's name of a machine, which may also name a network interface."""
    return ipaddress.ip_address(text.partition("%")[0])
