"""The MCP servers and APIs that may be called, read from the current configuration files."""

import threading
import time
from typing import TYPE_CHECKING

from repertory.catalogue.item import Item, Kind
from repertory.errors import CallError, CallsOffError, ConfigurationError, UsageError
from repertory.project.workspace import Workspace
from repertory.sources.configured import Catalogue
from repertory.sources.source import Source
from repertory.sources.tools import given_name
from repertory.system.files import Signature, signature

if TYPE_CHECKING:
    from repertory.sources.source import Callee

RETRY_INTERVAL_S = 5.0  # minimum time between two reads caused by unknown servers


class Servers:
    """The MCP servers and APIs of a workspace. Thread-safe.

    The catalogue is cached, because building it reads many files. It is read again when one of its
    files changes.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = threading.Lock()
        self._catalogue = Catalogue(())
        self._seen: dict[str, Signature | None] | None = None
        self._read_at = float("-inf")

    def of(self, tool: Item) -> "Callee":
        """Return the configuration of a tool's server or API.

        Raises:
            UsageError: The item is not a tool.
            CallsOffError: The tool's server is not configured or not trusted here.
            CallError: The configuration of MCP servers is invalid.
        """
        if tool.kind is not Kind.TOOL:
            raise UsageError(f"{tool.id} is a {tool.kind}; only tools can be called.")
        with self._lock:
            if self._seen is None or self._seen != self._signatures():
                self._read()
            source = self._find(tool.source)
            if source is None and time.monotonic() - self._read_at > RETRY_INTERVAL_S:
                self._read()
                source = self._find(tool.source)
        if source and (server := source.to_call(given_name(tool))):
            return server
        raise CallsOffError(
            f"The tool {tool.id} belongs to no MCP server or API that is configured where this "
            "runs; only tools of such servers can be called."
        )

    def _find(self, name: str) -> Source | None:
        return next((source for source in self._catalogue.sources if source.name == name), None)

    def _read(self) -> None:
        self._read_at, before = time.monotonic(), self._signatures()
        try:
            self._workspace = self._workspace.reloaded()
            self._catalogue = self._workspace.catalogue()
        except ConfigurationError as error:
            if self._seen is None:
                raise CallError(f"The configuration of MCP servers is invalid: {error}") from error
        # A file that changed during the read gets no signature, so the next call reads it again.
        self._seen = {
            path: one if before.get(path, one) == one else None
            for path, one in self._signatures().items()
        }

    def _signatures(self) -> dict[str, Signature | None]:
        return {path: signature(path) for path in map(str, self._workspace.followed())}
