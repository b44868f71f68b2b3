"""The configuration entry of a registry's server, and the recognition of its address."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from typing_extensions import override

from repertory.errors import ConfigurationError, UsageError
from repertory.sources.adding import Address, Recognised
from repertory.sources.entry import check_options, checked_name, options_of
from repertory.sources.fetched.source import OPTIONS, FetchedSource, content_of, interval_of
from repertory.sources.fetched.urls import is_http, shown
from repertory.sources.mcp_registry.document import SERVER_NAME, VERSION, Listed
from repertory.sources.mcp_registry.fetcher import BUNDLE, Pin, ServerFetcher
from repertory.sources.mcp_registry.launch import choices, launch_of
from repertory.sources.mcp_registry.registry import OFFICIAL_URL, Registry
from repertory.sources.source import Scan, Source

PREFIX = "mcp-registry:"
_URL = re.compile(
    r"(?P<base>https?://[^?#]{1,500}/v0(?:\.1)?)/servers/(?P<name>[^/?#]{1,300})"
    r"(?:/versions/(?P<version>[^/?#]{1,200}))?(?:#(?P<package>[a-z-]{1,50}))?"
)
_NAMED = re.compile(
    r"(?P<name>[^@#\s]{1,250})(?:@(?P<version>[^#\s]{1,200}))?(?:#(?P<package>[a-z-]{1,50}))?"
)


class _WithoutItems(Source):
    """A source without items, because the tools of a registry's server have a separate source."""

    type = "mcp-registry"

    @override
    def scan(self) -> Scan:
        return Scan(items=[])


class RegistryServer(FetchedSource, _WithoutItems):
    """The pinned version of a registry's server."""

    def __init__(self, pin: Pin) -> None:
        self.name = f"{pin.name}-registry"  # the server's own source has the entry's name
        self._pin = pin

    @override
    def identity(self) -> Mapping[str, Any]:
        pin = self._pin
        return {
            "type": self.type,
            "name": pin.name,
            "server": pin.server,
            "version": pin.version,
        }


def build(entry: Mapping[str, Any], base: Path) -> list[Source]:  # noqa: ARG001 - has no paths
    """Build the source of a registry's server, without fetching it.

    Args:
        entry: ``name``, ``server``, ``version`` and ``package``, the type of its package or
            remote. Optional: ``url`` of the registry; ``sha256``, the digest of the server's
            document; ``env`` and ``headers`` with variables; and ``refresh``.
        base: Not used.

    Raises:
        ConfigurationError: The entry is invalid.
    """
    pin = _pin(entry)
    content = content_of(ServerFetcher(pin), entry)
    return [RegistryServer(pin).attach(content, interval_of(entry))]


def _pin(entry: Mapping[str, Any]) -> Pin:
    check_options(entry, *Pin.__struct_fields__, *OPTIONS)
    pin = options_of(entry, Pin)
    checked_name(pin.name)
    whose = f"The source {pin.name!r} of type 'mcp-registry'"
    if not is_http(pin.url) or not SERVER_NAME.fullmatch(pin.server):
        raise ConfigurationError(f"{whose} has an invalid `url` or `server`.")
    if not VERSION.fullmatch(pin.version) or pin.version == "latest":
        raise ConfigurationError(f"{whose} needs a fixed `version`, not {pin.version!r}.")
    return pin


def recognise(address: Address) -> Recognised | None:
    """Recognise ``mcp-registry:NAME[@VERSION][#PACKAGE]``, or the URL of a server in a registry.

    Raises:
        UsageError: The name is invalid, or the server cannot be used safely.
        SourceError: The registry does not have it.
    """
    if address.text.startswith(PREFIX):
        found = _NAMED.fullmatch(address.text.removeprefix(PREFIX))
        url = address.registry or OFFICIAL_URL
    else:
        found = _URL.fullmatch(address.text)
        if found is None:
            return None
        url = found["base"]
    name = unquote(found["name"]) if found else ""
    if found is None or not SERVER_NAME.fullmatch(name):
        raise UsageError(
            f"{shown(address.text)} names no server of a registry; write {PREFIX}NAMESPACE/NAME, "
            "or find one with `repertory add --find WORDS`."
        )
    version = unquote(found["version"] or "latest")
    server = Registry(url).server(name, version)
    if server.status == "deleted":
        raise UsageError(f"{name}@{server.server.version} was deleted from the registry.")
    return _recognised(server, url, found["package"] or "")


def _recognised(found: Listed, url: str, package: str) -> Recognised:
    server = found.server
    known = choices(server)
    choice = package or next(iter(known), "")
    env, headers, notes = {}, {}, [server.description] if server.description else []
    if choice != BUNDLE or choice not in known:
        try:
            launch = launch_of(server, choice)
        except ValueError as error:
            raise UsageError(f"{server.name}@{server.version} cannot be used: {error}.") from error
        env, headers = launch.env, launch.headers
        notes += [_runs(launch.entry), *launch.notes]
    if found.status != "active":
        notes.append(f"The registry says that it is {found.status}. {found.message}".strip())
    if others := [one for one in known if one != choice]:
        notes.append(f"It also has {', '.join(others)}; add #{others[0]} to take that one.")
    entry: dict[str, Any] = {
        "type": "mcp-registry",
        "name": server.name.rpartition("/")[2].strip("-.") or "server",
        "url": url,
        "server": server.name,
        "version": server.version,
        "sha256": found.digest,
        "package": choice,
        **({"env": env} if env else {}),
        **({"headers": headers} if headers else {}),
    }
    return Recognised(title="a server of an MCP registry", entry=entry, notes=tuple(notes))


def _runs(entry: Mapping[str, Any]) -> str:
    """A sentence about what a trusted server runs or calls."""
    if "url" in entry:
        return f"It calls {entry['url']}."
    given = [f"{name}={value}" for name, value in entry.get("env", {}).items()]
    return f"It runs {shlex.join([*given, entry['command'], *entry['args']])}."
