"""URLs of others: what may be shown of them, and which machines they may lead to."""

import ipaddress
import re
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from repertory.errors import SourceError
from repertory.sources.mcp.variables import names_in
from repertory.text import one_line

_URL = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]{0,20}://[^\s'\"]+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_http(url: str) -> bool:
    """Whether it is a URL over HTTP or HTTPS with a host."""
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
    """What may be shown of the place that the entry of a source is fetched from.

    With it are the server that is called, and the variables of the environment that go there.
    """
    place = shown(str(entry.get("url") or entry.get("path")))
    server = str(entry.get("server", ""))
    tables = [value.values() for value in entry.values() if isinstance(value, Mapping)]
    given = names_in(value for values in tables for value in values if isinstance(value, str))
    parts = [f"called at {shown(server)}"] if is_http(server) else []
    parts += [f"with {', '.join(sorted(given))}"] if given else []
    return f"{place} ({' '.join(parts)})" if parts else place


def masked(text: str) -> str:
    """A text of others without the credentials and queries of the URLs in it."""
    return _URL.sub(lambda found: shown(found[0]), text)


def check_step(url: str, before: str) -> None:
    """Refuse a URL that public content names and that leads into a private network.

    What the user wrote may lead anywhere; what others wrote, or redirect to, may not lead from a
    public machine to one that only this network reaches.

    Raises:
        SourceError: It does, or its host is unknown.
    """
    if not is_private(host_of(before)) and is_private(host_of(url)):
        raise SourceError(
            f"{shown(before)} leads to {shown(url)}, which is on a private network; it was not "
            "fetched."
        )


def host_of(url: str) -> str:
    """The host of a URL, or of ``user@host:path`` for ssh; empty for a path of this machine."""
    if "://" not in url:
        host, colon, _ = url.rpartition("@")[2].partition(":")
        return host if colon and "/" not in host else ""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def is_private(host: str) -> bool:
    """Whether a host is this machine (an empty one), or has an address that is not public.

    An unknown host has none. This asks the name service, so it may take seconds.
    """
    if not host:
        return True
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return any(
        not ipaddress.ip_address(str(address[0]).partition("%")[0]).is_global
        for *_, address in found
    )
