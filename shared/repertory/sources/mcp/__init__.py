"""The servers of MCP configurations: one source for each server, its tools as items."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from repertory.errors import ConfigurationError
from repertory.sources.mcp.config import read_servers
from repertory.sources.mcp.source import McpServer
from repertory.sources.source import Source

__all__ = ["McpServer", "build"]


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    type: str
    config: str | list[str]
    timeout: float | None = None
    include: list[str] = []
    exclude: list[str] = []
    trusted: bool = False


def build(entry: Mapping[str, Any], base: Path) -> list[Source]:
    """The servers of an entry's configuration files, one source for each.

    Args:
        entry: ``config``, a path or several that are merged, the later winning; if it likes
            ``timeout`` in seconds, which stands above what the files say, ``include`` and
            ``exclude``, globs of tool names; and ``trusted``, whether the servers may be run,
            filled in by who knows whether the user named or trusts the files.
        base: The folder that relative paths start from.

    Raises:
        ConfigurationError: The entry is wrong, or a file cannot be read.
    """
    try:
        options = msgspec.convert(dict(entry), _Entry)
    except msgspec.ValidationError as exc:
        raise ConfigurationError(f"A source of type 'mcp' is not set up right: {exc}") from exc
    paths = [options.config] if isinstance(options.config, str) else options.config
    servers = read_servers(base.absolute() / Path(path).expanduser() for path in paths)
    if options.timeout is not None:
        if not options.timeout > 0:
            raise ConfigurationError("The timeout of a source of type 'mcp' is seconds, above 0.")
        servers = [msgspec.structs.replace(s, timeout=options.timeout) for s in servers]
    return [
        McpServer(
            server,
            trusted=options.trusted,
            include=tuple(options.include),
            exclude=tuple(options.exclude),
        )
        for server in servers
    ]
