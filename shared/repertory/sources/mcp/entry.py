"""The configuration entry of the servers of MCP configurations."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from repertory.errors import ConfigurationError
from repertory.sources.entry import path_of
from repertory.sources.mcp.config import MAX_NAME_LENGTH, disabled, read_files
from repertory.sources.mcp.server import ServerConfig, is_own_entry
from repertory.sources.mcp.source import McpServer
from repertory.sources.mcp.variables import env_file_of
from repertory.sources.source import PassedOver, Source
from repertory.text import one_line
from repertory.trust import environment_key, key_of


class _Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    type: str
    config: str | list[str]
    timeout: Annotated[float, msgspec.Meta(gt=0)] | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    trusted: bool = False
    approved: dict[str, str] | None = None
    environment: dict[str, str] | None = None
    sign_ins: str = ""


def build(entry: Mapping[str, Any], base: Path) -> list[Source]:
    """Build one source for each server of an entry's configuration files.

    Args:
        entry: ``config``, one path or several; later files override earlier ones. Optional are
            ``timeout`` in seconds, which overrides the files, and ``include`` and ``exclude``,
            globs of tool names. The workspace sets ``trusted``: whether the servers may run;
            ``approved``: the digests of ``TrustStore`` that what is read must have for it, None if
            the user named the files; ``environment``, if they start with another one than this
            process's; and ``sign_ins``, the folder of the stored sign-ins.
        base: The folder that relative paths start from.

    Raises:
        ConfigurationError: The entry is invalid, or a file cannot be read.
    """
    try:
        options = msgspec.convert(dict(entry), _Options)
    except msgspec.ValidationError as exc:
        raise ConfigurationError(f"A source of type 'mcp' is not set up right: {exc}") from exc
    paths = [path.absolute() for path in files_to_trust(entry, base)]
    folder = base.absolute()
    servers, digests = read_files(paths, None if options.trusted else folder, folder)
    approved, trusted = options.approved, options.trusted
    if approved is not None:
        trusted &= all(approved.get(key_of(path)) in some for path, some in digests.items())
    if options.timeout is not None:
        servers = [msgspec.structs.replace(s, timeout=options.timeout) for s in servers]
    if options.environment is not None:
        own = options.environment
        servers = [msgspec.structs.replace(s, environment=own) for s in servers]
    servers = [msgspec.structs.replace(s, sign_ins=options.sign_ins) for s in servers]
    if approved is not None:
        servers = [_bound(server, approved) for server in servers]
    return [
        McpServer(s, trusted=trusted, include=options.include, exclude=options.exclude)
        for s in servers
        if not is_own_entry(s)
    ]


def _bound(server: ServerConfig, approved: Mapping[str, str]) -> ServerConfig:
    """A server that starts only while its ``envFile`` is the one that the user trusted."""
    if not server.env_file:
        return server
    file = env_file_of(server)
    digest = approved.get(environment_key(file), "") if file else ""
    return msgspec.structs.replace(server, env_file_digest=digest)


def files_to_trust(entry: Mapping[str, Any], base: Path) -> list[Path]:
    """Return the configuration files that an entry names, which may be missing or invalid.

    Raises:
        ConfigurationError: One is no path.
    """
    config = entry.get("config")
    names = [config] if isinstance(config, str) else config if isinstance(config, list) else []
    return [path_of(str(name), base) for name in names]


def passed_over(entry: Mapping[str, Any], base: Path) -> list[PassedOver]:
    """Return the disabled servers of an entry's configuration files, by file.

    Raises:
        ConfigurationError: A file cannot be read.
    """
    folder = base.absolute()
    project = None if entry.get("trusted") else folder
    paths = [path.absolute() for path in files_to_trust(entry, base)]
    return [
        PassedOver(path, f"it disables the server {one_line(name)[:MAX_NAME_LENGTH]}")
        for path, name in disabled(paths, project, folder)
    ]
