"""Addresses of callers."""

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def address_of(name: str) -> Address | None:
    """The address that a text is; None if it is a name. An IPv4 address in IPv6 is the former."""
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_loopback(name: str) -> bool:
    """Whether an address is of this machine alone."""
    address = address_of(name)
    return address is not None and address.is_loopback
