"""The addresses of this machine, the URLs of its servers, and the URLs that may get secrets."""

import ipaddress
from urllib.parse import urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Hosts that httpx must reach without a proxy. On macOS, httpx uses the system's proxy but ignores
# its list of exceptions; and for a proxy set in the environment, these names mean its own machine.
DIRECT = dict.fromkeys(("all://localhost", "all://127.0.0.1", "all://[::1]"))


def address_of(name: str) -> Address | None:
    """Parse an address; None for a host name. An IPv4-mapped IPv6 address becomes IPv4."""
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_loopback(name: str) -> bool:
    """Whether a host is a loopback address."""
    address = address_of(name)
    return address is not None and address.is_loopback


def is_this_machine(host: str) -> bool:
    """Whether a URL's host, in lower case, is a loopback address or a reserved local name."""
    return host == "localhost" or host.endswith(".localhost") or is_loopback(host)


def is_confidential(url: str) -> bool:
    """Whether requests to a URL are encrypted or stay on this machine; False if it is invalid."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
        host.encode("idna")
    except ValueError:
        return False
    return bool(host) and (
        parts.scheme == "https" or (parts.scheme == "http" and is_this_machine(host))
    )


def url_of(host: str, port: int) -> str:
    """The URL of a server; the loopback address if it listens on all addresses."""
    own = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared only
    return f"http://[{own}]:{port}" if ":" in own else f"http://{own}:{port}"
