"""The URLs of servers that a document names, and their origins."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from repertory.text import is_clean

MAX_LENGTH = 2_000  # characters
MAX_SERVERS = 100  # per object; further ones are ignored
_UNFIT = re.compile(r"[\s?#@\\{}]")
_VARIABLE = re.compile(r"\{([^{}]*)\}")
_PORTS = {"http": 80, "https": 443}


def origin(url: str) -> str:
    """The scheme, the host and a non-default port of an HTTP URL; empty for any other text."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ""
    if parts.scheme not in _PORTS or not parts.hostname:
        return ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    own = "" if port in (None, _PORTS[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{host}{own}"


def is_server(url: str) -> bool:
    """Whether a text is valid as a server's URL: HTTP, without user, query, fragment and spaces."""
    return bool(origin(url)) and len(url) <= MAX_LENGTH and is_clean(url) and not _UNFIT.search(url)


def servers_of(owner: Mapping[str, Any], base: str) -> list[str]:
    """The URLs of the servers that a document, a path or an operation names.

    Variables have their defaults. A server whose URL is invalid is left out.

    Args:
        owner: The object with ``servers``.
        base: The URL of the document, for relative URLs; empty for a file.
    """
    listed, found = owner.get("servers"), []
    servers = listed if isinstance(listed, list) else []
    for server in [one for one in servers if isinstance(one, Mapping)][:MAX_SERVERS]:
        url, variables = server.get("url"), server.get("variables")
        if not isinstance(url, str) or len(url) > MAX_LENGTH:
            continue
        url = _filled(url, variables if isinstance(variables, Mapping) else {})
        try:
            url = urljoin(base, url) if base else url
        except ValueError:
            continue
        if is_server(url):
            found.append(url.rstrip("/"))
    return found


def _filled(url: str, variables: Mapping[str, Any]) -> str:
    def default(found: re.Match[str]) -> str:
        variable = variables.get(found[1])
        value = variable.get("default") if isinstance(variable, Mapping) else None
        return str(value) if isinstance(value, str | int) else found[0]

    return _VARIABLE.sub(default, url)
