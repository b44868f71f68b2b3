"""Addresses: which are of this machine, and which are safe to send secrets to."""

import ipaddress
from urllib.parse import urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# The hosts for which httpx asks no proxy. It takes the proxy of the system on macOS, but not what
# the system leaves out; and a proxy that the environment names knows another machine by them.
DIRECT = dict.fromkeys(("all://localhost", "all://127.0.0.1", "all://[::1]"))


def address_of(name: str) -> Address | None:
    """The address that a text is; None if it is a name. An IPv4 address in IPv6 is the former."""
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_loopback(name: str) -> bool:
    """Whether an address is of this machine alone."""
    address = address_of(name)
    return address is not None and address.is_loopback


def is_this_machine(host: str) -> bool:
    """Whether a host of a URL, in lower case, is this machine: an address, or a reserved name."""
    return host == "localhost" or host.endswith(".localhost") or is_loopback(host)


def is_confidential(url: str) -> bool:
    """Whether what is sent to a URL is encrypted, or stays on this machine."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    return bool(host) and (
        parts.scheme == "https" or (parts.scheme == "http" and is_this_machine(host or ""))
    )
