"""MCP configurations that were found but are not trusted yet."""

import shlex
from pathlib import Path

import msgspec

from repertory.errors import ConfigurationError
from repertory.sources.mcp.config import read_servers
from repertory.sources.mcp.server import ServerConfig
from repertory.workspace import Workspace


class Untrusted(msgspec.Struct, frozen=True):
    """Untrusted configurations, and the names of their servers."""

    files: list[Path]
    servers: set[str]


def untrusted(workspace: Workspace) -> Untrusted:
    """The readable configurations of a catalogue that are not trusted."""
    files: list[Path] = []
    servers: set[str] = set()
    for entry in workspace.entries():
        if entry.get("type") != "mcp" or entry["trusted"]:
            continue
        config = entry["config"]
        named = [config] if isinstance(config, str) else config
        paths = [workspace.base / Path(path).expanduser() for path in named]
        try:
            found = read_servers(paths)
        except ConfigurationError:  # building the catalogue says so
            continue
        if found:
            files += [path for path in paths if not workspace.trust.is_trusted(path)]
            servers |= {server.name for server in found if not server.fault}
    return Untrusted(files, servers)


def launch(server: ServerConfig) -> str:
    """How a server is run, without its arguments, which may be secret."""
    return f"{server.name} (runs {server.command})" if server.command else f"{server.name} (called)"


def advice(found: Untrusted) -> str:
    """How to trust the configurations that were found; empty if there are none."""
    if not found.files:
        return ""
    names = ", ".join(sorted(found.servers))
    files = shlex.join(str(path) for path in found.files)
    return (
        f"MCP servers were found but not run: {names}.\n"
        f"To let them be run and indexed: repertory config trust {files}"
    )
