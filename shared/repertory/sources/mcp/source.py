"""The source of one MCP server: its tools as items."""

import hashlib
import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from repertory.errors import CallError, CallsOffError, SourceError
from repertory.sources.mcp.server import ServerConfig, Transport, launches_repertory
from repertory.sources.reading.problems import warning
from repertory.sources.source import Scan
from repertory.sources.tools import tool_items
from repertory.text import one_line

if TYPE_CHECKING:
    from repertory.sources.mcp.follow import ServerFollower
    from repertory.sources.mcp.traffic import Listing

# Long, with letters and digits: some servers take their key as a part of the path.
_KEY_IN_PATH = re.compile(r"(?<=/)(?=[^/]*\d)(?=[^/]*[A-Za-z])[^/]{20,}")


class McpServer:
    """One server of an MCP configuration.

    Args:
        server: Its configuration.
        trusted: Whether it may be started or called: the user named its configuration, or trusts
            it. One that was merely found may not.
        include: Globs of the tools to take, by ``tool`` or ``server__tool``; none takes all.
        exclude: Globs of the tools to leave out.
    """

    type = "mcp"

    def __init__(
        self,
        server: ServerConfig,
        *,
        trusted: bool = False,
        include: tuple[str, ...] = (),
        exclude: tuple[str, ...] = (),
    ) -> None:
        self._server = server
        self._trusted = trusted
        self._include = include
        self._exclude = exclude
        self._follower: ServerFollower | None = None

    def __eq__(self, other: object) -> bool:
        """Whether another is the same server, its secrets included, and may be run as this one."""
        return isinstance(other, McpServer) and self._setting == other._setting

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def name(self) -> str:
        """The server's name in its configuration."""
        return self._server.name

    @property
    def location(self) -> str:
        """The command's name, or the URL without what may be a secret in it."""
        if self._server.transport is Transport.STDIO:
            return self._server.command
        return _KEY_IN_PATH.sub("***", _bare_url(self._server.url))

    @property
    def origins(self) -> tuple[str, ...]:
        """The configuration files that name it, the one in force last."""
        return self._server.origins

    def identity(self) -> Mapping[str, Any]:
        """How the server is launched and which of its tools are taken.

        Of environment and headers only the names, and of the arguments a digest: all of them may
        hold secrets.
        """
        server = self._server
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

    def follow(self, on_change: Callable[[], None], poll: float) -> bool:
        """Keep in touch with the server, so that a scan knows its tools without launching it.

        Args:
            on_change: Called, on another thread, whenever a scan may find something else.
            poll: Seconds between two looks where the server says nothing of changes.

        Returns:
            Whether it is followed: one that may not be run, or cannot, is not.
        """
        server = self._server
        if server.fault or not self._trusted or launches_repertory(server):
            return False
        from repertory.sources.mcp.follow import ServerFollower  # noqa: PLC0415 - the SDK is slow

        self._follower = ServerFollower(server, on_change, poll)
        self._follower.start()
        return True

    def leave(self) -> None:
        """Follow the server no longer, and wait until it has ended."""
        if self._follower is not None:
            self._follower.close()
            self._follower = None

    def scan(self) -> Scan:
        """List the server's tools: those it has now if it is followed, else launch and end it.

        Raises:
            SourceError: Its entry is wrong, it may not be run, or it does not answer.
        """
        server = self._server
        origin = server.origins[-1] if server.origins else ""
        if server.fault:
            raise SourceError(server.fault)
        if launches_repertory(server):
            return Scan(items=[], problems=[warning(origin, self._is_ourselves)])
        if not self._trusted:
            raise SourceError(self._is_not_trusted)
        listing = self._list()
        tools = [tool for tool in listing.tools if self._takes(tool)]
        items, problems = tool_items(self.name, self.name, tools, origin)
        problems += [
            warning(origin, f"The MCP server {self.name} {complaint}.")
            for complaint in listing.complaints
        ]
        return Scan(items=items, problems=problems)

    def to_call(self, tool: str) -> ServerConfig:
        """The configuration with which a tool of the server is called.

        Args:
            tool: The tool's own name.

        Raises:
            CallsOffError: The server may not be run, or the tool is one of those left out.
            CallError: The server's entry is wrong.
        """
        server = self._server
        if server.fault:
            raise CallError(server.fault)
        if launches_repertory(server):
            raise CallsOffError(self._is_ourselves)
        if not self._trusted:
            raise CallsOffError(self._is_not_trusted)
        if not self._takes({"name": tool}):
            raise CallsOffError(
                f"The tool {one_line(tool)} of the MCP server {self.name} is left out by its "
                "configuration; include it there to call it."
            )
        return server

    @property
    def _is_ourselves(self) -> str:
        return f"The MCP server {self.name} is Repertory itself and was left out."

    @property
    def _is_not_trusted(self) -> str:
        origin = self._server.origins[-1] if self._server.origins else ""
        return f"{origin} was found but not run; run 'repertory config trust {origin}' to allow it."

    def _list(self) -> "Listing":
        if self._follower is not None:
            return self._follower.listing()
        from repertory.sources.mcp.client import list_tools  # noqa: PLC0415 - the SDK is slow

        return list_tools(self._server)

    @property
    def _setting(self) -> tuple[object, ...]:
        return self._server, self._trusted, self._include, self._exclude

    def _takes(self, tool: object) -> bool:
        """Whether a tool passes both the configuration's filters and the source's own.

        What has no name passes, to be complained of.
        """
        name = tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(name, str):
            return True
        names = (name, f"{self.name}__{name}")
        server = self._server
        return (
            (not server.include or _matches(names, server.include))
            and (not self._include or _matches(names, self._include))
            and not _matches(names, (*server.exclude, *self._exclude))
        )


def _matches(names: tuple[str, ...], globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, glob) for name in names for glob in globs)


def _bare_url(url: str) -> str:
    """Scheme, host, port and path; credentials and query left out."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if url else ""
