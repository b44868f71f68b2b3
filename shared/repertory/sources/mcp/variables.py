"""The variables of a configuration, resolved only when a server is launched."""

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote

import msgspec

from repertory.errors import InputNeededError, SourceError
from repertory.sources.mcp.server import ServerConfig
from repertory.system.untrusted_files import read_bytes
from repertory.trust import digest_of

MAX_ENV_FILE_SIZE = 2**20  # bytes
MIN_SECRET_LENGTH = 4  # masking shorter values would ruin messages

_UPPER = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
PROXIES = (*_UPPER, *map(str.lower, _UPPER))

_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_INPUT = "input:"
_FOLDERS: dict[str, Callable[[str], str]] = {  # given the workspace
    "workspaceFolder": lambda workspace: workspace,
    "CLAUDE_PLUGIN_ROOT": lambda workspace: workspace,
    "extensionPath": lambda workspace: workspace,
    "workspaceFolderBasename": lambda workspace: Path(workspace).name,
    "userHome": lambda _: str(Path.home()),
    "pathSeparator": lambda _: os.sep,
    "/": lambda _: os.sep,
}
_ENV_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """The resolved launch parameters of a server. Never stored or logged.

    ``inherited`` is the environment from which a process gets a few harmless variables.
    ``secrets`` are the values, and the words in them, that must not appear in messages; the tokens
    of a sign-in are added to them.
    """

    command: str
    args: tuple[str, ...]
    env: dict[str, str]
    inherited: Mapping[str, str]
    cwd: str
    url: str
    headers: dict[str, str]
    client_id: str
    client_secret: str
    callback_port: int
    sign_ins: str
    secrets: set[str] = msgspec.field(default_factory=set)

    @property
    def has_authorization(self) -> bool:
        """Whether a configured header authorizes the requests, which excludes a sign-in."""
        return any(name.lower() == "authorization" for name in self.headers)

    def __repr__(self) -> str:
        """Omit all values, which may be secrets."""
        return "Launch(…)"

    def redact(self, text: str) -> str:
        """Mask every secret of this launch in a text."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


def fill_in(server: ServerConfig) -> Launch:
    """Resolve the variables of a server's configuration.

    ``${NAME}`` and ``${env:NAME}`` come from ``server.variables``, and ``${NAME:-default}`` has a
    default. ``${input:id}`` comes from ``MCP_INPUT_<ID>``, because no user can be asked.
    ``${workspaceFolder}``, ``${workspaceFolderBasename}`` and ``${userHome}`` are folders, as are
    ``${CLAUDE_PLUGIN_ROOT}`` and ``${extensionPath}`` in a plugin or extension, and
    ``${pathSeparator}`` and ``${/}`` separate them. Other references are left unchanged.

    Raises:
        InputNeededError: An input has no value.
        SourceError: A variable has no value, or the ``envFile`` cannot be read.
    """
    environment = server.variables
    used: set[str] = set()

    def fill(text: str) -> str:
        return filled(text, _whose(server), server.workspace, environment, used)

    env = {name: environment[name] for name in server.env_names if name in environment}
    if server.env_file:
        env |= _read_env_file(server, Path(server.workspace, fill(server.env_file)))
    env |= {name: fill(value) for name, value in server.env.items()}
    launch = Launch(
        headers={name: fill(value) for name, value in server.headers.items()},
        command=fill(server.command),
        url=fill(server.url),
        args=tuple(fill(argument) for argument in server.args),
        env=env,
        inherited=environment,
        cwd=str(Path(server.workspace, fill(server.cwd))),
        client_id=fill(server.oauth.client_id),
        client_secret=fill(server.oauth.client_secret),
        callback_port=server.oauth.callback_port,
        sign_ins=server.sign_ins,
    )
    urls = (launch.url, *(environment.get(name, "") for name in PROXIES))
    values = {launch.client_secret, *env.values(), *launch.headers.values(), *used}
    values |= {secret for one in urls for secret in _url_secrets(one)}
    words = (word for value in values for word in (value, *value.split()))
    launch.secrets.update(word for word in words if len(word) >= MIN_SECRET_LENGTH)
    return launch


def names_of(server: ServerConfig) -> list[str]:
    """The names of the environment variables that a server gets, sorted."""
    texts = [server.command, *server.args, *server.env.values(), server.env_file, server.cwd]
    texts += [server.url, *server.headers.values()]
    texts += [server.oauth.client_id, server.oauth.client_secret]
    return sorted({*server.env_names, *names_in(texts)})


def names_in(texts: Iterable[str]) -> set[str]:
    """The names of the environment variables that texts refer to."""
    found: set[str] = set()
    for reference in (one for text in texts for one in _REFERENCE.findall(text)):
        if reference.startswith(_INPUT):
            found.add(_name_of_input(reference))
        elif reference not in _FOLDERS and (variable := _VARIABLE.fullmatch(reference)):
            found.add(variable[1])
    return found


def env_file_of(server: ServerConfig) -> Path | None:
    """The path of a server's ``envFile``; None without one, or if a variable in it has no value."""
    try:
        path = filled(server.env_file, _whose(server), server.workspace, server.variables, set())
    except SourceError:
        return None
    return Path(server.workspace, path) if path else None


def filled(
    text: str, whose: str, workspace: str, environment: Mapping[str, str], used: set[str]
) -> str:
    """Resolve the variables of a text; see ``fill_in``.

    Args:
        text: The text.
        whose: The owner of the text, as the subject of a message.
        workspace: The folder that the configuration belongs to.
        environment: The values of variables.
        used: Receives the values of the variables.

    Raises:
        SourceError: A variable has no value.
    """

    def value(found: re.Match[str]) -> str:
        reference = found[1]
        if reference in _FOLDERS:
            return _FOLDERS[reference](workspace)
        if reference.startswith(_INPUT):
            name, default = _name_of_input(reference), None
            if environment.get(name) is None:
                raise InputNeededError(f"{whose} needs input: set {name} in the environment.")
        elif variable := _VARIABLE.fullmatch(reference):
            name, default = variable.groups()
            missing = f"{whose} needs the environment variable {name}, which is not set."
        else:
            return found[0]
        known = environment.get(name)
        if not known and default is not None:
            known = default
        if known is None:
            raise SourceError(missing)
        used.add(known)
        return known

    return _REFERENCE.sub(value, text)


def _name_of_input(reference: str) -> str:
    return "MCP_INPUT_" + re.sub(r"\W", "_", reference.removeprefix(_INPUT)).upper()


def _whose(server: ServerConfig) -> str:
    return f"The MCP server {server.name}"


def _url_secrets(url: str) -> set[str]:
    """Return the credentials and the values of the query, both as written and decoded."""
    rest, _, query = url.partition("?")
    userinfo = re.match(r"[^/]*//([^/@]*)@", rest)
    values = [pair.partition("=")[2] for pair in query.split("&")]
    values += userinfo[1].split(":") if userinfo else []
    return {*values, *map(unquote, values)}


def _read_env_file(server: ServerConfig, path: Path) -> dict[str, str]:
    try:
        content = read_bytes(str(path), MAX_ENV_FILE_SIZE)
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as exc:
        reason = getattr(exc, "strerror", None) or "it is not UTF-8"
        raise SourceError(
            f"The envFile {path} of the MCP server {server.name} cannot be read as text: {reason}."
        ) from exc
    if server.env_file_digest not in (None, digest_of(content)):
        config = shlex.quote(server.origins[-1] if server.origins else "")
        raise SourceError(
            f"The envFile {path} of the MCP server {server.name} is not the one that was trusted; "
            f"run `repertory config trust {config}` to allow it."
        )
    lines = (_ENV_LINE.fullmatch(line.strip()) for line in text.splitlines())
    return {line[1]: _unquoted(line[2]) for line in lines if line}


def _unquoted(value: str) -> str:
    is_quoted = len(value) > 1 and value[0] in "'\"" and value[0] == value[-1]
    return value[1:-1] if is_quoted else value
