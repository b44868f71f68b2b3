"""Reads the MCP configuration files of all agent hosts into one form.

| host                        | file                                   | servers under   |
| --------------------------- | -------------------------------------- | --------------- |
| Claude Desktop, Claude Code | claude_desktop_config.json, .mcp.json  | mcpServers      |
| Cursor                      | .cursor/mcp.json                       | mcpServers      |
| VS Code                     | .vscode/mcp.json, Code/User/mcp.json   | servers         |
| Windsurf                    | mcp_config.json                        | mcpServers      |
| Codex                       | .codex/config.toml                     | mcp_servers     |
| Gemini, Qwen                | .gemini/settings.json, .qwen/…         | mcpServers      |
| Zed                         | zed/settings.json, .zed/settings.json  | context_servers |
| opencode                    | opencode.json, opencode.jsonc          | mcp             |
| opencode 2                  | the same, also in .opencode            | mcp, servers    |
| Goose                       | goose/config.yaml                      | extensions      |
| Copilot                     | .github/mcp.json, mcp-config.json      | either          |
| Amazon Q, Kiro, Roo, Kilo   | mcp.json in their folders              | mcpServers      |
| Junie, Factory              | mcp.json in their folders              | mcpServers      |
| toolscript                  | .toolscript.json                       | mcpServers      |
| plugins of Claude Code      | .mcp.json, .claude-plugin/plugin.json  | mcpServers      |
| extensions of Gemini        | gemini-extension.json                  | mcpServers      |

Claude Code also has servers for single folders, under ``projects`` and the folder's path. In the
``.mcp.json`` of a plugin, the servers may also be at the top level. Comments and trailing commas
are allowed in all files. Variables (``${…}``) stay unresolved until the server is launched, so that
no secrets from the environment are kept in memory.
"""

import json
import re
from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from repertory.errors import ConfigurationError
from repertory.sources.mcp.server import DEFAULT_TIMEOUT_S, OAuthClient, ServerConfig, Transport
from repertory.sources.reading.jsonc import plain_json
from repertory.sources.reading.structured import Defect, decoded, load
from repertory.system.paths import real_path
from repertory.system.untrusted_files import read_bytes, read_inside
from repertory.text import one_line
from repertory.trust import digest_of

MAX_FILE_SIZE = 32 * 2**20  # bytes; Claude Code keeps histories in the same file
MAX_FOUND_SIZE = 2**20  # bytes of a file that came with a project
MAX_NAME_LENGTH = 128
MAX_SERVERS = 1_000  # per file
MIN_MILLISECONDS = 1_000  # smaller timeouts are in seconds, as in Cline and Roo

_ZED = "context_servers"
_SERVER_TABLES = ("mcpServers", "servers", "mcp_servers", _ZED)
_TARGETS = ("command", "cmd", "url", "uri")
_OPENCODE, _GOOSE = "mcp", "extensions"  # the keys have other meanings in files of other hosts
_COMMON_KEYS: dict[str, dict[str, str]] = {  # the common names of the keys of entries
    _ZED: {},
    _OPENCODE: {"environment": "env"},
    _GOOSE: {"cmd": "command", "uri": "url", "envs": "env", "env_keys": "env_vars"}
    | {"available_tools": "enabled_tools"},
}
_CLIENT_KEYS = {  # the common names of the keys of an OAuth client in Cursor and opencode 2
    "CLIENT_ID": "clientId",
    "CLIENT_SECRET": "clientSecret",
    "client_id": "clientId",
    "client_secret": "clientSecret",
    "callback_port": "callbackPort",
}
_PART = "servers:"  # prefix of the digest of the parts that are read from a file
_PROJECTS = "projects"
_HOST_FOLDERS = (
    *(".amazonq", ".claude", ".claude-plugin", ".codex", ".cursor", ".factory", ".gemini"),
    *(".github", ".junie/mcp", ".kilocode", ".kiro/settings", ".opencode", ".qwen", ".roo"),
    *(".vscode", ".zed"),
)
_GEMINI_FOLDERS = {".gemini", ".qwen"}
_GEMINI_EXTENSION = "gemini-extension.json"
_MCP_FILE = ".mcp.json"

_TRANSPORTS = {
    "stdio": Transport.STDIO,
    "local": Transport.STDIO,
    "remote": Transport.HTTP,
    "http": Transport.HTTP,
    "streamable-http": Transport.HTTP,
    "streamableHttp": Transport.HTTP,
    "streamable_http": Transport.HTTP,
    "sse": Transport.SSE,
}

_CAMEL_CASE = {  # the keys of entries that differ from their attributes
    "env_file": "envFile",
    "http_url": "httpUrl",
    "server_url": "serverUrl",
    "include_tools": "includeTools",
    "exclude_tools": "excludeTools",
    "hidden_tools": "disabledTools",  # of Windsurf and Cline
}

_OPENCODE_VARIABLE = re.compile(r"\{env:([^{}]+)\}")
_GEMINI_VARIABLE = re.compile(r"(?<!:-)\$([A-Za-z_][A-Za-z0-9_]*)")

Scalar = str | int | float | bool | None
Names = list[str]


class _Limits(msgspec.Struct, frozen=True):
    """The timeouts of a server in opencode 2, in milliseconds."""

    startup: float = 30_000
    catalog: float = 30_000  # to list its tools


class _Variable(msgspec.Struct, frozen=True):
    """The long form of a variable to pass on in Codex."""

    name: str


class _Entry(msgspec.Struct, frozen=True, rename=_CAMEL_CASE):
    """The entry of a server, with the keys of all hosts."""

    type: str = ""
    command: str = ""
    args: list[str | int | float] = []
    env: dict[str, Scalar] = {}
    env_file: str = ""
    cwd: str = ""
    url: str = ""
    http_url: str = ""
    server_url: str = ""  # Windsurf's key
    headers: dict[str, str] = {}
    oauth: OAuthClient | bool = False
    enabled: bool = True
    disabled: bool = False
    include_tools: Names = []
    exclude_tools: Names = []
    hidden_tools: Names = []
    timeout: float | _Limits | None = None  # milliseconds; see MIN_MILLISECONDS
    # Codex's keys
    env_vars: list[str | _Variable] = []
    bearer_token_env_var: str = ""
    http_headers: dict[str, str] = {}
    env_http_headers: dict[str, str] = {}
    enabled_tools: Names = []
    disabled_tools: Names = []
    startup_timeout_sec: float | None = None
    startup_timeout_ms: float | None = None
    tool_timeout_sec: float | None = None

    @property
    def address(self) -> str:
        """The URL, by whichever key; empty without one."""
        return self.http_url or self.url or self.server_url


class _Rules(msgspec.Struct, frozen=True):
    """The servers that Gemini allows."""

    allowed: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()


class Configured(msgspec.Struct, frozen=True, kw_only=True):
    """The servers that configuration files define.

    Attributes:
        servers: The servers, without the disabled ones. One with an invalid entry has a ``fault``.
        disabled: The file and the name of each disabled server.
        digests: The digests by which each file may be trusted.
    """

    servers: list[ServerConfig]
    disabled: list[tuple[str, str]]
    digests: dict[Path, set[str]]


def read_files(
    paths: Iterable[Path], project: Path | None = None, directory: Path | None = None
) -> Configured:
    """Read and merge the servers of several configuration files; later files override earlier.

    Args:
        paths: The files.
        project: The folder of a project. Files in it must not be links that lead out of it, nor
            have more than ``MAX_FOUND_SIZE`` bytes.
        directory: A folder whose own servers are read as well; they override the general ones.

    Raises:
        ConfigurationError: A file cannot be read; the message names it and the line.
    """
    merged: dict[str, ServerConfig | None] = {}
    origins: dict[str, tuple[str, ...]] = {}
    digests: dict[Path, set[str]] = {}
    for path in paths:
        data = _read(path, project)
        text = decoded(data, str(path), ConfigurationError)
        document = _parse(path, text)
        digests[path] = {digest_of(data), _digest(document)}
        for name, server in _servers(path, text, document, directory).items():
            origins[name] = (*origins.get(name, ()), str(path))
            merged[name] = server
    return Configured(
        servers=[
            msgspec.structs.replace(server, origins=origins[name])
            for name, server in merged.items()
            if server is not None
        ],
        disabled=[(origins[name][-1], name) for name, server in merged.items() if server is None],
        digests=digests,
    )


def servers_digest(path: Path, data: bytes) -> str:
    """The digest of the parts of a file that are read; of the whole file if it is invalid.

    Agent hosts store other data in these files, too, and change it while they run. The digest of a
    part never equals that of a whole file.
    """
    try:
        return _digest(_parse(path, decoded(data, str(path), ConfigurationError)))
    except ConfigurationError:
        return digest_of(data)


def _digest(document: dict[str, Any]) -> str:
    return _PART + digest_of(msgspec.json.encode(document, order="deterministic"))


def _servers(
    path: Path, text: str, document: dict[str, Any], directory: Path | None
) -> dict[str, ServerConfig | None]:
    """Return the servers of one file by name; None for a disabled one."""
    key = next((key for key in _tables(path) if key in document), "")
    table = _table(path, document, key)
    if key == _OPENCODE and not _is_own(key, table.get("servers")):  # opencode 2
        table = {**table, **_table(path, table, "servers")}
    table = {name: _common(key, entry) for name, entry in table.items() if _is_own(key, entry)}
    rules = _Rules() if key == _OPENCODE else _rules(path, document)
    lines = _Lines(text)
    servers: dict[str, ServerConfig | None] = {}
    for name, entry in table.items():
        allowed = name in (rules.allowed or table) and name not in rules.excluded
        servers[name] = _read_entry(path, lines, name, entry, _workspace(path)) if allowed else None
    own = document.get(_PROJECTS, {}).get(str(directory), {})
    for name, entry in _table(path, own, "mcpServers").items():
        servers[name] = _read_entry(path, lines, name, entry, directory or _workspace(path))
    return servers


def _rules(path: Path, document: dict[str, Any]) -> _Rules:
    try:
        return msgspec.convert(document.get("mcp"), _Rules | None) or _Rules()
    except msgspec.ValidationError as exc:
        raise ConfigurationError(f"{path}: `mcp` is invalid: {exc}.") from exc


def _tables(path: Path) -> tuple[str, ...]:
    """The possible keys of the servers in a file."""
    if path.name in {"opencode.json", "opencode.jsonc"}:
        return (_OPENCODE,)
    return (_GOOSE,) if path.suffix == ".yaml" else _SERVER_TABLES


def _is_own(key: str, entry: object) -> bool:
    """Whether an entry defines a server. Zed and Goose also list their own extensions."""
    return key not in _COMMON_KEYS or not isinstance(entry, dict) or _has_target(entry)


def _has_target(entry: object) -> bool:
    return isinstance(entry, dict) and any(entry.get(one) is not None for one in _TARGETS)


def _is_of_gemini(path: Path) -> bool:
    return path.parent.name in _GEMINI_FOLDERS or path.name == _GEMINI_EXTENSION


def _common(key: str, entry: object) -> object:
    """An entry with the common keys, and without the arguments in its command."""
    names = _COMMON_KEYS.get(key)
    if names is None or not isinstance(entry, dict):
        return entry
    entry = {names.get(name, name): value for name, value in entry.items()}
    match entry.get("command"):
        case [command, *args]:
            entry |= {"command": command, "args": args}
        case {"path": command, **more}:  # older versions of Zed
            entry |= {"command": command, "args": more.get("args"), "env": more.get("env")}
    return entry


def _table(path: Path, document: dict[str, Any], key: str) -> dict[str, Any]:
    table: object = document.get(key)
    if table is None:
        return {}
    if not isinstance(table, dict) or len(table) > MAX_SERVERS:
        raise ConfigurationError(
            f"{path}: {key} must hold {MAX_SERVERS:,} servers at most, by name."
        )
    return table


def _read(path: Path, project: Path | None) -> bytes:
    try:
        if project is not None and path.is_relative_to(project):
            place = path.relative_to(project).as_posix()
            return read_inside(real_path(project), place, MAX_FOUND_SIZE)
        return read_bytes(str(path), MAX_FILE_SIZE)
    except OSError as exc:
        raise ConfigurationError(f"{path}: the file cannot be read ({exc.strerror}).") from exc


def _parse(path: Path, text: str) -> dict[str, Any]:
    """Return the parts of a file that are read."""
    document: object
    tables = _tables(path)
    if tables == (_OPENCODE,):
        text = _OPENCODE_VARIABLE.sub(r"${\1}", text)
    if _is_of_gemini(path):  # unset variables stay as they are
        text = _GEMINI_VARIABLE.sub(r"${\1:-$\1}", text)
    if path.suffix in {".toml", ".yaml"}:
        document = load(text, path.suffix[1:])
    elif isinstance(document := load(text, "json"), Defect):  # it may have comments, or be empty
        text = plain_json(text)
        document = load(text, "json") if text.strip() else {}
    if isinstance(document, Defect):
        place = f"{path}:{document.line}" if document.line else str(path)
        raise ConfigurationError(f"{place}: {document.message}.")
    if not isinstance(document, dict):
        raise ConfigurationError(f"{path}: a list was found where an object is expected.")
    if path.name == _MCP_FILE and document.keys().isdisjoint(tables):
        document = {"mcpServers": {key: one for key, one in document.items() if _has_target(one)}}
    read = {key: document[key] for key in (*tables, "mcp") if key in document}
    own = _own_servers(document.get(_PROJECTS)) if tables == _SERVER_TABLES else {}
    return {**read, _PROJECTS: own} if own else read


def _own_servers(projects: object) -> dict[str, Any]:
    """The servers for single folders, by the folder's path."""
    return {
        folder: {"mcpServers": project["mcpServers"]}
        for folder, project in (projects.items() if isinstance(projects, dict) else ())
        if isinstance(project, dict) and project.get("mcpServers")
    }


def _read_entry(
    path: Path, lines: "_Lines", name: str, raw: object, workspace: Path
) -> ServerConfig | None:
    if isinstance(raw, dict):
        raw = {key: value for key, value in raw.items() if value is not None}
        if isinstance(client := raw.get("oauth", raw.get("auth")), dict):
            raw["oauth"] = {_CLIENT_KEYS.get(key, key): value for key, value in client.items()}
    try:
        entry = msgspec.convert(raw, _Entry)
        if entry.disabled or not entry.enabled:
            return None
        if _OPENCODE in _tables(path) and "{file:" in str(raw):
            raise ValueError("a reference {file:…} is not supported; use {env:…}")
        server = _server(path, name, entry)
        return msgspec.structs.replace(server, workspace=str(workspace))
    except ValueError as exc:  # msgspec.ValidationError is a subclass and quotes no values
        line = lines.of(name)
        place = f"{path}:{line}" if line else str(path)
        name = one_line(name)[:MAX_NAME_LENGTH] or "unnamed"
        fault = f"{place}: the MCP server {name} is invalid: {exc}."
        return ServerConfig(name=name, fault=fault)


def _server(path: Path, name: str, entry: _Entry) -> ServerConfig:
    if not 0 < len(name) <= MAX_NAME_LENGTH or not name.isprintable():
        raise ValueError(f"a name has 1 to {MAX_NAME_LENGTH} printable characters")
    transport = _transport(path, entry)
    if transport is Transport.STDIO and not entry.command:
        raise ValueError("there is neither a command nor a url")
    if transport is not Transport.STDIO and not entry.address:
        raise ValueError(f"a server of type {transport} needs a url")
    headers = entry.headers | entry.http_headers
    headers |= {header: f"${{{variable}}}" for header, variable in entry.env_http_headers.items()}
    if entry.bearer_token_env_var:
        headers["Authorization"] = f"Bearer ${{{entry.bearer_token_env_var}}}"
    return ServerConfig(
        name=name,
        transport=transport,
        command=entry.command,
        args=tuple(str(argument) for argument in entry.args),
        env={key: _as_text(value) for key, value in entry.env.items() if value is not None},
        env_file=entry.env_file,
        env_names=tuple(one if isinstance(one, str) else one.name for one in entry.env_vars),
        cwd=entry.cwd,
        url=entry.address,
        headers=headers,
        oauth=entry.oauth if isinstance(entry.oauth, OAuthClient) else OAuthClient(),
        include=(*entry.include_tools, *entry.enabled_tools),
        exclude=(*entry.exclude_tools, *entry.hidden_tools, *entry.disabled_tools),
        timeout=_timeout(entry),
        call_timeout=_seconds(entry.tool_timeout_sec),
    )


def _transport(path: Path, entry: _Entry) -> Transport:
    if entry.type:
        if entry.type not in _TRANSPORTS:
            raise ValueError(f"the type {entry.type!r} is not supported; use stdio, http or sse")
        return _TRANSPORTS[entry.type]
    if entry.command or not entry.address:
        return Transport.STDIO
    if entry.url and not entry.http_url and _is_of_gemini(path):
        return Transport.SSE
    return Transport.HTTP


def _timeout(entry: _Entry) -> float:
    limits = entry.timeout
    given = limits.startup + limits.catalog if isinstance(limits, _Limits) else limits or None
    if given is not None and given >= MIN_MILLISECONDS:
        given /= 1000
    milliseconds = entry.startup_timeout_ms
    seconds = entry.startup_timeout_sec or (milliseconds / 1000 if milliseconds else given)
    return _seconds(seconds) or DEFAULT_TIMEOUT_S


def _seconds(seconds: float | None) -> float | None:
    if seconds is not None and not 0 < seconds < float("inf"):
        raise ValueError("a timeout must be greater than 0")
    return seconds


def _workspace(path: Path) -> Path:
    """Return the folder of a configuration, or its parent if it is a folder of the host."""
    folder = path.absolute().parent
    for place in map(Path, _HOST_FOLDERS):
        if folder.parts[-len(place.parts) :] == place.parts:
            return folder.parents[len(place.parts) - 1]
    return folder


def _as_text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Lines:
    """The lines where the entries of servers start. They are searched at the first use."""

    def __init__(self, text: str) -> None:
        self._text = text

    def of(self, name: str) -> int | None:
        """The line of a server, by plain text search; None if not found."""
        return self._found.get(json.dumps(name, ensure_ascii=False)[1:-1])

    @cached_property
    def _found(self) -> dict[str, int]:
        """The first line of each name, in one pass, because a file may have many servers."""
        tables = (at for key in _SERVER_TABLES if (at := self._text.find(key)) >= 0)
        start = self._text.rfind("\n", 0, min(tables, default=0)) + 1
        first = self._text.count("\n", 0, start) + 1
        found: dict[str, int] = {}
        for number, line in enumerate(self._text[start:].split("\n"), first):
            if '"' in line:
                for name, after in pairwise(line.split('"')[1:]):
                    if after.lstrip().startswith(":"):
                        found.setdefault(name, number)
            if "[mcp_servers" in line:
                header = "".join(line.split()).removeprefix("[mcp_servers.").removesuffix("]")
                found.setdefault(header.removeprefix('"').removesuffix('"'), number)
        return found
