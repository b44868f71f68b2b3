"""Which MCP servers may be called: those of the catalogue, as its files are now."""

import os
import threading
import time
from collections.abc import Hashable, Iterable
from pathlib import Path

from repertory.catalogue.item import Item, Kind
from repertory.errors import CallError, CallsOffError, ConfigurationError, SourceError, UsageError
from repertory.sources.catalogue import Catalogue
from repertory.sources.mcp import McpServer
from repertory.sources.mcp.server import ServerConfig
from repertory.sources.source import Source
from repertory.sources.tools import given_name
from repertory.workspace import Workspace

PAUSE = 5.0  # seconds before a server that is not known is looked for again


class Servers:
    """Knows a directory's MCP servers. Safe to use from several threads.

    The catalogue is kept, since finding it takes many looks at files, and read anew when one of
    the files that it follows from is another.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = threading.Lock()
        self._catalogue = Catalogue(())
        self._seen: Hashable = None
        self._read_at = float("-inf")

    def of(self, tool: Item) -> ServerConfig:
        """The configuration with which a tool is called.

        Raises:
            UsageError: The item is no tool.
            CallsOffError: It is no tool of a server that may be run here.
            CallError: The configuration of its server is wrong.
        """
        if tool.kind is not Kind.TOOL:
            raise UsageError(f"{tool.id} is a {tool.kind}; only tools can be called.")
        with self._lock:
            self._refresh()
            source = self._find(tool.source)
            if source is None and time.monotonic() - self._read_at > PAUSE:
                self._read()
                source = self._find(tool.source)
        if isinstance(source, McpServer):
            return source.to_call(given_name(tool))
        if source is not None and source.type == "mcp":
            try:
                source.scan()
            except SourceError as error:
                raise CallError(str(error)) from error
        raise CallsOffError(
            f"The tool {tool.id} is of no MCP server that is configured where this runs; only "
            "tools of those can be called."
        )

    def _find(self, name: str) -> Source | None:
        return next((source for source in self._catalogue.sources if source.name == name), None)

    def _refresh(self) -> None:
        """Read the catalogue where it has not been read as its files are."""
        if self._seen is None or self._seen != self._signature():
            self._read()

    def _read(self) -> None:
        self._read_at = time.monotonic()
        try:
            self._workspace = self._workspace.again()
            self._catalogue = self._workspace.catalogue()
        except ConfigurationError as error:
            if self._seen is None:
                raise CallError(f"What may be called cannot be read: {error}") from error
        self._seen = self._signature()

    def _signature(self) -> Hashable:
        """What changes when a file that the catalogue follows from does."""
        servers = [source for source in self._catalogue.sources if isinstance(source, McpServer)]
        named = {Path(origin) for server in servers for origin in server.origins}
        return tuple(_signatures({*self._workspace.followed(), *named}))


def _signatures(paths: Iterable[Path]) -> Iterable[Hashable]:
    for path in sorted(paths):
        try:
            status = os.stat(path)  # noqa: PTH116 - speed
        except (OSError, ValueError):
            yield path, None
        else:
            yield path, status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
