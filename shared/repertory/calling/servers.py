"""The MCP servers that may be called, read from the current configuration files."""

import os
import threading
import time
from collections.abc import Hashable, Iterable
from pathlib import Path

from repertory.catalogue.item import Item, Kind
from repertory.errors import CallError, CallsOffError, ConfigurationError, UsageError
from repertory.sources.configured import Catalogue
from repertory.sources.mcp.server import ServerConfig
from repertory.sources.source import Source
from repertory.sources.tools import given_name
from repertory.workspace import Workspace

RETRY_INTERVAL_S = 5.0  # seconds before an unknown server is looked up again


class Servers:
    """The MCP servers of a workspace. Thread-safe.

    The catalogue is cached, because building it reads many files. It is read again when one of its
    files changes.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = threading.Lock()
        self._catalogue = Catalogue(())
        self._seen: Hashable = None
        self._read_at = float("-inf")

    def of(self, tool: Item) -> ServerConfig:
        """Return the configuration of a tool's server.

        Raises:
            UsageError: The item is not a tool.
            CallsOffError: Its server is not configured or not trusted here.
            CallError: The configuration of its server is invalid.
        """
        if tool.kind is not Kind.TOOL:
            raise UsageError(f"{tool.id} is a {tool.kind}; only tools can be called.")
        with self._lock:
            self._refresh()
            source = self._find(tool.source)
            if source is None and time.monotonic() - self._read_at > RETRY_INTERVAL_S:
                self._read()
                source = self._find(tool.source)
        server = source.to_call(given_name(tool)) if source is not None else None
        if server is not None:
            return server
        raise CallsOffError(
            f"The tool {tool.id} belongs to no MCP server that is configured where this runs; only "
            "tools of such servers can be called."
        )

    def _find(self, name: str) -> Source | None:
        return next((source for source in self._catalogue.sources if source.name == name), None)

    def _refresh(self) -> None:
        """Read the catalogue again if one of its files changed."""
        if self._seen is None or self._seen != self._signature():
            self._read()

    def _read(self) -> None:
        self._read_at = time.monotonic()
        try:
            self._workspace = self._workspace.again()
            self._catalogue = self._workspace.catalogue()
        except ConfigurationError as error:
            if self._seen is None:
                raise CallError(f"The configuration of MCP servers is invalid: {error}") from error
        self._seen = self._signature()

    def _signature(self) -> Hashable:
        """What changes when a file that the catalogue follows from does."""
        return tuple(_signatures(set(self._workspace.followed())))


def _signatures(paths: Iterable[Path]) -> Iterable[Hashable]:
    for path in sorted(paths):
        try:
            status = os.stat(path)  # noqa: PTH116 - speed
        except (OSError, ValueError):
            yield path, None
        else:
            yield path, status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
