"""An MCP server as it is configured, whichever host's file it was written in."""

import re
from enum import StrEnum
from typing import Any

import msgspec

DEFAULT_TIMEOUT = 30.0  # seconds to start a server and to list all its tools

_OURSELVES = re.compile(r"""(?:^|[\s/\\"'])repertory(?:\.exe)?["']?\s+(?:mcp|serve)(?=$|[\s"'])""")


class Transport(StrEnum):
    """How a server is spoken to."""

    STDIO = "stdio"
    HTTP = "http"
    SSE = "sse"


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One MCP server as it is configured, variables not yet filled in.

    Attributes:
        name: The server's name in the configuration.
        transport: stdio, http (streamable) or sse.
        command, args, env, cwd: What to start; stdio only. An empty ``cwd`` is the workspace.
        env_file: A file of ``NAME=value`` lines that ``env`` is laid over.
        env_names: Variables of our own environment to pass on where they are set.
        url, headers: What to call; http and sse only.
        include, exclude: Globs of the names of the tools to take; nothing included is everything.
        timeout: Seconds to start it and to list all its tools.
        call_timeout: Seconds for a tool that is called; None where the configuration does not say.
        workspace: The folder that the configuration belongs to.
        origins: Every file that names the server, the one in force last.
        fault: Why the entry cannot be used; empty for a good one.
    """

    name: str
    transport: Transport = Transport.STDIO
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    env_file: str = ""
    env_names: tuple[str, ...] = ()
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    timeout: float = DEFAULT_TIMEOUT
    call_timeout: float | None = None
    workspace: str = ""
    origins: tuple[str, ...] = ()
    fault: str = ""

    def __repr__(self) -> str:
        """Without arguments, environment and headers: they may hold secrets."""
        return f"ServerConfig({self.name!r}, {self.transport.value})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """As ``repr`` has it."""
        return [("name", self.name), ("transport", self.transport.value)]


def launches_repertory(server: ServerConfig) -> bool:
    """Whether a server is this program itself, which must not index itself."""
    program = re.split(r"[/\\]", server.command)[-1].removesuffix(".exe")
    line = " ".join((server.command, *server.args))
    return program == "repertory" or _OURSELVES.search(line) is not None
