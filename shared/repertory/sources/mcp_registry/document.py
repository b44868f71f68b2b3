"""The document of a server in a registry (``server.json``), checked and cleaned.

A registry accepts documents from anyone, so all parts of a command line must have a safe form: no
option in place of a package, no reference to a user's variable, no control character.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from repertory.errors import SourceError
from repertory.sources.reading.structured import load
from repertory.text import cut, is_clean, one_line

MAX_LENGTH = 2_000  # characters of one argument of a command line
MAX_LISTED = 50  # packages, remotes, arguments, variables
OFFICIAL = "io.modelcontextprotocol.registry/official"

SERVER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,99}/[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,100}")

_Limit = msgspec.Meta(max_length=MAX_LISTED)


class Input(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A value that the document gives, or that the user is asked for."""

    description: str = ""
    is_required: bool = False
    is_secret: bool = False
    value: str | None = None
    default: str | None = None

    @property
    def given(self) -> str | None:
        """The value from the document, or else the default."""
        return self.default if self.value is None else self.value


class Argument(Input, frozen=True, kw_only=True, rename="camel"):
    """An argument of a command line."""

    type: str = "positional"
    name: str = ""
    value_hint: str = ""
    variables: dict[str, Input] = {}


class Variable(Input, frozen=True, kw_only=True, rename="camel"):
    """An environment variable, or a header."""

    name: str
    variables: dict[str, Input] = {}


class Transport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The transport to a server."""

    type: str = "stdio"
    url: str = ""
    headers: Annotated[list[Variable], _Limit] = []
    variables: dict[str, Input] = {}


class Package(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A package with a program."""

    registry_type: str
    identifier: str
    registry_base_url: str = ""
    version: str = ""
    file_sha256: str = ""
    transport: Transport = Transport()
    runtime_arguments: Annotated[list[Argument], _Limit] = []
    package_arguments: Annotated[list[Argument], _Limit] = []
    environment_variables: Annotated[list[Variable], _Limit] = []


class Server(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A server in a registry."""

    name: str
    version: str
    description: str = ""
    title: str = ""
    packages: Annotated[list[Package], _Limit] = []
    remotes: Annotated[list[Transport], _Limit] = []


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A server and its status in the registry.

    Attributes:
        server: The server.
        digest: The SHA-256 of its document.
        status: ``active``, ``deprecated`` or ``deleted``.
        message: The registry's reason for the status; may be empty.
    """

    server: Server
    digest: str
    status: str
    message: str


def listed(raw: object) -> Listed | None:
    """Read one entry in a registry's response; None if it is invalid."""
    if not isinstance(raw, Mapping) or not isinstance(raw.get("server"), Mapping):
        return None
    document = {key: one for key, one in raw["server"].items() if one is not None}
    try:
        server = msgspec.convert(document, Server)
    except msgspec.ValidationError:
        return None
    if not SERVER_NAME.fullmatch(server.name) or not VERSION.fullmatch(server.version):
        return None
    meta = raw.get("_meta")
    official = meta.get(OFFICIAL) if isinstance(meta, Mapping) else None
    official = official if isinstance(official, Mapping) else {}
    return Listed(
        server=msgspec.structs.replace(server, description=shortened(server.description)),
        digest=hashlib.sha256(msgspec.json.encode(document, order="deterministic")).hexdigest(),
        status=shortened(str(official.get("status", "active"))),
        message=shortened(str(official.get("statusMessage", ""))),
    )


def parsed(content: bytes, where: str) -> Mapping[str, Any]:
    """Parse the response of a registry.

    Raises:
        SourceError: It is not a JSON object.
    """
    document = load(content.decode("utf-8", "replace"), "json")
    if not isinstance(document, dict):
        raise SourceError(f"{where} did not answer like an MCP registry.")
    return document


def shortened(text: str) -> str:
    """An untrusted text, cut and on one line."""
    return cut(one_line(text), 300)


def safe(text: str, what: str) -> str:
    """Check a text that becomes a part of a command line or a header.

    Raises:
        ValueError: It is too long, has control characters, or refers to a user's variable.
    """
    if len(text) > MAX_LENGTH or not is_clean(text) or "\n" in text or "${" in text:
        raise ValueError(f"{what} is too long, or has line breaks, control characters or `${{`")
    return text
