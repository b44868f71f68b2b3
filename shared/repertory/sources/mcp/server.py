"""The configuration of an MCP server, independent of the host's file format."""

import os
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import msgspec

DEFAULT_TIMEOUT_S = 30.0  # seconds to start a server and to list all its tools

OWN_NAME = "repertory"  # the name of the entry that ``repertory connect`` writes
_REPERTORY = re.compile(
    r"""(?:^|[\s/\\"'])repertory(?:\.exe|[\[@=][^\s/\\"']*)?["']?\s+(?:mcp|serve)(?=$|[\s"'])"""
)


class Transport(StrEnum):
    """The transport to a server."""

    STDIO = "stdio"
    HTTP = "http"
    SSE = "sse"


class OAuthClient(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A client that was registered by hand, with unresolved variables."""

    client_id: str = ""
    client_secret: str = ""
    callback_port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 0

    def __repr__(self) -> str:
        """Without the secret."""
        return f"OAuthClient({self.client_id!r})"


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of one MCP server, with unresolved variables.

    Attributes:
        name: The server's name in the configuration.
        transport: stdio, http (streamable) or sse.
        command, args, env, cwd: The process; stdio only. An empty ``cwd`` is the workspace.
        env_file: A file of ``NAME=value`` lines; ``env`` overrides them.
        env_file_digest: Its required SHA-256; empty if it was not trusted, None for any.
        env_names: Variables of our own environment to pass on if they are set.
        url, headers: The address; http and sse only.
        oauth: Our client at its authorization server, if that does not register clients itself.
        sign_ins: The folder of the stored sign-ins; empty without a data directory.
        include, exclude: Globs of the tools to take; an empty ``include`` takes all.
        timeout: Seconds to start it and to list all its tools.
        call_timeout: Seconds for one call of a tool; None if not configured.
        workspace: The folder that the configuration belongs to.
        origins: Every file that defines the server, the effective one last.
        environment: The environment for variables, a part of which a process inherits; None for
            that of this process.
        fault: Why the entry is invalid; empty for a valid one.
    """

    name: str
    transport: Transport = Transport.STDIO
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    env_file: str = ""
    env_file_digest: str | None = None
    env_names: tuple[str, ...] = ()
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    oauth: OAuthClient = OAuthClient()
    sign_ins: str = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    timeout: float = DEFAULT_TIMEOUT_S
    call_timeout: float | None = None
    workspace: str = ""
    origins: tuple[str, ...] = ()
    environment: dict[str, str] | None = None
    fault: str = ""

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment for variables: ``environment``, or that of this process."""
        return os.environ if self.environment is None else self.environment

    def __repr__(self) -> str:
        """Omit arguments, environment and headers, which may contain secrets."""
        return f"ServerConfig({self.name!r}, {self.transport.value})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Show the same as ``repr``."""
        return [("name", self.name), ("transport", self.transport.value)]


def is_own_entry(server: ServerConfig) -> bool:
    """Whether ``repertory connect`` wrote the entry. It is then not a source and needs no trust."""
    path = server.url.partition("?")[0]
    return server.name == OWN_NAME and (launches_repertory(server) or path.endswith("/mcp"))


def launches_repertory(server: ServerConfig) -> bool:
    """Whether a server is Repertory, which must not index itself."""
    program = re.split(r"[/\\]", server.command)[-1].removesuffix(".exe")
    line = " ".join((server.command, *server.args))
    return program == "repertory" or _REPERTORY.search(line) is not None
