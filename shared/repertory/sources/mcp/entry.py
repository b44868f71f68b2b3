"""The configuration entry for the servers of MCP configurations."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from repertory.sources.entry import options_of, path_of
from repertory.sources.mcp.config import MAX_NAME_LENGTH, Configured, read_files
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
        entry: ``config``, one path or several; later files override earlier ones. Optional:
            ``timeout`` in seconds, which overrides the files, and ``include`` and ``exclude``,
            globs of tool names. The workspace sets ``trusted``, whether the servers may run;
            ``approved``, the trusted digests that the files must match, None if the user named the
            files; ``environment``, if the servers get another one than this process; and
            ``sign_ins``, the folder of the stored sign-ins.
        base: The folder that relative paths start from.

    Raises:
        ConfigurationError: The entry is invalid, or a file cannot be read.
    """
    options = options_of(entry, _Options)
    found = _read(entry, base, trusted=options.trusted)
    changes: dict[str, Any] = {"sign_ins": options.sign_ins}
    if options.timeout is not None:
        changes["timeout"] = options.timeout
    if options.environment is not None:
        changes["environment"] = options.environment
    servers = [msgspec.structs.replace(server, **changes) for server in found.servers]
    approved, trusted, has_changed = options.approved, options.trusted, False
    if approved is not None:
        digests = [(approved.get(key_of(path)), some) for path, some in found.digests.items()]
        trusted &= all(digest in some for digest, some in digests)
        has_changed = any(digest and digest not in some for digest, some in digests)
        servers = [_bound(server, approved) for server in servers]
    return [
        McpServer(
            server,
            trusted=trusted,
            has_changed=has_changed,
            include=options.include,
            exclude=options.exclude,
        )
        for server in servers
        if not is_own_entry(server)
    ]


def _read(entry: Mapping[str, Any], base: Path, *, trusted: bool) -> Configured:
    """Read the configuration files of an entry."""
    folder = base.absolute()
    paths = [path.absolute() for path in files_to_trust(entry, base)]
    return read_files(paths, None if trusted else folder, folder)


def _bound(server: ServerConfig, approved: Mapping[str, str]) -> ServerConfig:
    """Let a server start only if its ``envFile`` is the one that the user trusted."""
    if not server.env_file:
        return server
    file = env_file_of(server)
    digest = approved.get(environment_key(file), "") if file else ""
    return msgspec.structs.replace(server, env_file_digest=digest)


def files_to_trust(entry: Mapping[str, Any], base: Path) -> list[Path]:
    """Return the configuration files that an entry names, which may be missing or invalid.

    Raises:
        ConfigurationError: A path is invalid.
    """
    config = entry.get("config")
    names = [config] if isinstance(config, str) else config if isinstance(config, list) else []
    return [path_of(str(name), base) for name in names]


def passed_over(entry: Mapping[str, Any], base: Path) -> list[PassedOver]:
    """Return the disabled servers of an entry's configuration files, by file.

    Raises:
        ConfigurationError: A file cannot be read.
    """
    return [
        PassedOver(path, f"it disables the server {one_line(name)[:MAX_NAME_LENGTH]}")
        for path, name in _read(entry, base, trusted=bool(entry.get("trusted"))).disabled
    ]
