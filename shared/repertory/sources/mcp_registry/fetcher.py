"""Fetches the document of one version of a server, and declares the server that it describes."""

from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
from typing_extensions import override

from repertory.errors import SourceError
from repertory.sources.fetched.fetcher import Declared, Fetched, Fetcher, State
from repertory.sources.mcp_registry.bundle import unpacked
from repertory.sources.mcp_registry.document import Listed
from repertory.sources.mcp_registry.launch import launch_of
from repertory.sources.mcp_registry.registry import OFFICIAL_URL, Registry

BUNDLE = "mcpb"


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """The pinned version of a registry's server, and the values that the user adds to it.

    Attributes:
        name: The name of the source, and of its server in the configuration.
        url: The registry.
        server, version, sha256: The server, its version, and the digest of its document.
        package: The type of its package or remote.
        env, headers: Additional variables of the program or headers of the requests.
    """

    name: str
    url: str = OFFICIAL_URL
    server: str
    version: str
    package: str
    sha256: str = ""
    env: dict[str, str] = {}
    headers: dict[str, str] = {}


class ServerFetcher(Fetcher):
    """Fetches one version of one server, which the registry cannot replace."""

    def __init__(self, pin: Pin) -> None:
        self.cancelled = Event()
        self._pin = pin
        self._registry = Registry(pin.url, self.cancelled.is_set)
        self.location = f"{pin.server}@{pin.version} of {self._registry.location}"

    @override
    def key(self) -> Mapping[str, Any]:
        found: dict[str, Any] = msgspec.to_builtins(self._pin)
        return found

    @override
    def fetch(self, into: Path, last: State, *, may_ask: bool) -> Fetched | None:
        pin = self._pin
        found = self._registry.server(pin.server, pin.version)
        if pin.sha256 and found.digest != pin.sha256:
            raise SourceError(
                f"{self.location} has a different document from the one that was added (SHA-256 "
                f"{found.digest}); it was not used. Remove the source and add it again to see it."
            )
        notes = _notes(found)
        if last.revision == found.digest and last.notes == notes:
            return None
        root = into / "root"
        entry = self._entry(found, root)
        declared = Declared(name=pin.name, root=root, servers={pin.name: entry})
        return Fetched(revision=found.digest, notes=notes, declared=(declared,))

    def _entry(self, found: Listed, root: Path) -> dict[str, Any]:
        pin = self._pin
        bundles = [one for one in found.server.packages if one.registry_type == BUNDLE]
        if pin.package == BUNDLE and bundles:
            entry = unpacked(bundles[0], root, self.cancelled.is_set)
        else:
            root.mkdir()
            try:
                entry = launch_of(found.server, pin.package, pin.env).entry
            except ValueError as error:
                raise SourceError(f"{self.location} cannot be used: {error}.") from error
        for key, more in (("env", pin.env), ("headers", pin.headers)):
            if more:
                entry = {**entry, key: {**entry.get(key, {}), **more}}
        return entry


def _notes(found: Listed) -> tuple[str, ...]:
    """The current status of the version, unless it is active."""
    if found.status == "active":
        return ()
    why = f": {found.message}" if found.message else ""
    return (f"{found.server.name}@{found.server.version} is {found.status}{why}.",)
