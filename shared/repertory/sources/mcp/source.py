"""The source of one MCP server: its tools as items."""

import hashlib
import re
import shlex
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from typing_extensions import override

from repertory.errors import CallError, CallsOffError, SourceError
from repertory.sources.mcp.server import ServerConfig, Transport, launches_repertory
from repertory.sources.mcp.variables import env_file_of, names_of
from repertory.sources.source import Scan, Source, Trust, warning
from repertory.sources.tools import takes, tool_items
from repertory.text import one_line

if TYPE_CHECKING:
    from repertory.sources.mcp.follow import ServerFollower

# A long part with letters and digits: the URLs of some servers have a key in the path.
_KEY_IN_PATH = re.compile(r"(?<=/)(?=[^/]*\d)(?=[^/]*[A-Za-z])[^/]{20,}")


class McpServer(Source):
    """One server of an MCP configuration.

    Args:
        server: Its configuration.
        trusted: Whether it may be started or called, because the user named or trusted its
            configuration. A discovered server may not.
        has_changed: Whether the user trusted an earlier version of its configuration.
        include: Globs of the tools to take, as ``tool`` or ``server__tool``; empty for all.
        exclude: Globs of the tools to leave out.

    Attributes:
        config: The configuration of the server, trusted or not.
    """

    type = "mcp"
    needs_trust = True
    trust = Trust.REVIEW

    def __init__(
        self,
        server: ServerConfig,
        *,
        trusted: bool = False,
        has_changed: bool = False,
        include: tuple[str, ...] = (),
        exclude: tuple[str, ...] = (),
    ) -> None:
        self.name = server.name
        self.location = _location(server)
        self._is_repertory = launches_repertory(server)  # it never runs, so it needs no trust
        self.is_trusted = trusted or self._is_repertory
        self.asks_server = trusted and not (server.fault or self._is_repertory)
        self._has_changed = has_changed
        self.fault = server.fault
        self.config = server
        self.origin = server.origins[-1] if server.origins else ""
        self._include = include
        self._exclude = exclude
        self._follower: ServerFollower | None = None
        self._given_up: Future[None] | None = None  # cancels the running scan

    @override
    def configuration(self) -> object:
        return self.config, self.is_trusted, self._has_changed, self._include, self._exclude

    @override
    def identity(self) -> Mapping[str, Any]:
        server = self.config
        # Only names and a digest of environment, headers and arguments, which may contain secrets.
        arguments = hashlib.sha256(msgspec.json.encode(server.args)).hexdigest()
        return {
            "type": self.type,
            "name": server.name,
            "transport": server.transport.value,
            "command": server.command,
            "args": arguments if server.args else "",
            "cwd": str(Path(server.workspace, server.cwd)) if server.command else "",
            "env": sorted({*server.env, *server.env_names}),
            "url": _bare_url(server.url),
            "headers": sorted(server.headers),
            "include": [sorted(server.include), sorted(self._include)],
            "exclude": sorted({*server.exclude, *self._exclude}),
        }

    @property
    def env_file(self) -> Path | None:
        """The ``envFile`` of the server, which is trusted with its configuration."""
        return env_file_of(self.config)

    @property
    def variables(self) -> list[str]:
        """The names of the environment variables that the server gets."""
        return names_of(self.config)

    @override
    def watch(self, changed: Callable[[], None], interval: float) -> Callable[[], None] | None:
        if not self.asks_server:
            return None
        from repertory.sources.mcp.follow import ServerFollower  # noqa: PLC0415 - only to watch

        self._follower = ServerFollower(self.config, changed, interval)
        self._follower.start()
        return self._unwatch

    def _unwatch(self) -> None:
        if self._follower is not None:
            self._follower.close()
            self._follower = None

    @override
    def scan(self) -> Scan:
        """List the server's tools; a server that is not watched is started and ended."""
        server = self.config
        if server.fault:
            raise SourceError(server.fault)
        if self._is_repertory:
            return Scan(items=[], problems=[warning(self.origin, self._repertory_message)])
        if not self.is_trusted:
            raise SourceError(self._untrusted_message)
        if self._follower is not None:
            listing = self._follower.listing()
        else:
            given_up = self._given_up = Future[None]()  # set before the SDK's slow import
            from repertory.sources.mcp.client import list_tools  # noqa: PLC0415 - the SDK is slow

            listing = list_tools(server, given_up)
        tools = [tool for tool in listing.tools if self._takes(tool)]
        items, problems = tool_items(self.name, self.name, tools, self.origin)
        problems += [
            warning(self.origin, f"The MCP server {self.name} {complaint}.")
            for complaint in listing.complaints
        ]
        return Scan(items=items, problems=problems)

    @override
    def cancel(self) -> None:
        if self._given_up is not None:
            self._given_up.cancel()

    def to_contact(self) -> ServerConfig:
        """Return the server if it may be started or called.

        Raises:
            CallsOffError: It is not trusted, or is Repertory itself.
            CallError: Its configuration is invalid.
        """
        server = self.config
        if server.fault:
            raise CallError(server.fault)
        if self._is_repertory:
            raise CallsOffError(self._repertory_message)
        if not self.is_trusted:
            raise CallsOffError(self._untrusted_message)
        return server

    @override
    def to_call(self, tool: str) -> ServerConfig:
        server = self.to_contact()
        if not self._takes({"name": tool}):
            raise CallsOffError(
                f"The tool {one_line(tool)} of the MCP server {self.name} is left out by its "
                "configuration; include it there to call it."
            )
        return server

    @property
    def _repertory_message(self) -> str:
        return f"The MCP server {self.name} is Repertory itself and was left out."

    @property
    def _untrusted_message(self) -> str:
        command = f"repertory config trust {shlex.quote(self.origin)}"
        if self._has_changed:
            return (
                f"{self.origin} has changed since you trusted it, and is not run; run "
                f"`{command}` to allow it again."
            )
        return f"{self.origin} was found but not run; run `{command}` to allow it."

    def _takes(self, tool: object) -> bool:
        """Whether a tool passes the filters of the configuration and of the source.

        A tool without a name passes and is reported later.
        """
        name = tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(name, str):
            return True
        server = self.config
        return takes(self.name, name, server.include, server.exclude) and takes(
            self.name, name, self._include, self._exclude
        )


def _location(server: ServerConfig) -> str:
    """Return the command's name, or the URL without possible secrets."""
    if server.transport is Transport.STDIO:
        return server.command
    return _KEY_IN_PATH.sub("***", _bare_url(server.url))


def _bare_url(url: str) -> str:
    """Return scheme, host, port and path, without credentials and query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if url else ""
