"""Makes MCP configuration entries that start or contact the servers of a registry."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from repertory.sources.mcp_registry.document import (
    Argument,
    Input,
    Package,
    Server,
    Transport,
    Variable,
    safe,
)
from repertory.sources.mcp_registry.packages import check_runtime, command_of
from repertory.sources.openapi.security import FRAMING, HEADER_NAME
from repertory.sources.openapi.servers import is_server

ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,100}")
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9]+")
_DANGEROUS = re.compile(r"PATH|HOME|(?:LD|DYLD)_.{0,100}", re.IGNORECASE)  # they affect any program
# Variables that make a runtime or a shell load other code, or use another index, registry or proxy.
_STEERING = re.compile(
    r"(?:NODE_(?!ENV$)|NPM_CONFIG_|BUN_|DENO_|PYTHON(?!UNBUFFERED$|UTF8$|IOENCODING$)|UV_|PIP_"
    r"|DOCKER_|DOTNET_|NUGET_|COR_|CORECLR_|JAVA_|_JAVA_|JDK_|PERL|RUBY|GIT_|SSL_|XDG_).{0,100}"
    r"|BASH_ENV|ENV|SHELLOPTS|TMPDIR|TE?MP|(?:HTTPS?|ALL)_PROXY|(?:REQUESTS|CURL)_CA_BUNDLE",
    re.IGNORECASE,
)
_PLACE = re.compile(r"\{([^{}]{1,100})\}")
REMOTES = {"streamable-http": "http", "sse": "sse"}


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """An MCP configuration entry, and the values that the user must provide.

    Attributes:
        entry: The entry, with references to variables for secrets and missing values.
        env: The environment variables that the program gets, as references by name.
        headers: The headers of a remote server, as references.
        notes: Sentences that the user should read.
    """

    entry: dict[str, Any]
    env: dict[str, str] = {}
    headers: dict[str, str] = {}
    notes: tuple[str, ...] = ()


def choices(server: Server) -> list[str]:
    """The ways to use a server, by the type of a package or a remote, in order of preference."""
    packages = [one.registry_type for one in server.packages if one.transport.type == "stdio"]
    remotes = [one.type for one in server.remotes if one.type in REMOTES]
    return list(dict.fromkeys([*packages, *remotes]))


def launch_of(server: Server, choice: str, more: Iterable[str] = ()) -> Launch:
    """Make the launch of a server.

    Args:
        server: The server.
        choice: One of ``choices``.
        more: The environment variables that the user adds; a container gets them by name.

    Raises:
        ValueError: It cannot be used safely; the text says why, with "it" as its subject.
    """
    for package in server.packages:
        if package.registry_type == choice and package.transport.type == "stdio":
            return _of_package(package, more)
    for remote in server.remotes:
        if remote.type == choice and choice in REMOTES:
            return _of_remote(remote, server)
    raise ValueError(f"it has no {choice}; it has {', '.join(choices(server)) or 'no package'}")


def _of_package(package: Package, more: Iterable[str]) -> Launch:
    given, asked, notes = _environment(package.environment_variables)
    runtime = _arguments(package.runtime_arguments)
    check_runtime(package.registry_type, runtime)
    command = command_of(package, tuple(dict.fromkeys((*given, *asked, *more))))
    arguments = [
        *command.before,
        *runtime,
        *command.package,
        *_arguments(package.package_arguments),
    ]
    if command.note:
        notes.append(command.note)
    entry: dict[str, Any] = {"command": command.program, "args": arguments}
    if given:
        entry["env"] = given
    return Launch(entry=entry, env=asked, notes=tuple(notes))


def _of_remote(remote: Transport, server: Server) -> Launch:
    url = _filled(safe(remote.url, "its URL"), remote.variables)
    if not is_server(_PLACE.sub("x", url.replace("${", "{"))):
        raise ValueError("its URL is not an HTTP URL without user, query and fragment")
    start = server.name.rpartition("/")[2]
    headers: dict[str, str] = {}
    asked: dict[str, str] = {}
    for header in remote.headers:
        if not HEADER_NAME.fullmatch(header.name) or header.name.lower() in FRAMING:
            raise ValueError(f"its header {header.name[:100]!r} cannot be sent")
        value = _value(header, _variable(start, header.name))
        if value is not None:
            (asked if "${" in value else headers)[header.name] = value
    entry: dict[str, Any] = {"type": REMOTES[remote.type], "url": url}
    if headers:
        entry["headers"] = headers
    return Launch(entry=entry, headers=asked)


def _environment(
    variables: Iterable[Variable],
) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """The variables with a value, those taken from the user's environment, and notes."""
    given: dict[str, str] = {}
    asked: dict[str, str] = {}
    optional = []
    for one in variables:
        if not ENVIRONMENT_NAME.fullmatch(one.name) or _DANGEROUS.fullmatch(one.name):
            raise ValueError(f"its environment variable {one.name[:100]!r} cannot be set")
        if _STEERING.fullmatch(one.name) and one.given is not None:
            raise ValueError(f"its environment variable {one.name[:100]!r} may run other code")
        value = _value(one, one.name)
        if value is None:
            optional.append(one.name)
        else:
            (asked if "${" in value else given)[one.name] = value
    notes = []
    if optional:
        names = ", ".join(optional)
        notes.append(f"It also knows the environment variables {names}; add them to `env`.")
    return given, asked, notes


def _arguments(arguments: Iterable[Argument]) -> list[str]:
    found: list[str] = []
    for one in arguments:
        value = _value(one, "", hint=one.value_hint or one.name)
        if one.type == "named":
            if not one.name.startswith("-"):
                raise ValueError(f"its option {one.name[:100]!r} does not begin with a dash")
            if value is not None:
                found.append(safe(one.name, "an option"))
                found += [value] if value else []
        elif one.type != "positional":
            raise ValueError(f"it has an argument of the unknown type {one.type[:100]!r}")
        elif value is not None:
            found.append(value)
    return found


def _value(one: Argument | Variable, variable: str, hint: str = "") -> str | None:
    """The value from the document, or a reference; None if it is optional and missing.

    A secret is always a reference, even if the document has a value.
    """
    own = f"${{{variable}}}" if variable else f"${{input:{_variable(hint or 'value').lower()}}}"
    if one.value is not None and one.variables:
        return _filled(safe(one.value, "a value"), one.variables, variable)
    if one.is_secret:
        return own if one.is_required or one.value is not None else None
    if one.given is not None:
        return safe(one.given, "a value")
    return own if one.is_required else None


def _filled(text: str, variables: Mapping[str, Input], start: str = "") -> str:
    """Fill in the ``{places}`` in a text."""

    def fill(found: re.Match[str]) -> str:
        one = variables.get(found[1])
        if one is None:
            return found[0]
        if one.given is not None and not one.is_secret:
            return safe(one.given, "a value")
        if start:
            return f"${{{_variable(start, found[1])}}}"
        return f"${{input:{_variable(found[1]).lower()}}}"

    return _PLACE.sub(fill, text)


def _variable(*parts: str) -> str:
    """Make the name of an environment variable from texts."""
    name = NOT_IN_NAMES.sub("_", "_".join(parts)).strip("_").upper()[:100]
    return f"_{name}" if name[:1].isdigit() else name or "VALUE"
